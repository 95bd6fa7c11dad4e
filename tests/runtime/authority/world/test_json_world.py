from __future__ import annotations

import gc
import math
import tracemalloc
from typing import TYPE_CHECKING, cast

import orjson
import pytest

from footlights.authority import JsonWorld, NotCanonical, PatchFailed, World, canonical, digest, patch
from footlights.authority.world.nodes import parsed
from footlights.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.events import JsonValue


def test_a_change_gives_a_new_world_and_leaves_the_old_one() -> None:
    world: World = JsonWorld({"door": "shut"})
    after = world.changed((patch.replace("/door", "open"),))
    assert world.view() == {"door": "shut"}
    assert after.view() == {"door": "open"}


def test_the_digest_is_that_of_the_document() -> None:
    world = JsonWorld({"door": "shut"})
    assert world.digest() == digest({"door": "shut"})
    assert world.changed((patch.remove("/door"),)).digest() == digest({})


def test_worlds_with_the_same_document_have_the_same_digest_however_they_came_about() -> None:
    changes = (patch.add("/b", 1), patch.add("/a", 2))
    assert JsonWorld({}).changed(changes).digest() == JsonWorld({"a": 2, "b": 1}).digest()


def test_a_world_keeps_the_document_it_was_given() -> None:
    guests: list[JsonValue] = ["Ada"]
    world = JsonWorld({"guests": guests})
    guests.append("Mallory")
    assert world.view() == {"guests": ["Ada"]}


def test_a_change_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(PatchFailed):
        JsonWorld({}).changed((patch.remove("/door"),))


@pytest.mark.parametrize("document", [math.nan, {"a": 2**53}, "\ud800"])
def test_a_document_without_digest_cannot_be_a_world(document: JsonValue) -> None:
    with pytest.raises(NotCanonical):
        JsonWorld(document)


def test_a_world_may_be_as_large_as_its_limit_and_no_larger() -> None:
    world = JsonWorld({"a": ""}, max_bytes=10)
    assert world.changed((patch.replace("/a", "12"),)).view() == {"a": "12"}
    with pytest.raises(TooLarge):
        world.changed((patch.replace("/a", "123"),))


def test_a_world_may_be_as_deep_as_its_limit_and_no_deeper() -> None:
    world = JsonWorld({}, max_depth=2)
    assert world.changed((patch.add("/a", []),)).view() == {"a": []}
    with pytest.raises(TooLarge):
        world.changed((patch.add("/a", [[]]),))
    with pytest.raises(TooLarge):
        JsonWorld({"a": [[]]}, max_depth=2)


def test_limits_stay_with_the_worlds_that_follow() -> None:
    world = JsonWorld({}, max_bytes=20, max_depth=2).changed((patch.add("/a", []),))
    with pytest.raises(TooLarge):
        world.changed((patch.add("/a/-", "a text that is long"),))
    with pytest.raises(TooLarge):
        world.changed((patch.add("/a/-", []),))


def test_a_document_copied_into_itself_again_and_again_is_too_large_at_once() -> None:
    doubling = tuple(patch.copy("", f"/{step}") for step in range(60))
    with pytest.raises(TooLarge):
        JsonWorld({}, max_bytes=10_000).changed(doubling)


def test_a_text_copied_again_and_again_is_too_large_before_it_is_written_down() -> None:
    many = tuple(patch.copy("/text", "/list/-") for _ in range(2_000))
    world = JsonWorld({"text": "x" * 90_000, "list": []}, max_bytes=100_000)
    assert _peak(lambda: world.changed(many)) < 10_000_000


def test_a_long_key_copied_again_and_again_is_too_large_before_it_is_written_down() -> None:
    many = tuple(patch.copy("/it", "/list/-") for _ in range(2_000))
    world = JsonWorld({"it": {"k" * 128: "x" * 90_000}, "list": []}, max_bytes=100_000)
    assert _peak(lambda: world.changed(many)) < 10_000_000


def test_a_large_text_is_counted_where_the_slow_way_is_needed_too() -> None:
    for odd in (1.0, "\U0001f34e"):
        with pytest.raises(TooLarge):
            JsonWorld([odd, "x" * 60, {"k" * 60: odd}], max_bytes=100)


def _peak(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_world_shows_what_a_ledger_would_give_back() -> None:
    world = JsonWorld({"b": 2.0, "a": {"z": -0.0, "y": 1e21}})
    for each in (world, world.changed((patch.replace("/b", 3.0), patch.remove("/a"), patch.add("/a", {"z": 0.0})))):
        assert repr(each.view()) == repr(orjson.loads(each.written))
        assert each.written == canonical(each.view().copy())
    assert repr(world.view()) == "{'a': {'y': 1e+21, 'z': 0}, 'b': 2}"


def test_what_is_done_to_an_operation_does_not_reach_the_world() -> None:
    op = patch.add("/log", [])
    world = JsonWorld({}).changed((op,))
    cast("list[str]", op.value).append("all mine")
    assert world.view() == {"log": []}
    assert world.changed((patch.add("/n", 1),)).view() == {"log": [], "n": 1}


def test_a_world_takes_little_more_memory_than_its_json_also_after_every_leaf_was_changed() -> None:
    rooms = [f"room {number:05}" for number in range(2_000)]
    document: dict[str, JsonValue] = {room: {"guest": None, "note": "n" * 60} for room in rooms}
    tracemalloc.start()
    try:
        world = JsonWorld(document)
        assert _held() < 3 * world.root.size
        for room in rooms:
            world = world.changed((patch.replace(f"/{room}/guest", "Ada"),))
        assert _held() < 3 * world.root.size
    finally:
        tracemalloc.stop()


def _held() -> int:
    """Bytes of memory, without the leaves that were parsed last."""
    parsed.cache_clear()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
