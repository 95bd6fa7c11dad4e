"""Nothing outlives the stage, nothing that fails on it takes anything else with it, and it closes in order."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    CommitFinal,
    CommitOutcome,
    Detached,
    DetachReason,
    EventType,
    Intent,
    IntentType,
    InteractionContext,
    InteractionSession,
    InterruptReason,
    Limits,
    MemoryLedger,
    ModelError,
    RegistrationError,
    SessionClosed,
    SessionParams,
    SessionState,
    Stage,
    TurnInterrupted,
    TurnParams,
    TurnState,
    UnknownSession,
    draft_event,
    open_stage,
)
from footlights.authority import LedgerInUse, patch
from footlights.authority.rules import accept, every_turn
from footlights.testing import only, take_turn
from footlights.testing.faults import FlakyLedger
from footlights_actors import Fail, Flood, Line, Pause, Say, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from footlights import Cast, Ledger
    from footlights.authority import Ruling
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

TALK: tuple[Line, ...] = (Say("Good evening,"), Pause(1.0), Say(" my friend."))
FAILING = TurnParams(model="failing")


class Broken(MemoryLedger):
    """A ledger with a bug: it raises what no ledger may raise."""

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await trio.sleep(1.0)
        raise ZeroDivisionError


class Counted(MemoryLedger):
    """A ledger that can say how much it holds: nothing yet."""

    def __len__(self) -> int:
        return 0


class Quits:
    """A workload that tries to take the program down in the middle of a sentence."""

    async def run(self, context: InteractionContext) -> None:
        await trio.sleep(0.5)
        context.emit_event(draft_event("token_delta", {"delta": "I have had"}))
        context.request_commit(Intent(IntentType.DECISION, "room-3"))
        raise KeyboardInterrupt


def slow_ledger(seconds: float = 1.0) -> FlakyLedger:
    return FlakyLedger(MemoryLedger(), delay=seconds)


def tavern(
    limits: Limits | None = None,
    *,
    lines: Iterable[Line] = TALK,
    ledger: Ledger | None = None,
) -> AbstractAsyncContextManager[Stage]:
    cast = standard_cast(
        ScriptedModel(lambda _: tuple(lines)),
        ScriptedModel(lambda _: (Say("Well,"), Fail(ValueError("my name is Edda"))), model_id="failing"),
        workloads={"quits": Quits()},
        rules={"house": lambda *_: accept(patch.add("/rented", value=True))},
    )
    return open_stage(cast, limits=limits, ledger=ledger, wall_clock=lambda: 0.0)


async def perform(session: InteractionSession, params: TurnParams | None = None) -> CommitFinal:
    return await session.finalize(session.begin_turn("A room?", params)).wait()


async def note_types(session: InteractionSession, seen: list[EventType]) -> None:
    async with session.subscribe() as stream:
        while batch := await stream.receive_batch():
            seen.extend(event.event_type for event in batch)


# -- sessions


@pytest.mark.shows("core-56")
async def test_sessions_are_numbered_unless_the_host_names_them() -> None:
    async with tavern() as stage:
        first, named = stage.start(), stage.start(SessionParams(session_id="inn"))
        assert (first.session_id, named.session_id) == ("s1-000001", "inn")
        assert stage.session("inn").session_id == named.session_id
        assert stage.start(SessionParams()).session_id not in {first.session_id, named.session_id}


async def test_a_session_that_is_not_open_is_unknown() -> None:
    async with tavern() as stage:
        session = stage.start()
        await session.close()
        for session_id in (session.session_id, "nobody", "x" * 10_000):
            with pytest.raises(UnknownSession) as unknown:
                stage.session(session_id)
            assert len(str(unknown.value)) < 200


async def test_two_stages_cannot_share_a_ledger_and_one_may_follow_another() -> None:
    ledger = MemoryLedger()
    async with tavern(ledger=ledger):
        with pytest.raises(LedgerInUse):
            async with tavern(ledger=ledger):
                pass
    async with tavern(ledger=ledger) as stage:
        assert stage.epoch == 2


@pytest.mark.shows("core-8")
async def test_a_name_that_comes_back_never_repeats_a_turn_id(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        numbered = stage.start()
        for _ in range(3):
            await perform(numbered)
        used: list[str] = []
        for _ in range(3):
            session = stage.start(SessionParams(session_id="inn"))
            for _ in range(2):
                used.append(session.begin_turn("A room?"))
                await session.finalize(used[-1]).wait()
            await session.close()
        assert len(set(used)) == len(used)


async def test_the_commits_of_a_name_that_comes_back_are_one_chain(quiet_clock: trio.testing.MockClock) -> None:
    ledger = MemoryLedger()
    async with tavern(ledger=ledger) as stage:
        digests: list[str] = []
        for _ in range(2):
            session = stage.start(SessionParams(session_id="inn"))
            turn_id = session.begin_turn("A room?")
            digests.append((await session.finalize(turn_id).wait()).commit_digest)
            await session.close()
        last = await ledger.find("inn", turn_id)
    assert last is not None
    assert [last.previous, last.commit_digest] == digests


async def test_a_stage_has_only_so_many_sessions() -> None:
    async with tavern(Limits(max_sessions=1)) as stage:
        session = stage.start()
        with pytest.raises(Busy):
            stage.start()
        await session.close()
        stage.start()


# -- failures


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (ModelError("Out of memory."), InterruptReason.MODEL_ERROR, "model_error"),
        (ValueError("my name is Edda"), InterruptReason.MODEL_ERROR, "ValueError"),
    ],
)
async def test_a_turn_that_fails_is_interrupted_with_a_reason_and_without_words(
    quiet_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    reason: InterruptReason,
    detail: str,
) -> None:
    async with tavern(lines=(Say("Well,"), Fail(error))) as stage:
        session = stage.start()
        events = await take_turn(session, "A room?")
    assert only(events, TurnInterrupted) == failed(reason, detail)
    assert [record.name for record in caplog.records] == ["footlights"]
    assert f"{events[0].turn_id} of {session.session_id} failed: {detail} at " in caplog.text
    assert "Edda" not in caplog.text


async def test_a_turn_that_takes_the_stage_down_is_never_announced_as_final(
    quiet_clock: trio.testing.MockClock,
) -> None:
    seen: list[EventType] = []

    async def host() -> None:
        async with tavern() as stage:
            session = stage.start()
            session.begin_turn("A room?", TurnParams(workload="quits"))
            await note_types(session, seen)

    with pytest.raises(BaseExceptionGroup):
        await host()
    assert EventType.TURN_FINAL not in seen


async def test_what_a_turn_that_takes_the_stage_down_had_staged_is_never_committed(
    quiet_clock: trio.testing.MockClock,
) -> None:
    ledger = MemoryLedger()

    async def host() -> None:
        async with tavern(ledger=ledger) as stage:
            session = stage.start(SessionParams(session_id="inn"))
            session.begin_turn("A room?", TurnParams(workload="quits"))
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup):
        await host()
    record = await ledger.find("inn", "t1-000001")
    assert record is None or record.outcome is CommitOutcome.FAIL_CLOSED


async def test_the_other_turns_of_a_stage_that_goes_down_are_not_announced_as_final(
    quiet_clock: trio.testing.MockClock,
) -> None:
    seen: list[EventType] = []

    async def host() -> None:
        async with tavern(ledger=Broken()) as stage:
            first, second = stage.start(), stage.start()
            first.cancel(first.begin_turn("A room?"))
            await trio.sleep(0.5)
            second.begin_turn("A room?")
            await note_types(second, seen)

    with pytest.raises(BaseExceptionGroup):
        await host()
    assert EventType.TURN_FINAL not in seen


async def test_the_hosts_ledger_is_used_even_if_it_is_empty() -> None:
    ledger = Counted()
    async with tavern(ledger=ledger) as stage:
        assert stage.ledger is ledger


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), ExceptionGroup("mine", [OSError()])])
async def test_the_hosts_own_exception_leaves_the_block_as_it_is(
    quiet_clock: trio.testing.MockClock, error: BaseException
) -> None:
    async def host() -> None:
        async with tavern() as stage:
            stage.start().begin_turn("A room?")
            raise error

    with pytest.raises(type(error)) as caught:
        await host()
    assert caught.value is error


async def test_a_host_that_is_cancelled_still_closes_in_order(quiet_clock: trio.testing.MockClock) -> None:
    ledger = slow_ledger()
    with trio.move_on_after(0.5) as scope:
        async with tavern(ledger=ledger) as stage:
            session = stage.start(SessionParams(session_id="inn"))
            turn_id = session.begin_turn("A room?")
            await trio.sleep_forever()
    assert scope.cancelled_caught
    record = await ledger.find("inn", turn_id)
    assert record is not None
    assert record.outcome is CommitOutcome.FAIL_CLOSED


# -- closing


async def test_leaving_interrupts_every_turn_and_ends_every_stream(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        stream = await session.subscribe().__aenter__()
        turns = [session.begin_turn("A room?") for _ in range(2)]
        await trio.sleep(0.5)
    events = [event async for event in stream]
    endings = {e.turn_id: e.payload.reason for e in events if isinstance(e.payload, TurnInterrupted)}
    assert endings == dict.fromkeys(turns, InterruptReason.SHUTDOWN)
    assert session.state is SessionState.CLOSED
    with pytest.raises(SessionClosed):
        stage.start()
    with pytest.raises(SessionClosed):
        session.begin_turn("Hello?")


async def test_leaving_waits_for_the_commit_of_a_turn_that_has_ended(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        handle = session.finalize(session.begin_turn("A room?"))
        await trio.sleep(1.5)
        assert session.statistics().turns_by_state == {TurnState.FINAL: 1}
    assert handle.commit is not None
    assert handle.commit.commit_outcome is CommitOutcome.OK


async def test_leaving_does_not_wait_for_a_commit_past_the_deadline(quiet_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    async with tavern(Limits(shutdown_deadline=2.0), ledger=slow_ledger(inf)) as stage:
        session = stage.start()
        stream = await session.subscribe().__aenter__()
        session.begin_turn("A room?")
        async for event in stream:
            if event.event_type is EventType.TURN_FINAL:
                break
    assert trio.current_time() - began == pytest.approx(3.0)
    with pytest.raises(Detached) as detached:
        await anext(stream)
    assert detached.value.reason == DetachReason.COMMIT_UNKNOWN
    assert session.state is SessionState.CLOSED


async def test_a_stage_that_was_left_takes_no_more_sessions(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        stage.start().begin_turn("A room?")
    with pytest.raises(SessionClosed):
        stage.start()


# -- statistics and plain calls


async def test_statistics_tell_what_is_open_and_how_everything_ended(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(max_sessions=7, max_open_turns=9)) as stage:
        session = stage.start()
        await perform(session)
        await perform(session, FAILING)
        canceled = session.begin_turn("A room?")
        session.cancel(canceled)
        await session.finalize(canceled).wait()
        async with session.subscribe(), stage.start().subscribe():
            session.begin_turn("A room?")
            session.begin_turn("A beer?")
            await trio.sleep(0.5)
            found = stage.statistics()
    assert (found.sessions, found.max_sessions, found.open_turns, found.max_open_turns) == (2, 7, 2, 9)
    assert found.turns_by_state == {TurnState.PERFORMING: 1, TurnState.ACCEPTED: 1}
    assert (found.turns_running, found.commits_waiting, found.tools_running, found.subscribers) == (1, 0, 0, 2)
    assert found.turns_settled == {"ok": 1, "model_error": 1, "canceled": 1}


async def test_what_a_subscriber_missed_is_remembered_when_it_is_gone(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(best_effort_max_events_per_turn=4), lines=[Flood("word ", 100)]) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            await perform(session)
            assert stream.statistics().best_effort_dropped == stage.statistics().best_effort_dropped == 96
        assert stage.statistics().best_effort_dropped == 96
        assert stage.statistics().bounded_dropped == 0


async def test_starting_and_asking_are_plain_calls() -> None:
    async with tavern() as stage:
        with trio.testing.assert_no_checkpoints():
            session = stage.start()
            stage.session(session.session_id)
            stage.statistics()
            assert stage.world == {}


async def test_a_stage_opened_on_a_file_goes_on_where_it_was(tmp_path: Path) -> None:
    @every_turn
    def told(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
        return accept(patch.replace("/told", world["told"] + 1))

    def cast() -> Cast:
        return standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]), world={"told": 0}, rules={"told": told})

    turn_ids: set[str] = set()
    paths: list[Path | str] = [tmp_path / "tavern.ledger", str(tmp_path / "tavern.ledger")]
    for number, path in enumerate(paths, start=1):
        async with open_stage(cast(), ledger=path) as stage:
            turn_ids.add((await take_turn(stage.start(), "Well?"))[0].turn_id)
            assert stage.world == {"told": number}
    assert len(turn_ids) == 2


def test_a_stage_outside_of_trio_says_so() -> None:
    async def main() -> None:
        async with open_stage(standard_cast()):
            raise AssertionError

    with pytest.raises(RegistrationError, match="open_stage needs trio"):
        asyncio.run(main())
