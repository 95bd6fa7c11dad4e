"""StageThread: hosts without trio begin turns, poll events and get errors raised.

These tests wait in real time for what other threads do, and never for a time to pass.
"""

from __future__ import annotations

import sys
from math import inf
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    Busy,
    BusyRule,
    CommitOutcome,
    CommitUnknown,
    Detached,
    EventType,
    InterruptReason,
    InvalidCommand,
    Limits,
    MemoryLedger,
    SessionClosed,
    SessionParams,
    Stage,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    UnknownTurn,
    laws,
)
from footlights.stream.cursor import ALL_SEEN
from footlights.testing import only, payloads
from footlights.testing.faults import FlakyLedger
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports import StageThread
from footlights_transports.embed.polled_stream import CAPACITY
from tests.kit.threads import (
    LONG,
    MOOD,
    SPEECH,
    WORDS,
    cast,
    is_settled,
    no_thread_is_left,
    poll_rest,
    poll_text,
    poll_until_commit,
    script,
    text_of,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

__all__ = ["no_thread_is_left"]  # a fixture for every test here

REJECT = TurnParams(busy=BusyRule.REJECT)


# -- turns


def test_a_turn_is_begun_polled_and_committed() -> None:
    with StageThread(cast()) as stage:
        session = stage.start(SessionParams(session_id="edda"))
        turn_id = session.begin_turn("A room?")
        events = poll_until_commit(session, turn_id)
        commit = session.commit(turn_id)
        assert session.finalize(turn_id).result() == commit
        assert session.poll() == []
        assert session.is_open
    assert session.session_id == "edda"
    assert commit is not None
    assert commit.commit_outcome is CommitOutcome.OK
    assert only(events, TurnFinal).text == text_of(events) == SPEECH
    assert laws.check(events) == []


def test_a_commit_is_none_until_it_is_known() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Wait.")
        ticket = session.finalize(turn_id)
        assert session.commit(turn_id) is None
        known_before = ticket.done()
        assert session.cancel(turn_id) == (turn_id,)
        assert ticket.result().commit_outcome is CommitOutcome.FAIL_CLOSED
        assert (known_before, ticket.done()) == (False, True)
        assert ticket.result() == session.commit(turn_id)


def test_errors_come_back_to_the_caller_and_the_stage_goes_on() -> None:
    with StageThread(cast(), limits=Limits(max_sessions=1)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Wait.")
        with pytest.raises(Busy, match="reject"):
            session.begin_turn("A room?", REJECT)
        with pytest.raises(InvalidCommand, match="empty"):
            session.begin_turn(" ")
        with pytest.raises(UnknownTurn):
            session.cancel("t9-000001")
        with pytest.raises(UnknownTurn):
            session.commit("t9-000001")
        with pytest.raises(UnknownTurn):
            session.finalize("t9-000001").result()
        with pytest.raises(InvalidCommand, match="no event with seq"):
            session.heard(turn_id, 99)
        with pytest.raises(InvalidCommand, match="max_events"):
            session.poll(max_events=0)
        with pytest.raises(Busy, match="max_sessions"):
            stage.start()
        with pytest.raises(UnknownTurn):
            session.subscribe(after={"t9-000001": 3})
        with pytest.raises(ZeroDivisionError):
            stage.call(lambda _: 1 // 0)
        with pytest.raises(SystemExit):
            stage.call(lambda _: sys.exit())
        assert session.cancel() == (turn_id,)


def test_a_ticket_tells_the_answer_later() -> None:
    with StageThread(cast()) as stage:
        starting = stage.start_soon()
        session = starting.result()
        assert starting.done()
        accepted = session.begin_turn_soon("Wait.")
        refused = session.begin_turn_soon("A room?", REJECT)
        heard = session.heard_soon("t1-000001", 0)
        canceled = session.cancel_soon()
        assert heard.result() is None
        assert canceled.result() == (accepted.result(),)
        for _ in range(2):
            with pytest.raises(Busy):
                refused.result()
        closing = session.close_soon()
        assert closing.result() is None
        assert stage.call_soon(Stage.statistics).result().sessions == 0


def test_a_turn_runs_in_the_context_of_the_thread_that_began_it() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        reset = MOOD.set("merry")
        session.finalize(session.begin_turn("Well?", TurnParams(workload="tells"))).result()
        MOOD.reset(reset)
        assert told.get(timeout=LONG) == "merry"


def test_the_world_and_anything_else_can_be_asked_for() -> None:
    with StageThread(standard_cast(ScriptedModel(script), world={"coins": 3})) as stage:
        assert stage.world == {"coins": 3}
        assert stage.call(lambda stage: stage.epoch) == 1


# -- polling


def test_a_poll_gives_no_more_than_it_is_asked_for() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        session.finalize(session.begin_turn("A room?")).result()
        session.close()
        first, rest = session.poll(max_events=2), poll_rest(session)
        assert len(first) == 2
        assert len(rest) > 2
        assert laws.check([*first, *rest]) == []


def test_a_poll_with_a_timeout_returns_when_that_is_over() -> None:
    with StageThread(cast()) as stage:
        assert stage.start().poll(timeout=0.001) == []


def test_a_host_that_does_not_keep_up_gets_joined_deltas_and_all_the_text() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Talk.")
        session.finalize(turn_id).result()
        first = session.poll(max_events=2 * CAPACITY)
        events = first + poll_until_commit(session, turn_id)
    assert len(first) <= CAPACITY
    assert len(events) < WORDS
    assert text_of(events) == only(events, TurnFinal).text == " word" * WORDS
    assert laws.check(events) == []


def test_a_host_that_is_detached_resumes_without_a_gap_or_a_repeat() -> None:
    """With a patience of nothing, everybody is detached all the time."""
    times = 0
    with StageThread(cast(), limits=Limits(stall_detach=0.0)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Talk.")
        events: list[StreamEvent] = []
        while not is_settled(events, turn_id):
            try:
                events += session.poll(timeout=LONG)
            except Detached:
                assert not session.is_open
                times += 1
                session.resume()
    assert times > 0
    assert text_of(events) == " word" * WORDS
    assert laws.check(events) == []


def test_a_host_that_pauses_for_long_gets_the_words_of_every_turn() -> None:
    """The pause is past the patience of the stage: it has none."""
    with StageThread(cast(), limits=Limits(stall_detach=0.0)) as stage:
        session = stage.start()
        turns = [session.begin_turn("A room?") for _ in range(6)]
        events: list[StreamEvent] = []
        for turn_id in turns:
            session.finalize(turn_id).result()
        times = 0
        while not is_settled(events, turns[-1]):
            try:
                events += session.poll(timeout=LONG)
            except Detached:
                times += 1
                session.resume()
    assert times > 0
    assert [final.text for final in payloads(events, TurnFinal)] == [SPEECH] * 6
    assert laws.check(events) == []


def test_a_resumed_stream_goes_on_where_the_host_had_polled_and_not_where_the_stage_had_read() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        first = session.begin_turn("A room?")
        session.finalize(first).result()
        events = session.poll(max_events=3, timeout=LONG)
        assert dict(session.cursor) == {first: events[-1].seq}
        session.resume()
        events += poll_until_commit(session, first)
        second = session.begin_turn("A beer?")
        session.finalize(second).result()
        assert session.cursor[first] == ALL_SEEN
        session.resume()
        events += poll_until_commit(session, second)
        assert dict(session.cursor) == {first: ALL_SEEN, second: ALL_SEEN}
    assert laws.check(events) == []


def test_many_sessions_are_polled_by_one_host() -> None:
    with StageThread(cast()) as stage:
        sessions = [stage.start() for _ in range(12)]
        turns = [session.begin_turn("Talk.") for session in sessions]
        for session, turn_id in zip(sessions, turns, strict=True):
            events = poll_until_commit(session, turn_id)
            assert text_of(events) == " word" * WORDS
            assert laws.check(events) == []


def test_a_session_has_several_streams_and_one_of_them_can_be_let_go() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Wait.")
        poll_text(session)
        late, gone = session.subscribe(), session.subscribe(after={turn_id: 0})
        assert next(iter(gone.poll(timeout=LONG))).seq > 0
        gone.close()
        poll_rest(gone)
        assert stage.call(Stage.statistics).subscribers == 2
        session.cancel()
        events = poll_until_commit(late, turn_id)
        assert events[0].event_type is EventType.TURN_ACCEPTED
        assert laws.check(events) == []
        assert gone.poll() == []
        assert gone.cursor[turn_id] > 0


# -- the end


def test_what_was_said_until_a_session_closed_can_still_be_polled() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        turns = [session.begin_turn("Talk."), session.begin_turn("Wait.")]
        session.finalize(turns[0]).result()
        session.close()
        session.close()
        events = poll_rest(session)
        assert session.poll() == session.poll(timeout=LONG) == []
        with pytest.raises(SessionClosed):
            session.begin_turn("A room?")
        with pytest.raises(SessionClosed):
            session.subscribe()
    assert only(events, TurnInterrupted).reason is InterruptReason.SESSION_CLOSED
    assert laws.check(events) == []


def test_what_was_said_until_the_stage_closed_can_still_be_polled() -> None:
    with StageThread(cast()) as stage:
        full, waiting = stage.start(), stage.start()
        full.finalize(full.begin_turn("Talk.")).result()
        turn_id = waiting.begin_turn("Wait.")
        ticket = waiting.finalize(turn_id)
    assert ticket.result().commit_outcome is CommitOutcome.FAIL_CLOSED
    assert text_of(poll_rest(full)) == " word" * WORDS
    events = poll_rest(waiting)
    assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
    assert laws.check(events) == []
    assert waiting.cursor[turn_id] == ALL_SEEN


def test_a_closing_stage_still_answers_calls() -> None:
    class Holding(MemoryLedger):
        async def append(
            self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()
        ) -> None:
            held.put(None)
            await go_on.wait()
            await super().append(records, world, requests)

    held, go_on = SimpleQueue[None](), trio.Event()
    stage = StageThread(cast(), ledger=Holding())
    with stage:
        session = stage.start()
        turn_id = session.begin_turn("Wait.")
        poll_text(session)
        closing = Thread(target=stage.close)
        closing.start()
        held.get(timeout=LONG)
        with pytest.raises(SessionClosed):
            session.begin_turn("A room?")
        late = session.subscribe()
        stage.call(lambda _: go_on.set())
        closing.join(LONG)
    events = poll_rest(late)
    assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
    assert is_settled(events, turn_id)
    assert laws.check(events) == []


def test_a_closed_stage_refuses_everything_and_closes_again() -> None:
    stage = StageThread(cast())
    stage.close()
    with pytest.raises(SessionClosed, match="not open"):
        stage.start()
    stage = StageThread(cast())
    with stage:
        session = stage.start()
        stage.close()
    stage.close()
    session.close()
    for refused in (stage.start, lambda: session.begin_turn("A room?"), session.cancel):
        with pytest.raises(SessionClosed, match="closed"):
            refused()
    with pytest.raises(SessionClosed):
        session.resume()
    with pytest.raises(InvalidCommand, match="once"), stage:
        pass


def test_a_commit_in_doubt_at_the_end_is_reported_as_such() -> None:
    with StageThread(
        cast(), ledger=FlakyLedger(MemoryLedger(), delay=inf), limits=Limits(shutdown_deadline=0.0)
    ) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        ticket = session.finalize(turn_id)
    with pytest.raises(CommitUnknown):
        ticket.result()
    with pytest.raises(Detached) as detached:
        poll_rest(session)
    assert detached.value.reason == "commit_unknown"
    assert not session.is_open
    with pytest.raises(Detached) as again:
        session.poll()
    assert again.value is not detached.value


def test_a_session_goes_on_in_the_next_stage_on_the_same_ledger(tmp_path: Path) -> None:
    path, edda = tmp_path / "inn.ledger", SessionParams(session_id="edda")
    with StageThread(cast(), ledger=path, trace=tmp_path / "traces") as stage:
        session = stage.start(edda)
        turn_id = session.begin_turn("A room?")
        commit = session.finalize(turn_id).result()
        events = session.poll(max_events=1)
        cursor, ended = session.cursor, session.terminal_seen
        assert ended == set()
    with StageThread(cast(), ledger=path) as stage:
        session = stage.resume("edda", cursor, ended)
        events += poll_until_commit(session, turn_id)
        assert session.finalize(turn_id).result() == commit
        assert session.commit(turn_id) is None
    ending = [EventType.TURN_FINAL, EventType.COMMIT_FINAL]
    assert [event.event_type for event in events] == [EventType.TURN_ACCEPTED, *ending]
    assert laws.check(events) == []
    assert (tmp_path / "traces" / "interaction_trace.jsonl").exists()
