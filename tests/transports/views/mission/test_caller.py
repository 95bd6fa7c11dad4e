"""The caller of a session: real turns are called out, whatever the voice does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    Limits,
    MemoryLedger,
    SessionParams,
    ToolContext,
    TurnParams,
    open_stage,
    tool,
)
from footlights.authority import RuleBook, accept, patch
from footlights.authority.record import commit_final
from footlights.errors import LedgerUnavailable, SessionClosed
from footlights.testing import cancel_everywhere, only, take_turn
from footlights.testing.faults import FlakyLedger
from footlights_actors import Call, Fail, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.views.mission import caller as caller_module
from footlights_transports.views.mission.announcer import Announcement, Announcer
from footlights_transports.views.mission.caller import Caller
from footlights_transports.views.mission.pure.raised import RaisedEvent, raise_events
from tests.kit.callouts import LISTENING, clock_ms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights.authority import CommitRecord, Ruling
    from footlights_actors import Line
    from footlights_kit.trial import Trial
    from footlights_transports.views.mission.pure.payload import UtilityPayload
    from footlights_transports.views.mission.voice import Voice


def script(prompt: Prompt) -> Iterable[Line]:
    if "fail" in prompt.user:
        return [Fail(RuntimeError("secret words"))]
    if "stay" in prompt.user:
        return [Say("Well,"), Stall()]
    return [Say("Good evening.")]


class Silent:
    """A voice that hangs, or fails at once."""

    def __init__(self, *, hangs: bool) -> None:
        self.hangs = hangs
        self.asked = 0

    async def speak(self, payload: UtilityPayload) -> None:
        self.asked += 1
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        raise RuntimeError("no voice")


@asynccontextmanager
async def called(session: InteractionSession, *, voice: Voice | None = None) -> AsyncGenerator[list[Announcement]]:
    """The latest announcement of each event. At the end the session is closed, and the caller ends by itself."""
    told: list[Announcement] = []

    def tell(announcement: Announcement) -> None:
        if announcement.is_amended:
            (place,) = [n for n, each in enumerate(told) if each.event is announcement.event]
            told[place] = announcement
        else:
            told.append(announcement)

    async with Announcer(clock_ms, voice) as announcer, trio.open_nursery() as nursery:
        nursery.start_soon(Caller(session, announcer, lambda: LISTENING, tell).run)
        yield told
        await session.close()


def kinds(told: list[Announcement]) -> list[tuple[str, str | None]]:
    return [(each.payload.event_type.value, each.payload.suppression.reason) for each in told]


def cast() -> Cast:
    return standard_cast(ScriptedModel(script))


async def test_turns_are_called_out_as_they_end(quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        async with called(session) as told:
            await take_turn(session, "Hello")
            await take_turn(session, "fail, please")
            staying = session.begin_turn("stay")
            await trio.testing.wait_all_tasks_blocked()
            session.cancel(staying)
            await session.finalize(staying).wait()
            await trio.testing.wait_all_tasks_blocked()
    assert kinds(told) == [("state_change", None), ("threat_update", None), ("debrief", None)]
    assert all(each.payload.mission_id == session.session_id for each in told)
    assert not any("secret" in each.payload.text.block for each in told)


@tool
async def ring(*, context: ToolContext) -> str:
    """Ring the bell."""
    await trio.lowlevel.checkpoint()
    bell = RaisedEvent("timer_update", "info", "confirmed", "The bell has rung.", next_action="Come in now.")
    context.request_commit(bell.intent(context.tool_call_id))
    return "rung"


def watch(_: object, intents: object) -> Ruling:
    guard = RaisedEvent("threat_update", "warn", "hypothesis", "The guard may have heard that.")
    return accept(patch.replace("/noise", 1), artifacts=[guard.artifact])


@pytest.mark.shows("callouts-58")
async def test_callouts_come_from_the_rules_and_the_tools_of_the_game(quiet_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(lambda prompt: [Say("Rung.")] if prompt.exchanges else [Call("ring", {})])
    rules = RuleBook({"watch": watch, "raised": raise_events})
    ledger = MemoryLedger()
    async with open_stage(standard_cast(model, tools=[ring], rules=rules, world={"noise": 0}), ledger=ledger) as stage:
        session = stage.start(SessionParams(session_id="heist"))
        async with called(session) as told:
            commit = only(await take_turn(session, "Ring."), CommitFinal)
        assert [each.payload.voice.text for each in told if each.payload.voice is not None] == [
            "Possibly: The guard may have heard that.",
            "The bell has rung. Come in now.",
        ]
        assert [each.payload.evidence_refs[1] for each in told] == [f"commit:{commit.commit_id}"] * 2
        (record,) = await ledger.latest("heist", 1)
        assert commit_final(record) == commit, "the same is told after a restart"


async def test_an_interrupted_turn_raises_nothing(quiet_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(lambda prompt: [Stall()] if prompt.exchanges else [Call("ring", {})])
    cast = standard_cast(model, tools=[ring], rules=RuleBook({"raised": raise_events}))
    async with open_stage(cast) as stage:
        session = stage.start()
        async with called(session) as told:
            turn_id = session.begin_turn("Ring.")
            await trio.sleep(1)
            session.cancel(turn_id)
            await session.finalize(turn_id).wait()
            await trio.testing.wait_all_tasks_blocked()
        assert kinds(told) == [("debrief", None)]


async def test_a_pending_approval_and_its_answer_are_called_out(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage:
        session = stage.start()
        async with called(session) as told:
            await take_turn(session, "sell me the lantern")
            await trio.sleep(60)
            await take_turn(session, "Yes.", TurnParams(approvals={"a-000001": True}))
    assert [kind for kind, _ in kinds(told) if kind != "timer_update"] == [
        "action_required",
        "state_change",
        "debrief",
        "state_change",
    ]
    (debrief,) = [each.payload for each in told if each.payload.event_type == "debrief"]
    assert debrief.text.what_changed.endswith("The answer was yes.")
    assert debrief.voice is not None


class Unreadable(MemoryLedger):
    """A ledger that cannot be read, or finds nothing."""

    def __init__(self, *, is_broken: bool) -> None:
        super().__init__()
        self.is_broken = is_broken

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        if self.is_broken:
            raise LedgerUnavailable("It cannot be read.")
        return None


@pytest.mark.parametrize("is_broken", [True, False])
async def test_approvals_are_called_out_although_the_ledger_cannot_be_read(
    quiet_clock: trio.testing.MockClock, is_broken: bool
) -> None:
    ledger = Unreadable(is_broken=is_broken)
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=ledger) as stage:
        session = stage.start()
        async with called(session) as told:
            await take_turn(session, "sell me the lantern")
    assert [kind for kind, _ in kinds(told) if kind != "timer_update"] == ["action_required", "state_change"]


@pytest.mark.shows("callouts-54")
async def test_a_failing_voice_opens_the_breaker_and_never_affects_a_turn(quiet_clock: trio.testing.MockClock) -> None:
    voice = Silent(hangs=False)
    async with open_stage(cast()) as stage:
        session = stage.start()
        async with called(session, voice=voice) as told:
            for _ in range(4):
                events = await take_turn(session, "fail, please")
                await trio.sleep(10)
                assert events[-1].event_type == "commit_final"
    assert [reason for _, reason in kinds(told)] == ["voice_backend_error"] * 4
    assert [each.voice_failed for each in told] == [True, True, True, False]
    assert voice.asked == 3


async def test_a_hanging_voice_delays_neither_turns_nor_texts(quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(cast(), limits=Limits(stall_detach=1)) as stage:
        session = stage.start()
        async with called(session, voice=Silent(hangs=True)) as told:
            began = trio.current_time()
            for count in range(1, 4):
                await take_turn(session, "fail, please")
                await trio.testing.wait_all_tasks_blocked()
                assert len(told) == count
                assert not any(each.is_amended for each in told)
            assert trio.current_time() - began < 1
            await trio.sleep(60)
    assert kinds(told)[0] == ("threat_update", "voice_backend_error")
    assert told[0].voice_failed


async def test_callouts_are_spoken_one_after_another_in_their_order(quiet_clock: trio.testing.MockClock) -> None:
    said: list[str] = []

    class Slow:
        async def speak(self, payload: UtilityPayload) -> None:
            said.append(f"begins {payload.event_id}")
            await trio.sleep(1)
            said.append(f"ends {payload.event_id}")

    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage:
        session = stage.start()
        async with called(session, voice=Slow()) as told:
            await take_turn(session, "sell me the lantern")
            await trio.sleep(10)
    spoken = [each.payload.event_id for each in told if each.payload.voice is not None]
    assert len(spoken) > 1
    assert said == [f"{what} {event_id}" for event_id in spoken for what in ("begins", "ends")]


async def test_a_cancelled_caller_drops_the_callouts_that_wait(
    quiet_clock: trio.testing.MockClock,
) -> None:
    told: list[Announcement] = []
    async with (
        Announcer(clock_ms, Silent(hangs=True)) as announcer,
        open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage,
        trio.open_nursery() as nursery,
    ):
        session = stage.start()
        caller = Caller(session, announcer, lambda: LISTENING, told.append)
        nursery.start_soon(caller.run)
        await take_turn(session, "sell me the lantern")
        await trio.testing.wait_all_tasks_blocked()
        spoken = [each.event for each in told if each.payload.voice is not None]
        assert len(spoken) > 1
        nursery.cancel_scope.cancel()
    assert [each.event for each in told if each.voice_dropped_ms is not None] == spoken
    assert (announcer.history.missions, announcer.history.failures) == ({}, ())


async def test_callouts_above_the_limit_of_the_queue_are_dropped(
    quiet_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_module, "MAX_WAITING_CALLOUTS", 0)
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage:
        session = stage.start()
        async with called(session, voice=Silent(hangs=True)) as told:
            await take_turn(session, "sell me the lantern")
            await trio.testing.wait_all_tasks_blocked()
            dropped = [each for each in told if each.voice_dropped_ms is not None]
            assert dropped, "while one is spoken the next finds no place"
            assert all(each.payload.text.block for each in dropped)


async def test_an_event_that_was_sent_already_is_left_out(quiet_clock: trio.testing.MockClock) -> None:
    told: list[Announcement] = []
    asked: list[str] = []

    def is_told(event_id: str) -> bool:
        asked.append(event_id)
        return True

    async with (
        open_stage(cast()) as stage,
        Announcer(clock_ms) as announcer,
        trio.open_nursery() as nursery,
    ):
        session = stage.start()
        nursery.start_soon(Caller(session, announcer, lambda: LISTENING, told.append, is_told=is_told).run)
        await take_turn(session, "Hello")
        await session.close()
    assert (len(asked), told) == (1, [])


@pytest.mark.shows("callouts-54")
async def test_a_caller_is_an_observer_and_no_subscriber(quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(cast(), limits=Limits(max_subscribers=1)) as stage:
        session = stage.start()
        async with called(session) as told:
            await trio.testing.wait_all_tasks_blocked()
            async with session.subscribe():
                await session.finalize(session.begin_turn("Hello")).wait()
    assert kinds(told) == [("state_change", None)]


async def test_a_caller_ends_when_the_stage_closes_with_a_commit_in_doubt(
    quiet_clock: trio.testing.MockClock,
) -> None:
    told: list[Announcement] = []
    ended = trio.Event()

    async def run(stage: Stage) -> None:
        async with Announcer(clock_ms) as announcer:
            await Caller(stage.session("s"), announcer, lambda: LISTENING, told.append).run()
        ended.set()

    async with trio.open_nursery() as nursery:
        async with open_stage(
            cast(), ledger=FlakyLedger(MemoryLedger(), delay=inf), limits=Limits(shutdown_deadline=1)
        ) as stage:
            session = stage.start(SessionParams(session_id="s"))
            nursery.start_soon(run, stage)
            session.begin_turn("Hello")
            await trio.testing.wait_all_tasks_blocked()
        await ended.wait()
    assert told == []


async def test_a_caller_of_a_closed_session_raises(quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        await session.close()
        with pytest.raises(SessionClosed):
            await Caller(session, Announcer(clock_ms), lambda: LISTENING, print).run()


def test_a_caller_that_is_cancelled_anywhere_leaves_the_turn_alone() -> None:
    async def scenario(trial: Trial) -> None:
        async with open_stage(cast()) as stage:
            session = stage.start()
            async with trio.open_nursery() as nursery:
                scope = trio.CancelScope()
                trial.aim(scope.cancel)

                async def call() -> None:
                    async with Announcer(clock_ms, Silent(hangs=False)) as announcer:
                        with scope:
                            await Caller(session, announcer, lambda: LISTENING, lambda _: None).run()

                nursery.start_soon(call)
                turn_id = session.begin_turn("Hello")
                commit = await session.finalize(turn_id).wait()
                assert commit.commit_outcome is CommitOutcome.OK
                await session.close()

    assert cancel_everywhere(scenario, orders=1, pairs=0).points > 20
