"""JSON Patch on large worlds, against a plain dict and against the package jsonpatch."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights.authority import JsonWorld, PatchFailed, canonical, patch
from footlights.authority.world.nodes import Branch, Mixed, Ref, height_of
from footlights.errors import TooLarge
from tests.runtime.authority.world.documents import LARGE, SMALL


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _place(random: Random, document: Any) -> tuple[str, Any]:
    """The pointer of a random object or array, and itself."""
    pointer = ""
    while random.random() < 0.8:
        pairs = list(document.items() if isinstance(document, dict) else enumerate(document))
        inner = [(key, child) for key, child in pairs if isinstance(child, dict | list) and child]
        if not inner:
            break
        key, document = random.choice(inner[:2] + inner[-2:])
        pointer += f"/{_escaped(key)}"
    return pointer, document


def _operation(random: Random, document: Any, value: Any) -> patch.PatchOp:
    pointer, parent = _place(random, document)
    keys: list[Any] = list(parent if isinstance(parent, dict) else range(len(parent)))
    there = f"{pointer}/{_escaped(random.choice(keys))}" if keys else pointer
    if isinstance(parent, list):
        new = f"{pointer}/{random.choice(['-', len(parent), random.randint(0, len(parent))])}"
    else:
        keys = ["new", "a" * random.randint(0, 128), "last", f"{random.randrange(10**6)}"]
        new = f"{pointer}/{_escaped(random.choice(keys))}"
    kind = random.choice(["add", "add", "replace", "replace", "remove", "move", "copy", "test"])
    if kind == "add":
        return patch.add(new, value)
    if kind in ("move", "copy"):
        return patch.move(there, new) if kind == "move" else patch.copy(there, new)
    if kind == "remove":
        return patch.remove(there) if there else patch.replace("", value)
    if kind == "test":
        return patch.test(there, jsonpatch.JsonPointer(there).resolve(document))
    return patch.replace(there, value)


@settings(max_examples=40)
@given(LARGE, st.lists(SMALL, min_size=1, max_size=4), st.integers(0, 2**32))
def test_a_changed_world_is_the_world_that_is_made_of_the_changed_document(
    document: Any, values: list[Any], seed: int
) -> None:
    random = Random(seed)
    document = document if isinstance(document, dict | list) else {"it": document}
    world = JsonWorld(document, max_depth=200)
    expected: Any = world.view().copy()
    values += ["z" * 1_500, {f"{i}": i for i in range(150)}, list(range(300))]
    for _ in range(12):
        if not isinstance(expected, dict | list):
            break
        op = _operation(random, expected, random.choice(values))
        try:
            after = jsonpatch.apply_patch(deepcopy(expected), [patch.to_json(op)])
        except jsonpatch.JsonPatchException:
            with pytest.raises(PatchFailed):
                world.changed((op,))
            continue
        world = world.changed((op,))
        anew = JsonWorld(after, max_depth=200)
        assert world.digest() == anew.digest()
        assert _shape(world.root) == _shape(anew.root)
        expected = anew.view().copy()
        assert world.view() == expected
        assert world.view().copy() == expected
        assert world.root.size == len(canonical(expected))


def _shape(ref: Ref) -> Any:
    """All that two equal nodes have in common, down to the leaves."""
    node = ref.node
    if isinstance(node, bytes):
        return node, ref.digest, ref.height
    assert ref.height == node.height
    kids = [_shape(node.ref(place)) for place in range(len(node.kids))]
    own: Any = (node.skip, node.slots) if isinstance(node, Branch) else (node.inline, node.names, node.floor)
    return own, node.count, node.size, node.weight, ref.height, kids


def test_only_the_nodes_on_the_way_are_new() -> None:
    world = JsonWorld({f"room {i}": {"guest": None, "beds": list(range(50))} for i in range(2_000)})
    after = world.changed((patch.replace("/room 77/guest", "Ada"),))
    old, new = set(_nodes(world.root)), set(_nodes(after.root))
    assert len(old) > 500
    assert 0 < len(new - old) < 8


def _nodes(ref: Ref) -> Any:
    yield id(ref.node)
    if isinstance(ref.node, Branch | Mixed):
        for place in range(len(ref.node.kids)):
            yield from _nodes(ref.node.ref(place))


@pytest.mark.parametrize("text", ["{", "a{b[c", "[[[["])
def test_a_bracket_in_a_text_is_no_level(text: str) -> None:
    document: Any = {f"{i}": text for i in range(200)}
    assert JsonWorld(document).root.height == height_of(document) == 1


def test_a_long_array_changes_only_at_its_end() -> None:
    world = JsonWorld({"log": list(range(4_097))})
    for op in (patch.add("/log/0", 1), patch.remove("/log/7"), patch.move("/log/1", "/log/-")):
        with pytest.raises(PatchFailed, match="use an object"):
            world.changed((op,))
    ends = (patch.add("/log/-", 1), patch.remove("/log/4097"), patch.remove("/log/4096"), patch.replace("/log/0", 9))
    assert list(world.changed(ends).view()["log"]) == [9, *range(1, 4_096)]
    shorter = world.changed((patch.remove("/log/4096"), patch.remove("/log/0")))
    assert list(shorter.view()["log"]) == list(range(1, 4_096))


def test_a_key_has_at_most_128_utf_16_units() -> None:
    longest = "\U0001f34e" * 64
    world = JsonWorld({longest: 1, 'q"' * 64: {}})
    documents: list[Any] = [{longest + "a": 1}, [{"a": [{"k" * 129: 1}]}], {'q"' * 64 + "q": 1}]
    for document in documents:
        with pytest.raises(TooLarge, match="UTF-16"):
            JsonWorld(document)
        with pytest.raises(TooLarge, match="UTF-16"):
            world.changed((patch.add("/it", document),))
    with pytest.raises(TooLarge, match="UTF-16"):
        world.changed((patch.add("/" + "k" * 129, 1),))


def test_keys_that_fork_at_every_digit_are_one_path() -> None:
    document: Any = {"a" * length: length for length in range(129)}
    world = JsonWorld(document)
    after = world.changed((patch.replace("/" + "a" * 128, "x"), patch.remove("/"), patch.add("/" + "a" * 127 + "b", 1)))
    expected: dict[str, Any] = {**document, "a" * 128: "x", "a" * 127 + "b": 1}
    del expected[""]
    assert after.view() == expected
    assert after.digest() == JsonWorld(expected).digest()
