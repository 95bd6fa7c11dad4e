"""Deciding and speaking: a voice that fails, hangs or is slow costs its callout the voice, and nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio

from footlights.mission import (
    Certainty,
    Classification,
    Context,
    History,
    MissionEvent,
    MissionEventType,
    SessionState,
    Tier,
    UtilityPayload,
    compose,
)
from footlights.testing import cancel_everywhere
from footlights_actors.announcer import VOICE_SECONDS, Announcement, Announcer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.testing.trial import Trial

LISTENING = Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE)


def event(words: str) -> MissionEvent:
    kind = MissionEventType.THREAT_UPDATE, Classification.CRITICAL
    return MissionEvent(
        mission_id="heist",
        event_id="e1",
        event_type=kind[0],
        classification=kind[1],
        certainty=Certainty.CONFIRMED,
        text=compose(*kind, change=words),
    )


class Speaker:
    """A voice that does something first."""

    def __init__(self, first: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        self.first = first
        self.said: list[str] = []

    async def speak(self, payload: UtilityPayload) -> None:
        assert payload.voice is not None
        await self.first()
        self.said.append(payload.voice.text)


def clock_ms() -> int:
    return round(trio.current_time() * 1_000)


def reason(announcement: Announcement) -> str | None:
    return announcement.payload.suppression.reason


async def break_down() -> None:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("secret words")


async def test_what_may_be_spoken_is_spoken(quiet_clock: trio.testing.MockClock) -> None:
    speaker = Speaker()
    announcer = Announcer(clock_ms, speaker)
    told = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(told), told.voice_failed, speaker.said) == (None, False, ["Fire."])
    assert told.at_ms == clock_ms()
    again = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(again), again.voice_failed, speaker.said) == ("dedupe_cooldown", False, ["Fire."])


async def test_without_a_voice_everything_is_decided_all_the_same(quiet_clock: trio.testing.MockClock) -> None:
    assert reason(await Announcer(clock_ms).announce(event("Fire."), LISTENING)) is None


async def test_considering_speaks_nothing_and_spends_nothing(quiet_clock: trio.testing.MockClock) -> None:
    speaker = Speaker()
    announcer = Announcer(clock_ms, speaker)
    assert announcer.consider(event("Fire."), LISTENING).speak
    assert announcer.consider(event("Fire."), LISTENING, at_ms=5).speak
    assert (announcer.history, speaker.said) == (History(), [])


async def test_a_voice_that_fails_is_told_and_opens_the_breaker(
    quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    speaker = Speaker(break_down)
    announcer = Announcer(clock_ms, speaker)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            failed = await announcer.announce(event("Fire."), LISTENING)
            assert (reason(failed), failed.voice_failed) == ("voice_backend_error", True)
            assert failed.payload.text == event("Fire.").text
    refused = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(refused), refused.voice_failed) == ("voice_backend_error", False)
    assert refused.payload.suppression.cooldown_ms == 30_000
    assert len(caplog.records) == 3
    assert "secret" not in caplog.text
    assert "Fire" not in caplog.text
    await trio.sleep(30)
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_voice_that_hangs_has_failed(quiet_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    failed = await Announcer(clock_ms, Speaker(trio.sleep_forever)).announce(event("Fire."), LISTENING)
    assert failed.voice_failed
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS)


async def test_a_time_of_another_clock_can_be_gone_by(quiet_clock: trio.testing.MockClock) -> None:
    announcer = Announcer(clock_ms, Speaker(break_down))
    failed = await announcer.announce(event("Fire."), LISTENING, at_ms=77)
    assert (failed.at_ms, announcer.history.failures) == (77, (77,))


async def test_two_speak_at_once_and_the_third_waits(quiet_clock: trio.testing.MockClock) -> None:
    speaking, most = 0, 0

    async def take_a_second() -> None:
        nonlocal speaking, most
        speaking += 1
        most = max(most, speaking)
        await trio.sleep(1)
        speaking -= 1

    announcer = Announcer(clock_ms, Speaker(take_a_second))
    async with trio.open_nursery() as nursery:
        for words in ("One.", "Two.", "Three."):
            nursery.start_soon(announcer.announce, event(words), LISTENING)
    assert most == 2


def test_a_voice_that_is_cancelled_anywhere_leaves_the_next_callout_its_own() -> None:
    async def scenario(trial: Trial) -> None:
        speaker = Speaker(break_down)
        announcer = Announcer(clock_ms, speaker)
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            for words in ("Fire.", "Flood."):
                assert (await announcer.announce(event(words), LISTENING)).voice_failed
        speaker.first = trio.lowlevel.checkpoint
        assert reason(await announcer.announce(event("Storm."), LISTENING)) is None
        assert speaker.said == ["Storm."]

    assert cancel_everywhere(scenario, orders=1).points > 3
