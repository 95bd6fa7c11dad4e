"""Deciding and speaking: a voice that fails, hangs or is slow costs its callout the voice, and nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights.testing import cancel_everywhere
from footlights_transports.views.mission.announcer import PLACE_SECONDS, VOICE_SECONDS, Announcement, Announcer
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.payload import Context, MissionEvent, UtilityPayload
from footlights_transports.views.mission.pure.replay import replay
from footlights_transports.views.mission.pure.requests import read_callout
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    Tier,
)
from footlights_transports.views.mission.pure.text import compose

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.testing.trial import Trial

LISTENING = Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE)


def event(words: str, mission_id: str = "heist") -> MissionEvent:
    kind = MissionEventType.THREAT_UPDATE, Classification.CRITICAL
    return MissionEvent(
        mission_id=mission_id,
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
    assert reason(announcer.consider(event("Fire."), LISTENING)) is None
    assert reason(announcer.consider(event("Fire."), LISTENING, at_ms=5)) is None
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


class Catastrophe(BaseException):
    """Stands for SystemExit and the like, which pytest would take for itself."""


@pytest.mark.parametrize("error", [SystemExit(), Catastrophe(), BaseExceptionGroup("both", [Catastrophe()])])
async def test_a_voice_that_would_end_the_program_costs_its_callout_the_voice_and_nothing_else(
    quiet_clock: trio.testing.MockClock, error: BaseException
) -> None:
    async def give_up() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    speaker = Speaker(give_up)
    announcer = Announcer(clock_ms, speaker)
    failed = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(failed), failed.voice_failed) == ("voice_backend_error", True)
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_voice_that_hangs_has_failed(quiet_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    failed = await Announcer(clock_ms, Speaker(trio.sleep_forever)).announce(event("Fire."), LISTENING)
    assert failed.voice_failed
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS)


async def test_deciding_waits_for_nothing_and_takes_what_speaking_will_need(
    quiet_clock: trio.testing.MockClock,
) -> None:
    speaker = Speaker()
    announcer = Announcer(clock_ms, speaker)
    first, twin = announcer.decide(event("Fire."), LISTENING), announcer.decide(event("Fire."), LISTENING)
    assert (reason(first.announcement), reason(twin.announcement)) == (None, "dedupe_cooldown")
    assert speaker.said == []
    assert await announcer.speak(twin) is twin.announcement
    assert await announcer.speak(first) is first.announcement
    assert (speaker.said, first.announcement.is_amended) == (["Fire."], False)
    announcer.drop(first)
    assert (reason(first.announcement), first.announcement.is_amended) == (None, False)


async def test_nobody_waits_long_for_a_voice_that_hangs_nor_asks_it_after_it_is_left_alone(
    quiet_clock: trio.testing.MockClock,
) -> None:
    asked: list[float] = []

    async def hang() -> None:
        asked.append(trio.current_time())
        await trio.sleep_forever()

    announcer = Announcer(clock_ms, Speaker(hang))
    began = trio.current_time()
    ended: list[Announcement] = []

    async def announce(number: int) -> None:
        ended.append(await announcer.announce(event("Fire.", f"m{number}"), LISTENING))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(announce, number)
    assert trio.current_time() - began <= PLACE_SECONDS + VOICE_SECONDS + 0.1
    assert {reason(each) for each in ended} == {"voice_backend_error"}
    assert len(asked) == sum(each.voice_failed for each in ended) <= 4
    dropped = [each for each in ended if not each.voice_failed]
    assert all(each.voice_dropped_ms == pytest.approx(began * 1_000 + 10_000, abs=100) for each in dropped)
    assert announcer.history.missions == {}


async def test_what_waited_until_the_voice_is_left_alone_is_not_spoken(quiet_clock: trio.testing.MockClock) -> None:
    async def fail_late() -> None:
        await trio.sleep(3)
        raise RuntimeError("no voice")

    announcer = Announcer(clock_ms, Speaker(fail_late))
    ended: list[Announcement] = []

    async def announce(number: int) -> None:
        ended.append(await announcer.announce(event("Fire.", f"m{number}"), LISTENING))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(announce, number)
    assert [each.voice_failed for each in ended].count(True) == 4
    (left, *_) = [each for each in ended if not each.voice_failed]
    assert (reason(left), left.payload.suppression.cooldown_ms) == ("voice_backend_error", 30_000)
    assert len(announcer.history.failures) == 3


async def test_a_voice_that_cannot_be_cancelled_is_left_behind_and_counts_as_failed(
    quiet_clock: trio.testing.MockClock,
) -> None:
    asked = 0
    let_go = trio.Event()

    async def resist() -> None:
        nonlocal asked
        asked += 1
        with trio.CancelScope(shield=True):
            await let_go.wait()

    speaker = Speaker(resist)
    announcer = Announcer(clock_ms, speaker)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for mission_id in ("a", "b"):
            nursery.start_soon(announcer.announce, event("Fire.", mission_id), LISTENING)
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS)
    third = await announcer.announce(event("Fire.", "c"), LISTENING)
    assert third.voice_failed
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS + PLACE_SECONDS)
    fourth = await announcer.announce(event("Fire.", "d"), LISTENING)
    assert (reason(fourth), fourth.payload.suppression.cooldown_ms, asked) == ("voice_backend_error", 30_000, 2)
    let_go.set()
    await trio.sleep(31)
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire.", "e"), LISTENING)) is None


async def test_voices_that_were_left_behind_and_have_ended_are_held_against_nobody(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async def resist() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(VOICE_SECONDS + 2)

    speaker = Speaker(resist)
    announcer = Announcer(clock_ms, speaker)
    async with trio.open_nursery() as nursery:
        for mission_id in ("a", "b"):
            nursery.start_soon(announcer.announce, event("Fire.", mission_id), LISTENING)
    await trio.sleep(3)
    speaker.first = trio.sleep_forever
    async with trio.open_nursery() as nursery:
        for mission_id in ("c", "d"):
            nursery.start_soon(announcer.announce, event("Fire.", mission_id), LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        crowded_out = await announcer.announce(event("Fire.", "e"), LISTENING)
    assert (crowded_out.voice_failed, crowded_out.voice_dropped_ms is not None) == (False, True)


async def test_a_callout_that_is_cancelled_gives_everything_back_and_is_no_failure(
    quiet_clock: trio.testing.MockClock,
) -> None:
    speaker = Speaker(trio.sleep_forever)
    announcer = Announcer(clock_ms, speaker)
    callout = announcer.decide(event("Fire."), LISTENING)
    with trio.move_on_after(1):
        await announcer.speak(callout)
    assert callout.announcement.voice_dropped_ms == clock_ms()
    assert (announcer.history.missions, announcer.history.tenants, announcer.history.failures) == ({}, {}, ())
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_time_of_another_clock_can_be_gone_by(quiet_clock: trio.testing.MockClock) -> None:
    announcer = Announcer(clock_ms, Speaker(break_down))
    failed = await announcer.announce(event("Fire."), LISTENING, at_ms=77)
    assert (failed.at_ms, announcer.history.failures) == (77, (77,))


async def test_everything_that_is_decided_and_everything_that_ends_has_a_place_in_one_order(
    quiet_clock: trio.testing.MockClock,
) -> None:
    speaker = Speaker(break_down)
    announcer = Announcer(clock_ms, speaker)
    dropped, failing = (announcer.decide(event(words), LISTENING) for words in ("Fire.", "Flood."))
    considered = announcer.consider(event("Fire."), LISTENING)
    announcer.drop(dropped)
    await announcer.speak(failing)
    speaker.first = trio.lowlevel.checkpoint
    spoken = await announcer.announce(event("Fire."), LISTENING)
    told = (dropped.announcement, failing.announcement, considered, spoken)
    assert [(each.policy_seq, each.ended_seq) for each in told] == [(1, 4), (2, 5), (3, None), (6, None)]


async def test_what_happens_while_the_clock_stands_still_is_decided_again_as_it_was() -> None:
    let_go = trio.Event()

    async def fail_when_told() -> None:
        await let_go.wait()
        raise RuntimeError("no voice")

    announcer = Announcer(lambda: 1_000, Speaker(fail_when_told))
    recorded: list[tuple[dict[str, Any], UtilityPayload]] = []

    async def announce() -> None:
        body: dict[str, Any] = {"text": "Fire.", "classification": "critical", "event_id": "e"}
        request = read_callout(body | {"context_tier": 1, "session_state": "active"}, "e")
        told = await announcer.announce(request.event, request.context)
        places = {"policy_ts_ms": told.at_ms, "policy_seq": told.policy_seq, "ended_seq": told.ended_seq}
        ended = {"voice_failed_ms": told.voice_failed_ms, "voice_dropped_ms": told.voice_dropped_ms}
        heard = {"context_tier": 1, "session_state": "active"}
        recorded.append((body | heard | places | ended, told.payload))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(announce)
        await trio.testing.wait_all_tasks_blocked()
        await announce()
        let_go.set()
    await announce()
    recorded.sort(key=lambda each: each[0]["policy_seq"])
    live = [payload for _, payload in recorded]
    assert [payload.suppression.reason for payload in live] == [
        "voice_backend_error",
        "dedupe_cooldown",
        "voice_backend_error",
    ]
    assert [decision.payload for decision in replay([body for body, _ in recorded])] == live


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


async def test_a_recording_of_what_was_announced_is_decided_as_it_was(quiet_clock: trio.testing.MockClock) -> None:
    """Voices about a fire hang, and what is decided meanwhile depends on when each of them ended."""

    class Choosy:
        async def speak(self, payload: UtilityPayload) -> None:
            assert payload.voice is not None
            await trio.lowlevel.checkpoint()
            if "Fire" in payload.voice.text:
                await trio.sleep_forever()

    announcer = Announcer(clock_ms, Choosy())
    began = trio.current_time()
    recorded: list[tuple[dict[str, Any], UtilityPayload]] = []

    async def announce(at: float, text: str, mission_id: str) -> None:
        await trio.sleep_until(began + at)
        body: dict[str, Any] = {"text": text, "mission_id": mission_id, "classification": "critical"}
        body |= {"context_tier": 1, "session_state": "active", "event_id": f"e{at}"}
        request = read_callout(body, "e")
        told = await announcer.announce(request.event, request.context)
        ends = {"voice_failed_ms": told.voice_failed_ms, "voice_dropped_ms": told.voice_dropped_ms}
        places = {"policy_seq": told.policy_seq, "ended_seq": told.ended_seq}
        recorded.append((body | {"policy_ts_ms": told.at_ms} | ends | places, told.payload))

    async with trio.open_nursery() as nursery:
        for number, at in enumerate((0, 5, 11, 12, 13, 30, 43, 60, 62)):
            nursery.start_soon(announce, at, "Flood." if at > 40 else "Fire.", "a" if at < 10 else f"m{number}")
    recorded.sort(key=lambda each: each[0]["policy_seq"])
    live = [payload for _, payload in recorded]
    reasons = [payload.suppression.reason for payload in live]
    assert reasons[1] == "dedupe_cooldown"
    assert reasons[-2:] == ["voice_backend_error", None]
    assert [decision.payload for decision in replay([body for body, _ in recorded])] == live
    by_time = [body | {"policy_seq": None, "ended_seq": None} for body, _ in recorded]
    assert [decision.payload for decision in replay(by_time)] == live


def test_a_voice_that_is_cancelled_anywhere_leaves_the_next_callout_its_own() -> None:
    async def scenario(trial: Trial) -> None:
        speaker = Speaker(break_down)
        announcer = Announcer(clock_ms, speaker)
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            for words in ("Fire.", "Flood."):
                assert (await announcer.announce(event(words), LISTENING)).voice_failed
        speaker.first = trio.lowlevel.checkpoint
        assert (announcer.history.missions, announcer.history.tenants) == ({}, {})
        assert reason(await announcer.announce(event("Storm."), LISTENING)) is None
        assert speaker.said == ["Storm."]

    assert cancel_everywhere(scenario, orders=1).points > 3
