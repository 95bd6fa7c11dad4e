"""Failures of a StageThread: in the stage, in the host, and between the threads.

These tests wait in real time for what other threads do, and never for a time to pass.
"""

from __future__ import annotations

import threading
import traceback
from contextlib import asynccontextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel

from footlights import (
    Busy,
    CommitOutcome,
    CommitUnknown,
    Detached,
    InvalidCommand,
    LedgerUnavailable,
    SessionClosed,
    Stage,
    TurnInterrupted,
    laws,
)
from footlights.stream.cursor import ALL_SEEN
from footlights.testing import payloads
from footlights_transports import StageThread, StageThreadDied, StageThreadStuck, ThreadSession
from footlights_transports.embed.trio_thread import MAX_WAITING, Inside, TrioThread
from tests.kit.threads import EXIT, LONG, cast, no_thread_is_left, poll_rest, poll_text, poll_until_commit, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

__all__ = ["no_thread_is_left"]  # a fixture for every test here


# -- of the stage


def test_a_stage_that_cannot_open_says_why(tmp_path: Path) -> None:
    stage = StageThread(cast(), ledger=tmp_path)
    with pytest.raises(LedgerUnavailable), stage:
        pass


def test_a_failed_stage_closes_in_order_and_every_call_raises_its_cause() -> None:
    stage = StageThread(cast())
    stage.__enter__()
    session, other = stage.start(), stage.start()
    turn_id = other.begin_turn("Wait.")
    events = poll_text(other)
    waiting = other.finalize(turn_id)
    session.begin_turn("Leave.", EXIT)
    with suppress(CommitUnknown):  # if the committer comes down first
        assert waiting.result().commit_outcome is CommitOutcome.FAIL_CLOSED
    with pytest.raises(StageThreadDied) as died:
        stage.close()
    assert isinstance(died.value.__cause__, BaseExceptionGroup)
    assert died.value.__cause__.subgroup(KeyboardInterrupt) is not None
    for ask in (stage.start, session.begin_turn_soon("A room?").result, session.cancel, lambda: stage.world):
        with pytest.raises(StageThreadDied):
            ask()
    events += other.poll()
    assert payloads(events, TurnInterrupted)
    assert laws.check(events, complete=False) == []
    for poll in (session.poll, session.poll, other.poll):
        with pytest.raises((StageThreadDied, Detached)):
            list(iter(poll, []))
    assert not other.is_open
    assert turn_id in other.cursor
    with pytest.raises(StageThreadDied):
        stage.__exit__(None, None, None)


def test_the_hosts_own_error_is_not_hidden_by_that_of_the_stage() -> None:
    def host() -> None:
        with StageThread(cast()) as stage:
            session = stage.start()
            turn_id = session.begin_turn("Leave.", EXIT)
            with suppress(StageThreadDied):
                session.finalize(turn_id).result()  # the failure settles it, sooner or later
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        host()


def test_a_stream_of_a_run_that_breaks_says_so() -> None:
    stage = StageThread(cast())
    stage.__enter__()
    session, other = stage.start(), stage.start()
    stage.call(lambda _: trio.lowlevel.spawn_system_task(break_down))
    with pytest.raises(StageThreadDied):
        list(iter(partial(session.poll, timeout=LONG), None))
    assert not session.is_open
    with pytest.raises(StageThreadDied):
        poll_rest(other)
    assert not other.is_open
    assert len({len(raised_by(session.poll, StageThreadDied)) for _ in range(5)}) == 1
    assert session.cursor == {"t1-000000": ALL_SEEN}, "nothing was told yet"


def test_a_task_fails_when_the_run_breaks() -> None:
    thread = nothing()
    thread.open()
    waiting = thread.ask(wait_forever, patient=True)
    thread.ask(lambda _: trio.lowlevel.spawn_system_task(break_down)).result()
    with pytest.raises(StageThreadDied) as died:
        waiting.result()
    assert isinstance(died.value.__cause__, trio.TrioInternalError)


def test_a_task_that_breaks_the_run_fails() -> None:
    async def leave(_inside: Inside[None]) -> None:
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    async def wait_in_a_nursery(_inside: Inside[None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ZeroDivisionError

    thread = nothing()
    thread.open()
    tickets = [thread.ask(wait_in_a_nursery), thread.ask(leave)]
    with pytest.raises(StageThreadDied):
        thread.join()
    assert [ticket.done() for ticket in tickets] == [True, True]
    for ticket, error in zip(tickets, (ZeroDivisionError, StageThreadDied), strict=True):
        with pytest.raises((error, BaseExceptionGroup)):
            ticket.result()


@pytest.mark.parametrize("failure", ["exits", "raises a kept cancel"])
def test_an_error_of_a_task_is_raised_to_its_caller(failure: str) -> None:
    async def fail(_inside: Inside[None]) -> None:
        if failure == "exits":
            raise SystemExit
        kept: list[BaseException] = []
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                kept.append(error)
        raise kept.pop()

    async def answer(_inside: Inside[None]) -> int:
        await trio.lowlevel.checkpoint()
        return 42

    thread = nothing()
    thread.open()
    with pytest.raises((SystemExit, trio.Cancelled)):
        thread.ask(fail).result()
    assert thread.ask(answer).result() == 42
    thread.leave()
    thread.join()


def test_an_error_does_not_grow_however_often_it_is_raised() -> None:
    stage = StageThread(cast())
    with stage:
        failing = stage.call_soon(lambda _: 1 / 0)
        lengths = {len(raised_by(failing.result, ZeroDivisionError)) for _ in range(5)}
        assert len(lengths) == 1
        assert raised_by(failing.result, ZeroDivisionError)[-1].line == "failing = stage.call_soon(lambda _: 1 / 0)"


def test_two_failures_at_once_are_both_reported() -> None:
    async def fail() -> None:
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    async def start(inside: Inside[None]) -> None:
        await trio.lowlevel.checkpoint()
        for _ in range(2):
            inside.tasks.start_soon(fail)

    thread = nothing()
    thread.open()
    thread.ask(start).result()
    with pytest.raises(StageThreadDied) as died:
        thread.join()
    assert isinstance(died.value.__cause__, ExceptionGroup)
    assert len(died.value.__cause__.exceptions) == 2


# -- of the host


def test_the_hosts_own_error_leaves_the_block_as_it_is() -> None:
    sessions: list[ThreadSession] = []

    def host() -> None:
        with StageThread(cast()) as stage:
            sessions.append(stage.start())
            sessions[0].begin_turn("Wait.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        host()
    assert payloads(poll_rest(sessions[0]), TurnInterrupted)


def test_a_thread_that_holds_a_session_may_end_without_a_word() -> None:
    def forget() -> None:
        for _ in range(3):
            stage.start().begin_turn("Talk.")

    with StageThread(cast()) as stage:
        run_in_threads(forget)
        assert stage.call(Stage.statistics).sessions == 3


def test_many_threads_talk_to_one_stage() -> None:
    def play() -> None:
        session = stage.start()
        for _ in range(5):
            turn_id = session.begin_turn("A room?")
            events = poll_until_commit(session, turn_id)
            assert laws.check(events) == []
            played.append(text_of(events))
        session.close()

    played: list[str] = []
    with StageThread(cast()) as stage:
        run_in_threads(*[play] * 8)
    assert len(played) == 8 * 5
    assert len(set(played)) == 1


def test_of_many_threads_that_cancel_a_turn_one_wins() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        for _ in range(10):
            turn_id = session.begin_turn("Wait.")
            won: list[tuple[str, ...]] = []
            run_in_threads(*[lambda: won.append(session.cancel(turn_id))] * 4)  # noqa: B023 - they end in this round
            assert sorted(won) == [(), (), (), (turn_id,)]
            events = poll_until_commit(session, turn_id)
            assert laws.check(events, canceled={turn_id}) == []


def test_closing_races_with_everything_and_every_caller_gets_an_answer() -> None:
    def play() -> None:
        with suppress(SessionClosed):
            while True:
                session = stage.start()
                started.put(None)
                session.finalize(session.begin_turn("Talk.")).result()
                session.cancel()
                session.close()

    started: SimpleQueue[None] = SimpleQueue()
    for _ in range(5):
        stage = StageThread(cast())
        with stage:
            threads = start_threads(*[play] * 4)
            started.get(timeout=LONG)
        join_threads(threads)


# -- between the threads


def test_a_call_that_is_not_answered_in_time_is_not_made() -> None:
    hold, held = SimpleQueue[None](), SimpleQueue[None]()

    def block(_stage: Stage) -> str:
        held.put(None)
        hold.get(timeout=LONG)
        return "awake"

    with StageThread(cast(), answer_timeout=0.001) as stage:
        session = stage.start_soon().result(LONG)
        blocking = stage.call_soon(block)
        held.get(timeout=LONG)
        with pytest.raises(StageThreadStuck, match="nothing was done"):
            session.begin_turn("A room?")
        with pytest.raises(StageThreadStuck, match="it is being done"):
            blocking.result()
        assert session.poll() == []
        hold.put(None)
        assert blocking.result(LONG) == "awake"
        assert session.begin_turn_soon("A room?").result(LONG) == "t1-000001"
        session.close()


def test_the_number_of_calls_that_wait_for_a_blocked_thread_is_limited() -> None:
    hold, held = SimpleQueue[None](), SimpleQueue[None]()

    def block(_stage: Stage) -> None:
        held.put(None)
        hold.get(timeout=LONG)

    with StageThread(cast()) as stage:
        stage.call_soon(block)
        held.get(timeout=LONG)
        waiting = [stage.call_soon(lambda _: "made") for _ in range(MAX_WAITING)]
        refused = stage.call_soon(lambda _: "made")
        assert refused.done()
        with pytest.raises(Busy, match="is blocked"):
            refused.result()
        hold.put(None)
        assert {ticket.result(LONG) for ticket in waiting} == {"made"}
        assert stage.call(lambda _: "made") == "made"


def test_the_stages_own_thread_does_not_wait_for_itself() -> None:
    with StageThread(cast()) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand, match="own thread"):
            stage.call(lambda _: session.begin_turn("A room?"))


def test_a_task_that_is_asked_for_at_the_very_end_is_refused() -> None:
    over, go_on = SimpleQueue[None](), SimpleQueue[None]()

    async def last_of_all() -> None:
        try:
            await trio.sleep_forever()
        finally:
            over.put(None)
            go_on.get(timeout=LONG)

    thread = nothing()
    thread.open()
    thread.ask(lambda _: trio.lowlevel.spawn_system_task(last_of_all)).result()
    thread.leave()
    over.get(timeout=LONG)
    plain = thread.ask(lambda _: "still there")
    task = thread.ask(wait_forever)
    go_on.put(None)
    assert plain.result() == "still there"
    with pytest.raises(SessionClosed):
        task.result()
    thread.join()


def raised_by(call: Callable[[], object], kind: type[Exception]) -> traceback.StackSummary:
    """The frames that the error comes through."""
    with pytest.raises(kind) as raised:
        call()
    return traceback.extract_tb(raised.value.__traceback__)


async def wait_forever(_inside: Inside[None]) -> None:
    await trio.sleep_forever()


async def break_down() -> None:
    await trio.lowlevel.checkpoint()
    raise ZeroDivisionError


def nothing() -> TrioThread[None]:
    @asynccontextmanager
    async def empty() -> AsyncGenerator[None, None]:
        yield

    return TrioThread(empty(), timeout=LONG, exit_timeout=LONG)


def run_in_threads(*work: Callable[[], object]) -> None:
    join_threads(start_threads(*work))


def start_threads(*work: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    return threads


def join_threads(threads: list[threading.Thread]) -> None:
    """What a thread raises fails the test by a warning of pytest."""
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
