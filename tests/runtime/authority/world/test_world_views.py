"""Views of a world: read like dicts and lists, and changed by nothing."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given

from footlights.authority import JsonWorld, WorldReadOnly, canonical, patch
from footlights.authority.world import find_in, plain_view
from tests.runtime.authority.world.documents import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable


@given(DOCUMENTS)
def test_a_view_reads_like_the_document(document: Any) -> None:
    expected = orjson.loads(canonical(document))
    _check(JsonWorld(document, max_depth=200).view(), expected)


def _check(view: Any, expected: Any) -> None:
    assert view == expected
    if isinstance(expected, dict):
        assert list(view) == list(view.keys()) == list(expected)
        assert len(view) == len(view.items()) == len(expected)
        for (key, value), (name, child), one in zip(expected.items(), view.items(), view.values(), strict=True):
            assert key == name
            assert key in view
            assert view[key] == view.get(key) == child == one
            _check(child, value)
        assert "no such key" not in view
        assert view.get("no such key", 7) == 7
        with pytest.raises(KeyError):
            view["no such key"]
    elif isinstance(expected, list):
        assert len(view) == len(expected)
        for index, (value, child) in enumerate(zip(expected, view, strict=True)):
            assert view[index] == view[index - len(expected)] == child
            _check(child, value)
        assert [*reversed(view)] == expected[::-1]
        assert view[1:3] == expected[1:3]
        with pytest.raises(IndexError):
            view[len(expected)]


@pytest.fixture(params=[0, 500], ids=["small", "large"])
def view(request: pytest.FixtureRequest) -> Any:
    rooms: dict[str, Any] = {f"r{i}": {"guest": None} for i in range(request.param)}
    return JsonWorld(
        {"rooms": {"attic": {"guest": "Ada"}, **rooms}, "log": [1, 2, *range(request.param)], "n": 1}
    ).view()


def test_a_view_matches_patterns(view: Any) -> None:
    match view:
        case {"rooms": {"attic": {"guest": str(guest)}}, "log": [1, second, *_], **others}:
            assert (guest, second, others) == ("Ada", 2, {"n": 1})
        case _:
            pytest.fail("it did not match")


def test_a_write_says_how_worlds_change(view: Any) -> None:
    def delete(part: Any, key: Any) -> None:
        del part[key]

    writes: list[Callable[[], Any]] = [
        lambda: view.__setitem__("n", 2),
        lambda: view["rooms"].update(attic=1),
        lambda: view["log"].append(3),
        lambda: view["log"].__setitem__(0, 3),
        lambda: view["rooms"].pop("attic"),
        lambda: delete(view, "n"),
        lambda: delete(view["log"], 0),
    ]
    for write in writes:
        with pytest.raises(WorldReadOnly, match="accept"):
            write()
    with pytest.raises(WorldReadOnly):
        view["log"] += [1]
    with pytest.raises(TypeError):
        view |= {"n": 2}


def test_a_copy_is_plain_and_may_be_changed(view: Any) -> None:
    for plain in (view.copy(), copy(view), deepcopy(view)):
        assert type(plain) is dict
        assert type(plain["rooms"]["attic"]) is dict
        plain["rooms"]["attic"]["guest"] = "Bo"
        plain["log"].append(1)
    assert view["rooms"]["attic"] == {"guest": "Ada"}
    assert view.copy() == view


def test_views_are_equal_if_their_content_is(view: Any) -> None:
    other = JsonWorld(view.copy())
    assert view == other.view()
    assert view.copy() == view
    assert view != other.changed((patch.replace("/log/1", 3),)).view()
    assert view["rooms"] == other.view()["rooms"]
    assert JsonWorld({"a": 2.0}).view() == {"a": 2} == JsonWorld({"a": 2}).view()
    assert JsonWorld({"a": 1}).view() != {"a": True}
    assert view != {"rooms": object()}
    assert view["log"] != view["rooms"]
    assert {"all": view}["all"] == {**view}


def test_a_view_is_a_value_of_an_operation_and_of_json(view: Any) -> None:
    world = JsonWorld({}).changed((patch.add("/was", view),))
    assert world.view()["was"] == view
    assert orjson.loads(orjson.dumps({"it": view}, default=plain_view)) == {"it": view}


def test_a_view_shows_itself_if_it_is_not_large() -> None:
    assert repr(JsonWorld({"a": [1]}).view()) == "{'a': [1]}"
    assert repr(JsonWorld({"a": list(range(9_999))}).view()["a"]) == "<9,999 entries of a world, 48,886 bytes>"


def test_a_place_is_found_in_views_and_in_plain_data_around_them(view: Any) -> None:
    for shown in (view, {**view, "n": 2}):
        assert find_in(shown, "/rooms/attic/guest") == ("Ada",)
        assert find_in(shown, "/log/0") == (1,)
        assert find_in(shown, "/rooms") == (view["rooms"],)
        assert find_in(shown, "/rooms/none") == find_in(shown, "/n/x") == find_in(shown, "rooms") == ()
    assert find_in({**view, "n": 2}, "/n") == (2,)
