"""Mirror: it never waits, keeps no content, and gives each reflection once and in order."""

from __future__ import annotations

import inspect

import pytest

from footlights import RegistrationError
from footlights_transports.views.kgent.pure.mirror import HolographicBuffer
from tests.kit.views.chat_kit import turn


@pytest.mark.shows("gateway-68", "gateway-79")
def test_reflect_never_awaits_and_keeps_metadata_only() -> None:
    mirror = HolographicBuffer()
    assert not inspect.iscoroutinefunction(mirror.reflect)
    assert mirror.reflect(turn("a", "my secret words")) is None  # type: ignore[func-returns-value]
    (reflection,) = mirror.join().take()
    assert set(turn("a").to_dict()) - set(reflection) == {"content"}
    assert reflection["id"] == "a"
    assert "my secret words" not in str(vars(mirror))


@pytest.mark.shows("gateway-88")
def test_a_late_watcher_gets_the_history_then_new_turns() -> None:
    mirror = HolographicBuffer()
    early = mirror.join()
    for name in "ab":
        mirror.reflect(turn(name))
    late = mirror.join()
    assert [each["id"] for each in late.take()] == ["a", "b"]
    assert late.take() == []
    mirror.reflect(turn("c"))
    assert [each["id"] for each in late.take()] == ["c"]
    assert [each["id"] for each in early.take()] == ["a", "b", "c"]
    assert late.missed == early.missed == 0


@pytest.mark.shows("gateway-88")
def test_a_slow_watcher_knows_what_it_missed() -> None:
    mirror = HolographicBuffer(keep=2)
    asleep = mirror.join()
    for name in "abc":
        mirror.reflect(turn(name))
    late = mirror.join()
    assert [each["id"] for each in asleep.take()] == ["b", "c"]
    assert asleep.missed == 1
    assert [each["id"] for each in late.take()] == ["b", "c"]
    assert late.missed == 0, "what was gone before it came is not missed"


def test_reflections_are_copies() -> None:
    mirror = HolographicBuffer()
    mirror.reflect(turn("a"))
    mirror.join().take()[0]["id"] = "spoiled"
    assert mirror.join().take()[0]["id"] == "a"


def test_a_mirror_of_size_zero_is_refused() -> None:
    with pytest.raises(RegistrationError):
        HolographicBuffer(keep=0)
