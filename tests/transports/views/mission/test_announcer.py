"""The announcer: a voice that fails, hangs or is slow costs its callout the voice, and nothing else."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights.testing import cancel_everywhere
from footlights_transports.views.mission.announcer import (
    AUDIO_PATH,
    PLACE_SECONDS,
    VOICE_SECONDS,
    Announcement,
    Announcer,
)
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.recheck import replay
from footlights_transports.views.mission.pure.requests import read_callout
from footlights_transports.views.mission.recordings import Recordings
from tests.kit.callouts import LISTENING, TONE, ToneVoice, clock_ms
from tests.kit.callouts import mission_event as event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from footlights_kit.trial import Trial
    from footlights_transports.views.mission.pure.payload import UtilityPayload


class Speaker:
    """A voice that awaits `first` before it speaks."""

    def __init__(self, first: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint) -> None:
        self.first = first
        self.said: list[str] = []

    async def speak(self, payload: UtilityPayload) -> None:
        assert payload.voice is not None
        await self.first()
        self.said.append(payload.voice.text)


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture
async def announcer(speaker: Speaker) -> AsyncGenerator[Announcer]:
    async with Announcer(clock_ms, speaker) as opened:
        yield opened


async def announce_all(announcer: Announcer, *mission_ids: str) -> list[Announcement]:
    """Announce the same event in several missions at once; in the order of their ends."""
    ended: list[Announcement] = []

    async def announce(mission_id: str) -> None:
        ended.append(await announcer.announce(event("Fire.", mission_id=mission_id), LISTENING))

    async with trio.open_nursery() as nursery:
        for mission_id in mission_ids:
            nursery.start_soon(announce, mission_id)
    return ended


def reason(announcement: Announcement) -> str | None:
    return announcement.payload.suppression.reason


async def break_down() -> None:
    await trio.lowlevel.checkpoint()
    raise RuntimeError("secret words")


async def test_a_callout_is_spoken_once(quiet_clock: MockClock, announcer: Announcer, speaker: Speaker) -> None:
    first = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(first), first.voice_failed, speaker.said) == (None, False, ["Fire."])
    assert first.at_ms == clock_ms()
    again = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(again), again.voice_failed, speaker.said) == ("dedupe_cooldown", False, ["Fire."])


async def test_the_decision_is_the_same_without_a_voice(quiet_clock: MockClock) -> None:
    async with Announcer(clock_ms) as announcer:
        assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_dry_run_speaks_nothing_and_uses_up_no_limit(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    assert reason(announcer.consider(event("Fire."), LISTENING)) is None
    assert reason(announcer.consider(event("Fire."), LISTENING, at_ms=5)) is None
    assert (announcer.history, speaker.said) == (History(), [])


@pytest.mark.shows("callouts-52")
async def test_failures_are_reported_and_open_the_breaker(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker, caplog: pytest.LogCaptureFixture
) -> None:
    speaker.first = break_down
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
async def test_a_voice_cannot_end_the_program(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker, error: BaseException
) -> None:
    async def give_up() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    speaker.first = give_up
    failed = await announcer.announce(event("Fire."), LISTENING)
    assert (reason(failed), failed.voice_failed) == ("voice_backend_error", True)
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_voice_that_hangs_has_failed(quiet_clock: MockClock, announcer: Announcer, speaker: Speaker) -> None:
    speaker.first = trio.sleep_forever
    began = trio.current_time()
    assert (await announcer.announce(event("Fire."), LISTENING)).voice_failed
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS)


async def test_a_decision_does_not_wait_and_takes_its_place_in_the_limits(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    first, twin = announcer.decide(event("Fire."), LISTENING), announcer.decide(event("Fire."), LISTENING)
    assert (reason(first.announcement), reason(twin.announcement)) == (None, "dedupe_cooldown")
    assert speaker.said == []
    assert await announcer.speak(twin) is twin.announcement
    assert await announcer.speak(first) is first.announcement
    assert (speaker.said, first.announcement.is_amended) == (["Fire."], False)
    announcer.drop(first)
    assert (reason(first.announcement), first.announcement.is_amended) == (None, False)


async def test_callouts_that_wait_for_hanging_voices_are_dropped(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    asked: list[float] = []

    async def hang() -> None:
        asked.append(trio.current_time())
        await trio.sleep_forever()

    speaker.first = hang
    began = trio.current_time()
    ended = await announce_all(announcer, *(f"m{number}" for number in range(20)))
    assert trio.current_time() - began <= PLACE_SECONDS + VOICE_SECONDS + 0.1
    assert {reason(each) for each in ended} == {"voice_backend_error"}
    assert len(asked) == sum(each.voice_failed for each in ended) <= 4
    dropped = [each for each in ended if not each.voice_failed]
    assert all(each.voice_dropped_ms == pytest.approx(began * 1_000 + 10_000, abs=100) for each in dropped)
    assert announcer.history.missions == {}


async def test_callouts_that_wait_while_the_breaker_opens_are_dropped(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    async def fail_late() -> None:
        await trio.sleep(3)
        raise RuntimeError("no voice")

    speaker.first = fail_late
    ended = await announce_all(announcer, *(f"m{number}" for number in range(8)))
    assert [each.voice_failed for each in ended].count(True) == 4
    (left, *_) = [each for each in ended if not each.voice_failed]
    assert (reason(left), left.payload.suppression.cooldown_ms) == ("voice_backend_error", 30_000)
    assert len(announcer.history.failures) == 3


async def test_a_voice_that_resists_cancellation_delays_nothing_and_keeps_its_place(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    asked = 0
    let_go = trio.Event()

    async def resist() -> None:
        nonlocal asked
        asked += 1
        with trio.CancelScope(shield=True):
            await let_go.wait()

    speaker.first = resist
    began = trio.current_time()
    await announce_all(announcer, "a", "b")
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS)
    (third,) = await announce_all(announcer, "c")
    assert third.voice_failed
    assert trio.current_time() - began == pytest.approx(VOICE_SECONDS + PLACE_SECONDS)
    (fourth,) = await announce_all(announcer, "d")
    assert (reason(fourth), fourth.payload.suppression.cooldown_ms, asked) == ("voice_backend_error", 30_000, 2)
    let_go.set()
    await trio.sleep(31)
    speaker.first = trio.lowlevel.checkpoint
    (fifth,) = await announce_all(announcer, "e")
    assert reason(fifth) is None


async def test_voices_that_resisted_and_have_ended_do_not_count_as_stuck(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    async def resist() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(VOICE_SECONDS + 2)

    speaker.first = resist
    await announce_all(announcer, "a", "b")
    await trio.sleep(3)
    speaker.first = trio.sleep_forever
    async with trio.open_nursery() as nursery:
        nursery.start_soon(announce_all, announcer, "c", "d")
        await wait_all_tasks_blocked()
        (dropped,) = await announce_all(announcer, "e")
    assert (dropped.voice_failed, dropped.voice_dropped_ms is not None) == (False, True)


async def test_only_the_end_of_the_announcer_waits_for_a_voice_that_resists(quiet_clock: MockClock) -> None:
    async def resist() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    began = trio.current_time()
    async with Announcer(clock_ms, Speaker(resist)) as announcer:
        with trio.move_on_after(1):
            await announcer.announce(event("Fire."), LISTENING)
        assert trio.current_time() - began == 1
    assert trio.current_time() - began == 60


async def test_a_voice_goes_on_while_its_callout_does_whatever_else_is_cancelled(
    quiet_clock: MockClock,
) -> None:
    """At shutdown a request may have a little more time than the rest of the server."""
    speaker = Speaker(partial(trio.sleep, 5))
    with trio.CancelScope() as server:
        async with Announcer(clock_ms, speaker) as announcer:
            server.cancel()
            with trio.CancelScope(shield=True):
                assert reason(await announcer.announce(event("Fire."), LISTENING)) is None
    assert speaker.said == ["Fire."]


async def test_a_cancelled_callout_frees_its_place_in_the_limits_and_is_no_failure(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    speaker.first = trio.sleep_forever
    callout = announcer.decide(event("Fire."), LISTENING)
    with trio.move_on_after(1):
        await announcer.speak(callout)
    assert callout.announcement.voice_dropped_ms == clock_ms()
    assert (announcer.history.missions, announcer.history.tenants, announcer.history.failures) == ({}, {}, ())
    speaker.first = trio.lowlevel.checkpoint
    assert reason(await announcer.announce(event("Fire."), LISTENING)) is None


async def test_a_given_time_replaces_that_of_the_clock(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    speaker.first = break_down
    failed = await announcer.announce(event("Fire."), LISTENING, at_ms=77)
    assert (failed.at_ms, announcer.history.failures) == (77, (77,))


async def test_decisions_and_silent_ends_are_numbered_in_one_order(
    quiet_clock: MockClock, announcer: Announcer, speaker: Speaker
) -> None:
    speaker.first = break_down
    dropped, failing = (announcer.decide(event(words), LISTENING) for words in ("Fire.", "Flood."))
    considered = announcer.consider(event("Fire."), LISTENING)
    announcer.drop(dropped)
    await announcer.speak(failing)
    speaker.first = trio.lowlevel.checkpoint
    spoken = await announcer.announce(event("Fire."), LISTENING)
    told = (dropped.announcement, failing.announcement, considered, spoken)
    assert [(each.policy_seq, each.ended_seq) for each in told] == [(1, 4), (2, 5), (3, None), (6, None)]


async def test_two_voices_speak_at_once(quiet_clock: MockClock, announcer: Announcer, speaker: Speaker) -> None:
    speaking, most = 0, 0

    async def take_a_second() -> None:
        nonlocal speaking, most
        speaking += 1
        most = max(most, speaking)
        await trio.sleep(1)
        speaking -= 1

    speaker.first = take_a_second
    await announce_all(announcer, "a", "b", "c")
    assert most == 2


# -- recordings


class Recording:
    """The requests and the answers of an announcer."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._kept: list[tuple[dict[str, Any], UtilityPayload]] = []

    async def announce(self, text: str, mission_id: str = "heist") -> None:
        body: dict[str, Any] = {"text": text, "mission_id": mission_id, "classification": "critical", "event_id": "e"}
        body |= {"context_tier": 1, "session_state": "active"}
        request = read_callout(body, "e")
        told = await self._announcer.announce(request.event, request.context)
        body |= {"policy_ts_ms": told.at_ms, "policy_seq": told.policy_seq, "ended_seq": told.ended_seq}
        body |= {"voice_failed_ms": told.voice_failed_ms, "voice_dropped_ms": told.voice_dropped_ms}
        self._kept.append((body, told.payload))

    def check(self) -> list[str | None]:
        """Check that a replay gives the same payloads. Returns the reasons."""
        self._kept.sort(key=lambda each: each[0]["policy_seq"])
        live = [payload for _, payload in self._kept]
        assert [decision.payload for decision in replay([body for body, _ in self._kept])] == live
        return [payload.suppression.reason for payload in live]


async def test_a_replay_is_exact_within_one_millisecond() -> None:
    let_go = trio.Event()

    async def fail_when_told() -> None:
        await let_go.wait()
        raise RuntimeError("no voice")

    async with Announcer(lambda: 1_000, Speaker(fail_when_told)) as announcer:
        recording = Recording(announcer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recording.announce, "Fire.")
            await wait_all_tasks_blocked()
            await recording.announce("Fire.")
            let_go.set()
        await recording.announce("Fire.")
    assert recording.check() == ["voice_backend_error", "dedupe_cooldown", "voice_backend_error"]


async def test_a_replay_ends_voices_when_they_ended(quiet_clock: MockClock) -> None:
    """Voices about a fire hang, and the decisions meanwhile depend on when each of them ended."""

    class Choosy:
        async def speak(self, payload: UtilityPayload) -> None:
            assert payload.voice is not None
            await trio.lowlevel.checkpoint()
            if "Fire" in payload.voice.text:
                await trio.sleep_forever()

    began = trio.current_time()
    async with Announcer(clock_ms, Choosy()) as announcer:
        recording = Recording(announcer)

        async def announce(at: float, text: str, mission_id: str) -> None:
            await trio.sleep_until(began + at)
            await recording.announce(text, mission_id)

        async with trio.open_nursery() as nursery:
            for number, at in enumerate((0, 5, 11, 12, 13, 30, 43, 60, 62)):
                nursery.start_soon(announce, at, "Flood." if at > 40 else "Fire.", "a" if at < 10 else f"m{number}")
    reasons = recording.check()
    assert reasons[1] == "dedupe_cooldown"
    assert reasons[-2:] == ["voice_backend_error", None]


def test_a_voice_that_is_cancelled_anywhere_leaves_the_next_callout_alone() -> None:
    async def scenario(trial: Trial) -> None:
        speaker = Speaker(break_down)
        async with Announcer(clock_ms, speaker) as announcer:
            with trio.CancelScope() as scope:
                trial.aim(scope.cancel)
                for words in ("Fire.", "Flood."):
                    assert (await announcer.announce(event(words), LISTENING)).voice_failed
            speaker.first = trio.lowlevel.checkpoint
            assert (announcer.history.missions, announcer.history.tenants) == ({}, {})
            assert reason(await announcer.announce(event("Storm."), LISTENING)) is None
        assert speaker.said == ["Storm."]

    assert cancel_everywhere(scenario, orders=1).points > 3


def test_a_callout_that_is_cancelled_anywhere_has_a_recording_only_if_it_is_spoken(tmp_path: Path) -> None:
    async def scenario(trial: Trial) -> None:
        recordings = Recordings(tmp_path, 60, clock_ms)
        async with Announcer(clock_ms, ToneVoice(), recordings) as announcer:
            callout = announcer.decide(event("Fire."), LISTENING)
            with trio.CancelScope() as scope:
                trial.aim(scope.cancel)
                await announcer.speak(callout)
            told = callout.announcement
            assert (told.audio_url is None) is (told.payload.voice is None)
            assert (told.payload.voice is None) is (announcer.history.tenants == {})
            if told.audio_url is not None:
                assert await recordings.read(None, told.audio_url.removeprefix(f"{AUDIO_PATH}/")) == TONE

    assert cancel_everywhere(scenario, orders=1).points > 3
