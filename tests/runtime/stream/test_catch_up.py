"""Catch-up: a resuming subscriber gets the end of every turn exactly once, also after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights import (
    Busy,
    BusyRule,
    CommitFinal,
    CommitOutcome,
    Detached,
    EventType,
    InterruptReason,
    InvalidCommand,
    KeyMissing,
    LedgerUnavailable,
    Limits,
    MemoryLedger,
    ModelError,
    SessionClosed,
    SessionParams,
    SessionState,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    UnknownSession,
    UnknownTurn,
    laws,
    open_stage,
)
from footlights.authority.rules import every_turn, refuse
from footlights.events import SeqRange
from footlights.failure_texts import known
from footlights.stream.cursor import ALL_SEEN, RESTART_SEQ
from footlights.testing import only, take_turn
from footlights_actors import Fail, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import Cast, ErrorInfo, InteractionSession
    from footlights.authority import CommitRecord, TurnRequest, World


def cast() -> Cast:
    return standard_cast(ScriptedModel(lambda prompt: [Say("Good evening to you.")], pace=0.01))


async def told(
    session: InteractionSession, after: Mapping[str, int], terminal_seen: Collection[str] = ()
) -> list[StreamEvent]:
    async with session.subscribe(after, terminal_seen) as stream:
        return [] if stream.is_empty else await stream.receive_batch()


async def test_a_turn_settled_long_ago_is_answered_from_the_ledger(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        first = await take_turn(session, "One.")
        for said in ("Two.", "Three."):
            await take_turn(session, said)
        turn_id = first[0].turn_id
        events = [event for event in await told(session, {turn_id: 4}) if event.turn_id == turn_id]
        assert [event.seq for event in events] == [RESTART_SEQ, ALL_SEEN]
        gap = (SeqRange(5, RESTART_SEQ - 1),)
        assert only(events, TurnFinal) == TurnFinal("", text_forgotten=True, dropped_seq_ranges=gap)
        assert only(events, CommitFinal) == only(first, CommitFinal)
        assert laws.check([*first[:5], *events]) == []


REFUSALS = {"no_rooms": ["no_rooms"], "turn_interrupted": ["rule_error"]}


@pytest.mark.parametrize("code", REFUSALS)
async def test_a_turn_that_the_rules_refused_is_rebuilt_as_not_interrupted(quiet_clock: MockClock, code: str) -> None:
    rules = {"rooms": every_turn(lambda world, intents: refuse(code, "The turn was interrupted: canceled."))}
    refusing = standard_cast(ScriptedModel(lambda prompt: [Say("Good evening.")]), rules=rules)
    async with open_stage(refusing, limits=Limits(replay_turns=0)) as stage:
        session = stage.start()
        turn_id = (await take_turn(session, "One."))[0].turn_id
        events = await told(session, {turn_id: -1})
    assert only(events, TurnFinal).text_forgotten
    assert [issue.code for issue in only(events, CommitFinal).issues] == REFUSALS[code]


async def stop_by_cancel(session: InteractionSession) -> None:
    session.cancel()


async def stop_by_barging_in(session: InteractionSession) -> None:
    session.begin_turn("Two.", TurnParams(busy=BusyRule.INTERRUPT))


async def stop_by_closing(session: InteractionSession) -> None:
    await session.close()


@pytest.mark.parametrize(
    ("error", "rebuilt"),
    [
        (KeyMissing(sentence="inn.example requires a key (HTTP 401)."), known("model_key_missing")),
        (ModelError("xyzzy"), known("model_error")),
        (TimeoutError("xyzzy"), known("model_timeout")),
    ],
    ids=["specific", "unspecific", "timeout"],
)
async def test_a_turn_that_failed_is_rebuilt_with_its_code_and_not_with_its_sentence(
    error: Exception, rebuilt: ErrorInfo, tmp_path: Path
) -> None:
    failing = standard_cast(ScriptedModel(lambda _: [Fail(error)]))
    async with open_stage(failing, ledger=tmp_path / "inn.ledger") as stage:
        session = stage.start(SessionParams(session_id="inn"))
        turn_id = session.begin_turn("One.")
        commit = await session.finalize(turn_id).wait()
    async with open_stage(failing, ledger=tmp_path / "inn.ledger") as stage:
        events = await told(stage.resume("inn"), {turn_id: -1})
    assert only(events, TurnInterrupted).error == rebuilt
    assert only(events, CommitFinal) == commit
    specific = [] if rebuilt.code == "model_error" else [rebuilt.code]
    assert [issue.code for issue in commit.issues] == ["turn_interrupted", *specific]
    assert laws.check(events) == []
    kept = _all_in(tmp_path)
    assert b"inn.example" not in kept
    assert b"xyzzy" not in kept


def _all_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("can_write", [True, False])
@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (stop_by_cancel, InterruptReason.CANCELED),
        (stop_by_barging_in, InterruptReason.BARGE_IN),
        (stop_by_closing, InterruptReason.SESSION_CLOSED),
    ],
)
async def test_an_interrupted_turn_is_rebuilt_with_its_reason(
    quiet_clock: MockClock,
    stop: Callable[[InteractionSession], Awaitable[None]],
    reason: InterruptReason,
    can_write: bool,
) -> None:
    ledger = Ailing()
    ledger.can_write = can_write
    async with open_stage(cast(), ledger=ledger, limits=Limits(replay_turns=0)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("One.")
            seen = [await anext(stream)]
        await stop(session)
        commit = await session.finalize(turn_id).wait()
        events = [event for event in await told(session, stream.cursor) if event.turn_id == turn_id]
    assert only(events, TurnInterrupted).reason is reason
    assert only(events, CommitFinal) == commit
    assert laws.check(seen + events) == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_subscriber_that_saw_the_end_and_not_the_commit_gets_no_second_end(
    quiet_clock: MockClock, restarts: bool
) -> None:
    ledger, limits = MemoryLedger(), Limits(replay_turns=0)
    async with open_stage(cast(), ledger=ledger, limits=limits) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("One.")
            assert stream.terminal_seen == set()
            seen: list[StreamEvent] = []
            while turn_id not in stream.terminal_seen:
                seen.append(await anext(stream))
        assert seen[-1].event_type is EventType.TURN_FINAL
        await session.finalize(turn_id).wait()
        if not restarts:
            rest = await told(session, stream.cursor, stream.terminal_seen)
    if restarts:
        async with open_stage(cast(), ledger=ledger, limits=limits) as stage:
            rest = await told(stage.resume(session.session_id), stream.cursor, stream.terminal_seen)
    assert [event.event_type for event in rest] == [EventType.COMMIT_FINAL]
    assert laws.check(seen + rest) == []


async def test_who_took_an_end_that_was_recalled_goes_on_behind_it(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=0)) as stage:
        session = stage.start()
        turn_id = (await take_turn(session, "One."))[0].turn_id
        async with session.subscribe({turn_id: -1}) as stream:
            assert (await anext(stream)).event_type is EventType.TURN_FINAL
            assert stream.cursor == {turn_id: RESTART_SEQ}
            assert stream.terminal_seen == {turn_id}
        assert [event.seq for event in await told(session, stream.cursor)] == [ALL_SEEN], "also without terminal_seen"
        async with session.subscribe(stream.cursor, stream.terminal_seen) as again:
            assert again.terminal_seen == {turn_id}
            assert (await anext(again)).event_type is EventType.COMMIT_FINAL
            assert again.terminal_seen == set()


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
        assert [event.event_type for event in committed] == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]
        assert laws.check([*seen, *committed]) == []

        interrupted = [event for event in events if event.turn_id == lost]
        assert [event.seq for event in interrupted] == [RESTART_SEQ, RESTART_SEQ + 1]
        assert only(interrupted, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
        commit = only(interrupted, CommitFinal)
        assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED
        assert [issue.code for issue in commit.issues] == ["runtime_restart"]

        again = await told(session, {lost: 3})
        assert only(again, CommitFinal) == commit, "the same is told whenever somebody asks"


async def test_finalize_returns_the_commit_that_a_subscriber_gets(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    async with open_stage(cast(), ledger=ledger) as stage:
        session = stage.resume("inn")
        handle = session.finalize("t1-000009")
        assert handle.commit is None
        commit = await handle.wait()
        assert commit == evolve(only(await told(session, {"t1-000009": 3}), CommitFinal), dropped_seq_ranges=())
        assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED


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


async def all_told(session: InteractionSession, cursor: Mapping[str, int]) -> tuple[list[StreamEvent], int]:
    """What one is told who comes back as often as it is sent away, and how often that was."""
    events: list[StreamEvent] = []
    for returns in range(100):
        async with session.subscribe(cursor) as stream:
            try:
                with trio.move_on_after(1):
                    while True:
                        events += await stream.receive_batch(3)
            except Detached:
                cursor = stream.cursor
            else:
                return events, returns
    raise AssertionError("it goes on for ever")


async def test_many_missed_turns_are_delivered_in_portions(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    async with open_stage(cast(), ledger=ledger, limits=Limits(max_turns_per_subscriber=2)) as stage:
        lost = {f"t1-00000{n}": 0 for n in range(1, 6)}
        events, returns = await all_told(stage.start(), lost)
    assert [event.turn_id for event in events] == [each for each in lost for _ in range(2)]
    assert returns == 2


@pytest.mark.parametrize("replay_turns", [0, 1, 3])
@pytest.mark.parametrize("portion", [1, 2, 64])
async def test_turns_that_others_began_while_it_was_away_are_told(
    quiet_clock: MockClock, replay_turns: int, portion: int
) -> None:
    limits = Limits(replay_turns=replay_turns, max_turns_per_subscriber=portion)
    async with open_stage(cast(), limits=limits) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            seen = [event async for event in stream.until_commit(session.begin_turn("One."))]
        others = [(await take_turn(session, "Meanwhile."))[0].turn_id for _ in range(7)]
        events, _ = await all_told(session, stream.cursor)
    assert laws.check(seen + events) == []
    assert [event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL] == others, "each once"


async def test_a_turn_that_it_began_and_saw_nothing_of_hides_none_before_it(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        first, *others = [(await take_turn(session, "Meanwhile."))[0].turn_id for _ in range(6)]
        events, _ = await all_told(session, {first: ALL_SEEN, others[-1]: -1})
        assert sorted({event.turn_id for event in events}) == others
        for taken in range(4):
            async with session.subscribe({first: ALL_SEEN, others[-2]: -1}) as stream:
                told_first = [await anext(stream) for _ in range(taken)]
            rest, _ = await all_told(session, stream.cursor)
            ended = [each.turn_id for each in (*told_first, *rest) if each.event_type is EventType.TURN_FINAL]
            assert ended[: len(others) - 1] == others[:-1]


async def test_also_to_one_that_had_seen_nothing_yet_and_after_a_restart(quiet_clock: MockClock) -> None:
    ledger, turns = MemoryLedger(), list[str]()
    async with open_stage(cast(), ledger=ledger, limits=Limits(replay_turns=0)) as stage:
        session = stage.start(SessionParams(session_id="inn"))
        async with session.subscribe() as stream:
            cursor = stream.cursor
        async with session.subscribe(after={}) as stream:
            assert stream.cursor == cursor == {"t1-000000": ALL_SEEN}
        turns += [(await take_turn(session, "Before."))[0].turn_id for _ in range(2)]
    async with open_stage(cast(), ledger=ledger, limits=Limits(replay_turns=0)) as stage:
        turns += [(await take_turn(stage.resume("inn"), "After."))[0].turn_id]
        events, _ = await all_told(stage.resume("inn"), cursor)
    assert turns == ["t1-000001", "t1-000002", "t2-000001"]
    assert [event.turn_id for event in events] == [each for each in turns for _ in range(2)]


async def test_a_cursor_names_no_turn_before_it_was_told_of_all_that_began_earlier(quiet_clock: MockClock) -> None:
    at_once = TurnParams(busy=BusyRule.CONCURRENT)
    async with open_stage(cast(), limits=Limits(replay_turns=2)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            cursor = stream.cursor
        slow, quick = session.begin_turn("One of many words.", at_once), session.begin_turn("Two.", at_once)
        session.cancel(quick)  # so the later one is settled, and retained, first
        await session.finalize(quick).wait()
        await session.finalize(slow).wait()
        async with session.subscribe(cursor) as stream:
            assert [(await anext(stream)).turn_id for _ in range(2)] == [slow, quick]


@pytest.mark.parametrize("turn_id", ["t1-000000", "t2-000000"])
async def test_the_id_before_the_first_is_no_turn(quiet_clock: MockClock, turn_id: str) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        for call in (session.cancel, session.finalize, lambda each: session.heard(each, 0)):
            with pytest.raises(UnknownTurn):
                call(turn_id)
        with pytest.raises(UnknownTurn):
            await told(session, {turn_id: 0})
        if turn_id.startswith("t2"):
            with pytest.raises(UnknownTurn):
                await told(session, {turn_id: ALL_SEEN})


async def test_who_was_away_when_a_session_closed_gets_the_end_of_it(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), limits=Limits(replay_turns=1, replay_sessions=1)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first = session.begin_turn("One.")
            seen = [await anext(stream)]
        await session.finalize(first).wait()
        last = session.begin_turn("Two.")
        await session.close()
        closed = stage.closed_session(session.session_id)
        assert closed.state is SessionState.CLOSED
        async with closed.subscribe(stream.cursor) as rest:
            seen += [event async for event in rest]
        assert rest.is_exhausted
        assert laws.check(seen) == []
        commits = [event.turn_id for event in seen if event.event_type is EventType.COMMIT_FINAL]
        assert sorted(commits) == [first, last]
        assert only([event for event in seen if event.turn_id == last], TurnInterrupted).reason is (
            InterruptReason.SESSION_CLOSED
        )
        with pytest.raises(SessionClosed):
            closed.begin_turn("Anybody?")

        await stage.start().close()
        with pytest.raises(UnknownSession):
            stage.closed_session(session.session_id)


async def test_a_name_that_is_taken_again_is_no_closed_session(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        await stage.start(SessionParams(session_id="inn")).close()
        stage.start(SessionParams(session_id="inn"))
        with pytest.raises(UnknownSession):
            stage.closed_session("inn")


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


async def test_an_unknown_turn_is_not_made_up(quiet_clock: MockClock) -> None:
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
            events = [event async for event in stream.until_commit(turn_id)]
        assert [event.event_type for event in events] == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]


class Ailing(MemoryLedger):
    """One that cannot always write, or be read."""

    can_write = True
    can_read = True

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        if not self.can_write:
            raise LedgerUnavailable("not now")
        await super().append(records, world, requests)

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        if not self.can_read:
            raise LedgerUnavailable("not now")
        return await super().find(session_id, turn_id)

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        if not self.can_read:
            raise LedgerUnavailable("not now")
        return await super().commits_after(session_id, turn_id, limit)


@pytest.mark.parametrize("had_seen_some", [True, False])
async def test_a_turn_that_the_ledger_could_not_write_is_delivered_as_it_was(
    quiet_clock: MockClock, had_seen_some: bool
) -> None:
    ledger = Ailing()
    async with open_stage(cast(), ledger=ledger, limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            cursor = dict(stream.cursor)
        ledger.can_write = False
        lost = await take_turn(session, "One.")
        ledger.can_write = True
        for said in ("Two.", "Three."):
            await take_turn(session, said)
        if had_seen_some:
            cursor[lost[0].turn_id] = 2
        events = [event for event in await told(session, cursor) if event.turn_id == lost[0].turn_id]
        assert [event.seq for event in events] == [RESTART_SEQ, ALL_SEEN]
        assert only(events, TurnFinal).text_forgotten
        assert only(events, CommitFinal).issues == only(lost, CommitFinal).issues
        assert await session.finalize(lost[0].turn_id).wait() == only(lost, CommitFinal)


async def test_a_ledger_that_cannot_be_read_now_is_asked_again_later(quiet_clock: MockClock) -> None:
    ledger = Ailing()
    async with open_stage(cast(), ledger=ledger, limits=Limits(replay_turns=1)) as stage:
        session = stage.start()
        turns = [(await take_turn(session, said))[0].turn_id for said in ("One.", "Two.")]
        ledger.can_read = False
        with pytest.raises(Busy, match="Subscribe again later"):
            await told(session, {turns[0]: 1})
        retained = await told(session, {turns[1]: 1})
        assert retained, "what is retained needs no ledger"
        ledger.can_read = True
        assert await told(session, {turns[0]: 1})


async def test_a_number_that_was_never_given_out_names_no_session(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await ledger.begin_epoch(cast().world)
    async with open_stage(cast(), ledger=ledger) as stage:
        assert stage.resume("s1-000001").session_id == "s1-000001"
        with pytest.raises(InvalidCommand):
            stage.resume(f"s1-{'1' * 200_000}")
