from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from footlights.authority import JsonWorld, NotCanonical, PatchFailed, World, digest, patch
from footlights.errors import TooLarge

if TYPE_CHECKING:
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
