"""Who comes back is told how every turn ended, also after a restart, and nothing twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    InvalidCommand,
    Limits,
    MemoryLedger,
    SessionParams,
    StreamEvent,
    TurnInterrupted,
    UnknownSession,
    UnknownTurn,
    laws,
    open_stage,
)
from footlights.recall import RESTART_SEQ
from footlights.testing import only, take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from trio.testing import MockClock

    from footlights import Cast, InteractionSession
    from footlights.authority import CommitRecord


def cast() -> Cast:
    return standard_cast(ScriptedModel(lambda prompt: [Say("Good evening to you.")], pace=0.01))


async def told(
    session: InteractionSession, after: Mapping[str, int], terminal_seen: Collection[str] = ()
) -> list[StreamEvent]:
    async with session.subscribe(after, terminal_seen) as stream:
        return [] if stream.outbox.is_empty else await stream.receive_batch()


async def test_a_turn_settled_long_ago_is_answered_from_the_ledger(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        first = await take_turn(session, "One.")
        for said in ("Two.", "Three."):
            await take_turn(session, said)
        turn_id = first[0].turn_id
        events = await told(session, {turn_id: 4})
        [commit] = [event for event in events if event.turn_id == turn_id]
        assert commit.seq == RESTART_SEQ + 1
        assert commit.payload.dropped_seq_ranges[0].start_seq == 5
        assert only([commit], CommitFinal).commit_digest == only(first, CommitFinal).commit_digest
        assert laws.check([*first[:5], commit]) == []


async def test_a_restart_ends_every_turn_that_was_not_committed(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    async with open_stage(cast(), ledger=ledger) as stage:
        session = stage.start()
        whole = await take_turn(session, "One.")
        session_id = session.session_id
    seen = [whole[0], whole[1]]
    lost = "t1-000777"  # accepted, and then the process died

    async with open_stage(cast(), ledger=ledger) as stage:
        session = stage.resume(session_id)
        assert stage.resume(session_id).session_id == session_id
        events = await told(session, {whole[0].turn_id: 1, lost: 3})
        committed = [event for event in events if event.turn_id == whole[0].turn_id]
        assert [event.event_type for event in committed] == [EventType.COMMIT_FINAL]
        assert laws.check([*seen, *committed]) == []

        interrupted = [event for event in events if event.turn_id == lost]
        assert [event.seq for event in interrupted] == [RESTART_SEQ, RESTART_SEQ + 1]
        assert only(interrupted, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
        commit = only(interrupted, CommitFinal)
        assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED
        assert [issue.code for issue in commit.issues] == ["runtime_restart"]

        again = await told(session, {lost: 3})
        assert only(again, CommitFinal) == commit, "the same is told whenever somebody asks"


async def test_what_was_seen_is_not_told_again(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    turn_id = "t1-000009"
    async with open_stage(cast(), ledger=ledger) as stage:
        session = stage.resume("inn")
        seen_terminal = await told(session, {turn_id: 7}, terminal_seen=[turn_id])
        assert [event.event_type for event in seen_terminal] == [EventType.COMMIT_FINAL]
        cut_between = await told(session, {turn_id: RESTART_SEQ})
        assert [event.event_type for event in cut_between] == [EventType.COMMIT_FINAL]
        assert await told(session, {turn_id: RESTART_SEQ + 1}) == []


async def test_a_turn_that_this_epoch_never_gave_out_is_unknown(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        for turn_id in ("t1-000001", "t2-000001", "nonsense"):
            with pytest.raises(UnknownTurn):
                await told(session, {turn_id: 0})


async def test_nobody_may_ask_after_too_many_turns_at_once(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    async with open_stage(cast(), ledger=ledger, limits=Limits(max_turns_per_subscriber=2)) as stage:
        with pytest.raises(InvalidCommand, match="max_turns_per_subscriber"):
            await told(stage.start(), {f"t1-00000{n}": 0 for n in range(3)})


async def test_a_session_is_resumed_by_its_name_or_by_a_number_of_an_earlier_epoch(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    async with open_stage(cast(), ledger=ledger) as stage:
        numbered = stage.start().session_id
    async with open_stage(cast(), ledger=ledger) as stage:
        assert stage.resume(numbered).session_id == numbered
        named = stage.start(SessionParams(session_id="inn"))
        first = await take_turn(named, "One.")
        await named.close()
        again = await take_turn(stage.resume("inn"), "Two.")
        assert again[0].turn_id != first[0].turn_id
        with pytest.raises(UnknownSession):
            stage.resume("s2-000001")
        with pytest.raises(UnknownSession):
            stage.resume("s9-000001")
        with pytest.raises(InvalidCommand):
            stage.resume("no such name!")


async def test_a_cursor_keeps_turns_that_still_wait_though_the_session_forgot_them(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=0)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first, second = session.begin_turn("One."), session.begin_turn("Two.")
            await session.finalize(second).wait()
            taken: list[StreamEvent] = []
            while EventType.COMMIT_FINAL not in {event.event_type for event in taken}:
                taken.append(await anext(stream))
        events = taken + await told(session, stream.cursor)
    commits = sorted(event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL)
    assert commits == [first, second], "each once"


async def test_who_took_a_turn_whole_is_never_told_of_it_again(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        await session.finalize(session.begin_turn("Before it came.")).wait()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("One.")
            async for _ in stream.until_commit(turn_id):
                pass
        assert await told(session, stream.cursor) == [], "while it is retained"
        await session.finalize(session.begin_turn("Two.")).wait()
        later = await told(session, stream.cursor)
        assert turn_id not in {event.turn_id for event in later}, "and when it is forgotten"


async def test_a_turn_that_is_forgotten_while_the_ledger_is_asked_is_not_lost(quiet_clock: MockClock) -> None:
    class Slow(MemoryLedger):
        async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
            if not evicting.is_set():
                evicting.set()
                await take_turn(session, "Three.")
            return await super().find(session_id, turn_id)

    evicting = trio.Event()
    async with open_stage(cast(), ledger=Slow(), limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        forgotten, retained = [(await take_turn(session, said))[0].turn_id for said in ("One.", "Two.")]
        events = await told(session, {forgotten: 1, retained: 1})
    assert {forgotten, retained} <= {event.turn_id for event in events}


async def test_what_nobody_remembers_is_not_made_up(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), ledger=MemoryLedger(max_records=1), limits=Limits(replay_turns=0)) as stage:
        session = stage.start()
        turn_id = (await take_turn(session, "One."))[0].turn_id
        await take_turn(session, "Two.")
        with pytest.raises(UnknownTurn):
            await told(session, {turn_id: 1})


@pytest.mark.parametrize("seq", [-2, 1.0, "1"])
async def test_a_seq_that_cannot_be_is_refused(quiet_clock: MockClock, seq: int) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    async with open_stage(cast(), ledger=ledger) as stage:
        with pytest.raises(InvalidCommand):
            await told(stage.start(), {"t1-000001": seq})


async def test_an_earlier_epochs_turn_may_be_asked_for_by_every_call(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    async with open_stage(cast(), ledger=ledger) as stage:
        first = await take_turn(stage.start(SessionParams(session_id="inn")), "One.")
    turn_id = first[0].turn_id
    async with open_stage(cast(), ledger=ledger) as stage:
        session = stage.resume("inn")
        assert await session.finalize(turn_id).wait() == only(first, CommitFinal)
        assert session.cancel(turn_id) == ()
        session.heard(turn_id, 1)
        async with session.subscribe(after={turn_id: 1}) as stream:
            [commit] = [event async for event in stream.until_commit(turn_id)]
        assert commit.event_type is EventType.COMMIT_FINAL
