from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights.authority import PatchFailed, PatchOp, apply_patch, canonical, patch
from footlights.errors import InvalidCommand, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.events import JsonValue

keys = st.sampled_from(["a", "b", "0", "1", "-", "", "m~n", "x/y", "~1"])
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def pointers(value: JsonValue, at: str = "") -> Iterator[str]:
    yield at
    children = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for token, child in children:
        yield from pointers(child, f"{at}/{escaped(str(token))}")


@st.composite
def patches(draw: st.DrawFn) -> tuple[JsonValue, list[PatchOp]]:
    """A document and operations on it of which many fit and many do not quite."""
    document = draw(values)
    there = st.sampled_from(list(pointers(document)))
    near = st.builds("{}/{}".format, there, keys.map(escaped) | st.sampled_from(["01", "2", "9", "+1", "~2"]))
    paths = there | near
    ops = st.one_of(
        st.builds(patch.add, paths, values),
        st.builds(patch.remove, paths),
        st.builds(patch.replace, paths, values),
        st.builds(patch.move, paths, paths),
        st.builds(patch.copy, paths, paths),
        st.builds(patch.test, paths, values),
        there.map(lambda path: patch.test(path, read({"": document}, path))),
    )
    return document, draw(st.lists(ops, max_size=4))


# The model: the plainest in-place reading of RFC 6902. The document sits in a box under the key "", so that
# splitting a pointer at its slashes gives the way from the box, and the root needs no special case.


class Impossible(Exception):
    pass


def place(box: Any, pointer: str, *, may_be_new: bool) -> tuple[Any, Any]:
    *way, last = pointer.split("/")
    for token in way:
        parent, key = known(box, token, may_be_new=False)
        box = parent[key]
    return known(box, last, may_be_new=may_be_new)


def known(parent: Any, token: str, *, may_be_new: bool) -> tuple[Any, Any]:
    if "~" in token.replace("~0", "").replace("~1", ""):
        raise Impossible
    if isinstance(parent, dict):
        key = token.replace("~1", "/").replace("~0", "~")
        if key in parent or may_be_new:
            return parent, key
    if isinstance(parent, list):
        allowed = {str(index): index for index in range(len(parent) + may_be_new)}
        if may_be_new:
            allowed["-"] = len(parent)
        if token in allowed:
            return parent, allowed[token]
    raise Impossible


def read(box: Any, pointer: str) -> Any:
    parent, key = place(box, pointer, may_be_new=False)
    return parent[key]


def put(box: Any, pointer: str, value: Any) -> None:
    parent, key = place(box, pointer, may_be_new=True)
    if isinstance(parent, list):
        parent.insert(key, value)
    else:
        parent[key] = value


def modelled(document: JsonValue, op: PatchOp) -> JsonValue:
    box: Any = {"": deepcopy(document)}
    value = deepcopy(read(box, op.from_) if op.from_ is not None else op.value)
    if op.op == "test" and canonical(read(box, op.path)) != canonical(value):
        raise Impossible
    if op.op == "move" and op.path.startswith(f"{op.from_}/"):
        raise Impossible
    if op.op == "replace":
        parent, key = place(box, op.path, may_be_new=False)
        parent[key] = value
    if op.op == "remove" or (op.op == "move" and op.from_ != op.path):
        gone = op.path if op.from_ is None else op.from_
        parent, key = place(box, gone, may_be_new=False)
        if gone == "":
            raise Impossible
        del parent[key]
    if op.op in ("add", "copy") or (op.op == "move" and op.from_ != op.path):
        put(box, op.path, value)
    result: JsonValue = box[""]
    return result


@settings(deadline=None, max_examples=300)
@given(patches())
def test_every_operation_does_what_the_model_does(case: tuple[JsonValue, list[PatchOp]]) -> None:
    document, ops = case
    expected = document
    for index, op in enumerate(ops):
        try:
            expected = modelled(expected, op)
        except Impossible:
            with pytest.raises(PatchFailed) as caught:
                apply_patch(document, ops)
            assert (caught.value.index, caught.value.path) == (index, op.path)
            return
    assert canonical(apply_patch(document, ops)) == canonical(expected)


@settings(deadline=None, max_examples=200)
@given(patches())
def test_neither_the_document_nor_the_operations_are_ever_changed(
    case: tuple[JsonValue, list[PatchOp]],
) -> None:
    document, ops = case
    before = canonical([document, [patch.to_json(op) for op in ops]])
    for count in range(len(ops) + 1):
        try:
            apply_patch(document, ops[:count])
        except PatchFailed:
            break
    assert canonical([document, [patch.to_json(op) for op in ops]]) == before


@settings(deadline=None)
@given(patches())
def test_operations_survive_json(case: tuple[JsonValue, list[PatchOp]]) -> None:
    _, ops = case
    assert [patch.from_json(patch.to_json(op)) for op in ops] == ops


def test_an_operation_keeps_the_value_it_was_given() -> None:
    guests: list[JsonValue] = ["Ada"]
    op = patch.add("/guests", guests)
    guests.append("Mallory")
    assert apply_patch({}, [op]) == {"guests": ["Ada"]}


def test_a_value_that_contains_itself_is_no_operation() -> None:
    loop: list[JsonValue] = []
    loop.append(loop)
    with pytest.raises(TooLarge):
        patch.add("", loop)


@pytest.mark.parametrize(
    ("document", "op", "after"),
    [
        ({}, patch.add("", [1]), [1]),
        ([1, 3], patch.add("/1", 2), [1, 2, 3]),
        ([1], patch.add("/1", 2), [1, 2]),
        ([1], patch.add("/-", 2), [1, 2]),
        ({"a": 1}, patch.add("/a", None), {"a": None}),
        ({}, patch.add("/-", 1), {"-": 1}),
        ({"": {"": 1}}, patch.replace("//", 2), {"": {"": 2}}),
        ({"a/b": 1, "c~d": 2}, patch.remove("/a~1b"), {"c~d": 2}),
        ({"a/b": 1, "c~d": 2}, patch.remove("/c~0d"), {"a/b": 1}),
        ({"~1": 1}, patch.remove("/~01"), {}),
        ([1, 2, 3], patch.move("/0", "/2"), [2, 3, 1]),
        ([1, 2, 3], patch.move("/0", "/-"), [2, 3, 1]),
        ({"a": 1}, patch.move("/a", "/a"), {"a": 1}),
        ({"a": [1]}, patch.move("/a/0", "/a"), {"a": 1}),
        ({"a": [1]}, patch.copy("", "/a/0"), {"a": [{"a": [1]}, 1]}),
        ({"a": {"x": 1, "y": 2}}, patch.test("/a", {"y": 2, "x": 1.0}), {"a": {"x": 1, "y": 2}}),
    ],
)
def test_an_operation_that_fits(document: JsonValue, op: PatchOp, after: JsonValue) -> None:
    assert apply_patch(document, [op]) == after


@pytest.mark.parametrize(
    ("document", "op"),
    [
        ({}, patch.add("a", 1)),
        ({}, patch.add("/a~", 1)),
        ({}, patch.add("/a~2", 1)),
        ({}, patch.add("/a/b", 1)),
        ("text", patch.add("/0", 1)),
        ([1], patch.add("/2", 1)),
        ([1], patch.add("/00", 1)),
        ([1], patch.add("/+0", 1)),
        ([1], patch.add("/", 1)),
        ([1], patch.add("/\u0660", 1)),
        ([1], patch.add("/" + "9" * 5000, 1)),
        ([1], patch.replace("/-", 1)),
        ([1], patch.remove("/-")),
        ([1], patch.test("/-", 1)),
        ([1], patch.remove("/-1")),
        ({}, patch.replace("/a", 1)),
        ({}, patch.remove("/a")),
        ({}, patch.remove("")),
        ({"a": {"b": 1}}, patch.move("/a", "/a/b")),
        ({"a": {}}, patch.move("", "/a")),
        ({}, patch.move("/a", "/a")),
        ({}, patch.copy("/a", "/b")),
        ({}, PatchOp("copy", "/b")),
        ({"a": 1}, patch.test("/a", True)),
        ({"a": False}, patch.test("/a", 0)),
        ({"a": [1]}, patch.test("/a", [True])),
        ({"a": 1}, patch.test("/a", "1")),
        ({"a": None}, patch.test("/b", None)),
        ({"a": [1]}, patch.test("/a", [1, 1])),
        ({"a": {"b": 1}}, patch.test("/a", {"b": 1, "c": 1})),
    ],
)
def test_an_operation_that_does_not_fit_fails_with_its_index_and_path(document: JsonValue, op: PatchOp) -> None:
    with pytest.raises(PatchFailed) as caught:
        apply_patch(document, [patch.test("", document), op])
    assert (caught.value.index, caught.value.path, caught.value.code) == (1, op.path, "patch_failed")


def test_a_failure_quotes_no_values() -> None:
    with pytest.raises(PatchFailed) as caught:
        apply_patch({"name": "whispered"}, [patch.test("/name", "shouted")])
    assert "whispered" not in str(caught.value)
    assert "shouted" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"path": "/a"},
        {"op": "frob", "path": "/a"},
        {"op": ["add"], "path": "/a"},
        {"op": "remove"},
        {"op": "remove", "path": 1},
        {"op": "add", "path": "/a"},
        {"op": "move", "path": "/a"},
    ],
)
def test_what_is_not_an_operation_is_refused(value: JsonValue) -> None:
    with pytest.raises(InvalidCommand):
        patch.from_json(value)


def test_members_that_the_rfc_does_not_define_are_ignored() -> None:
    assert patch.from_json({"op": "remove", "path": "/a", "value": 1, "note": "x"}) == patch.remove("/a")


@given(st.lists(st.text("a/~01 é", max_size=5) | st.integers(0, 99), max_size=4))
def test_a_path_to_names_leads_to_them_whatever_is_in_them(names: list[str | int]) -> None:
    assert patch.tokens_of(patch.path_to(*names)) == [str(name) for name in names]
