"""Stage threads inside other people's programs: wake-ups, futures, commands together, forks, a stage that is slow."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import re
import threading
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import (
    EventType,
    InvalidCommand,
    RegistrationError,
    SessionClosed,
    SessionInUse,
    SessionParams,
    Stage,
    Tool,
    TurnInterrupted,
    laws,
)
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast
from footlights_transports import StageThread, StageThreadDied, StageThreadStuck
from footlights_transports.embed import polled_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights import Cast, Prompt, StreamEvent, ToolContext
    from footlights.events import JsonValue
    from footlights_actors import Line
    from footlights_transports import ThreadSession

LONG = 30.0
"""Seconds that a hang would take. Threads and processes are the system's, so the clock is real."""


def talker(text: str = "Good evening, my friend.") -> Cast:
    return standard_cast(ScriptedModel(lambda _: [Say(text)]))


def poll_all(session: ThreadSession, woken: queue.Queue[None]) -> list[StreamEvent]:
    """Everything up to the commit, read only when woken."""
    events: list[StreamEvent] = []
    while not events or events[-1].event_type is not EventType.COMMIT_FINAL:
        woken.get(timeout=LONG)
        while batch := session.poll(max_events=3):
            events += batch
    return events


def test_a_host_that_polls_only_when_it_is_woken_misses_nothing() -> None:
    with StageThread(talker("word " * 3_000)) as stage:
        sessions = [stage.start() for _ in range(8)]
        woken: list[queue.Queue[None]] = [queue.Queue() for _ in sessions]
        for session, bell in zip(sessions, woken, strict=True):
            session.on_ready(lambda bell=bell: bell.put(None))  # type: ignore[misc]
            session.begin_turn_soon("Talk.")
        told: dict[int, list[StreamEvent]] = {}

        def read(number: int) -> None:
            told[number] = poll_all(sessions[number], woken[number])

        threads = [threading.Thread(target=read, args=[number]) for number in range(len(sessions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert sorted(told) == list(range(len(sessions)))
        for events in told.values():
            assert laws.check(events) == []


def test_a_host_is_not_woken_again_before_it_has_polled() -> None:
    calls: list[int] = []
    with StageThread(talker()) as stage:
        session = stage.start()
        session.on_ready(lambda: calls.append(threading.get_ident()))
        session.finalize(session.begin_turn("Talk.")).result(LONG)
        stage.call(Stage.statistics)
        assert len(calls) == 1
        assert calls[0] != threading.get_ident()
        while session.poll():
            pass
        stage.close()
        assert len(calls) == 2  # the stream has ended


def test_a_host_that_comes_late_is_woken_for_what_is_there() -> None:
    woken: queue.Queue[None] = queue.Queue()
    with StageThread(talker()) as stage:
        session = stage.start()
        session.finalize(session.begin_turn("Talk.")).result(LONG)
        session.on_ready(lambda: woken.put(None))
        assert poll_all(session, woken)[-1].event_type is EventType.COMMIT_FINAL
        session.on_ready(None)
        session.finalize(session.begin_turn("Talk.")).result(LONG)
        assert woken.empty()


def test_a_wake_up_that_fails_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError("what the player said")

    with StageThread(talker()) as stage, caplog.at_level(logging.ERROR, "footlights.embed"):
        session = stage.start()
        session.on_ready(fail)
        session.finalize(session.begin_turn("Talk.")).result(LONG)
        assert session.poll()
        with pytest.raises(InvalidCommand, match="a plain function"):
            session.on_ready(3)  # type: ignore[arg-type]  # on purpose
    assert "ZeroDivisionError" in caplog.text
    assert "player" not in caplog.text


def test_what_a_call_hands_back_is_a_future() -> None:
    done: list[bool] = []
    with StageThread(talker()) as stage:
        session = stage.start_soon().result(LONG)
        began = session.begin_turn_soon("Talk.")
        assert isinstance(began, Future)
        commit = session.finalize(began.result(LONG))
        commit.add_done_callback(lambda future: done.append(future.done()))
        both: list[Future[Any]] = [began, commit]
        assert wait(both, timeout=LONG).not_done == set()
        stage.call(Stage.statistics)
        assert done == [True]


def test_asyncio_awaits_calls_of_the_stage() -> None:
    async def host(stage: StageThread) -> str:
        session = await asyncio.wrap_future(stage.start_soon())
        turn_id = await asyncio.wrap_future(session.begin_turn_soon("Talk."))
        return (await asyncio.wrap_future(session.finalize(turn_id))).commit_outcome

    with StageThread(talker()) as stage:
        assert asyncio.run(host(stage)) == "ok"


def test_what_an_async_call_returns_is_awaited() -> None:
    async def count(stage: Stage) -> int:
        await trio.lowlevel.checkpoint()
        return stage.statistics().sessions

    with StageThread(talker()) as stage:
        session = stage.start()
        assert stage.call(count) == 1
        stage.call(lambda inner: inner.session(session.session_id).close())
        assert stage.call(count) == 0


def test_commands_given_together_reach_the_stage_together() -> None:
    with StageThread(talker()) as stage:
        sessions = [stage.start() for _ in range(20)]
        with stage.together():
            began = [session.begin_turn_soon("Talk.") for session in sessions]
            with stage.together():
                began.append(sessions[0].begin_turn_soon("And more."))
            assert not any(each.done() for each in began)
        turns = [each.result(LONG) for each in began]
        assert turns == sorted(turns)


def test_a_call_that_waits_among_commands_given_together_is_sent_with_those_before_it() -> None:
    with StageThread(talker(), answer_timeout=LONG) as stage, stage.together():
        began = stage.start().begin_turn_soon("Talk.")
        assert stage.call(lambda inner: inner.open_sessions) == 1
        assert began.done()


def test_an_interruption_can_be_polled_when_cancel_returns() -> None:
    with StageThread(standard_cast(ScriptedModel(lambda _: [Say("Well,"), Stall()]))) as stage:
        for _ in range(50):
            session = stage.start()
            turn_id = session.begin_turn("Talk.")
            assert session.cancel(turn_id) == (turn_id,)
            assert any(isinstance(each.payload, TurnInterrupted) for each in session.poll())


def test_a_second_thread_that_polls_a_stream_is_refused() -> None:
    got: list[list[StreamEvent]] = []
    with StageThread(talker()) as stage:
        session = stage.start()

        def wait_for_events() -> None:
            while not got:
                with suppress(InvalidCommand):  # the other thread was first
                    got.append(session.poll(timeout=LONG))

        first = threading.Thread(target=wait_for_events)
        first.start()
        with pytest.raises(InvalidCommand, match="Another thread"):
            list(iter(session.poll, None))
        session.begin_turn("Talk.")
        first.join(LONG)
    assert got[0][0].event_type is EventType.TURN_ACCEPTED


def test_a_stage_whose_tool_is_slow_does_not_freeze_its_host() -> None:
    may_end = threading.Event()

    async def slow(_: Mapping[str, JsonValue], __: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(may_end.wait, LONG)
        return "done"

    def script(prompt: Prompt) -> Iterable[Line]:
        return [Say("Done.")] if prompt.rounds else [Call("slow")]

    stage = StageThread(standard_cast(ScriptedModel(script), tools=[Tool(name="slow", run=slow)])).open()
    session = stage.start()
    session.begin_turn("Go.")
    while not any(each.event_type is EventType.TOOL_CALL_STARTED for each in session.poll(timeout=LONG)):
        pass
    with pytest.raises(StageThreadStuck, match="goes on closing"):
        stage.close(timeout=0.05)
    may_end.set()
    stage.close(timeout=LONG)
    session.close()


def test_a_fork_cannot_use_the_stage_of_its_parent() -> None:
    with StageThread(talker()) as stage:
        session = stage.start()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            told = []
            for call in (stage.start, session.poll, lambda: session.begin_turn("Talk."), stage.close):
                try:
                    call()
                    told.append("done")
                except InvalidCommand:
                    told.append("refused")
            os.write(writer, ",".join(told).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == b"refused,refused,refused,refused"
        os.close(reader)
        session.finalize(session.begin_turn("Talk.")).result(LONG)


# -- what a hostile reader found


def test_commands_given_together_after_the_end_are_answered() -> None:
    stage = StageThread(talker()).open()
    session = stage.start()
    stage.close()
    with stage.together():
        tickets: list[Future[Any]] = [session.begin_turn_soon("Talk."), session.close_soon()]
    for ticket in tickets:
        assert isinstance(ticket.exception(LONG), SessionClosed)


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, ZeroDivisionError])
def test_a_callback_that_fails_does_not_end_the_stage(error: type[BaseException]) -> None:
    def fail(_: object) -> None:
        raise error

    with StageThread(talker()) as stage:
        session = stage.start()
        for ticket in (session.begin_turn_soon("Talk."), session.finalize("t1-000001"), session.close_soon()):
            with suppress(error):  # a callback of a ticket that is done already is called here
                ticket.add_done_callback(fail)
            ticket.exception(LONG)
        assert stage.call(Stage.statistics).sessions == 0


def test_a_host_is_woken_when_the_stage_has_ended_however_that_was() -> None:
    woken: queue.Queue[None] = queue.Queue()
    stage = StageThread(talker()).open()
    first, second = stage.start(), stage.start()
    first.on_ready(lambda: woken.put(None))
    stage.call(lambda _: trio.lowlevel.spawn_system_task(break_down))
    woken.get(timeout=LONG)
    with pytest.raises(StageThreadDied):
        stage.close()
    second.on_ready(lambda: woken.put(None))
    woken.get(timeout=LONG)


async def break_down() -> None:
    raise ZeroDivisionError


def test_an_interruption_can_be_polled_although_the_inbox_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polled_stream, "CAPACITY", 2)
    with StageThread(standard_cast(ScriptedModel(lambda _: [Say("Well, good evening."), Stall()]))) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Talk.")
        while len(session._stream._inbox) < 2:
            stage.call(Stage.statistics)
        session.cancel(turn_id)
        events = list(chain.from_iterable(iter(session.poll, [])))
        assert any(isinstance(each.payload, TurnInterrupted) for each in events)


def test_the_stages_own_thread_cannot_close_it() -> None:
    with StageThread(talker()) as stage:
        with pytest.raises(InvalidCommand, match="own thread"):
            stage.call(lambda _: stage.close())
        session = stage.start()
        session.finalize(session.begin_turn("Talk.")).result(LONG)


def test_a_fork_that_leaves_the_block_leaves_the_stage_alone() -> None:
    with StageThread(talker()) as stage:
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            stage.__exit__(None, None, None)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        session = stage.start()
        session.finalize(session.begin_turn("Talk.")).result(LONG)


def test_the_world_is_read_without_the_stage_also_when_that_is_blocked_or_closed() -> None:
    with StageThread(talker()) as stage:
        free = threading.Event()
        blocked = stage.call_soon(lambda _: free.wait(LONG))
        assert stage.world == {}
        free.set()
        assert blocked.result()
    assert stage.world == {}


def test_an_async_function_is_no_wake_up() -> None:
    async def wake() -> None: ...

    with StageThread(talker()) as stage, pytest.raises(InvalidCommand, match="a plain function"):
        stage.start().on_ready(wake)


def test_a_poll_without_a_limit_of_time_waits_for_what_comes_and_for_the_end() -> None:
    with StageThread(talker()) as stage:
        session = stage.start()
        session.begin_turn_soon("Talk.")
        events: list[StreamEvent] = []
        while not events or events[-1].event_type is not EventType.COMMIT_FINAL:
            events += session.poll(timeout=None)
        session.close()
        assert session.poll(timeout=None) == []


def test_a_result_that_is_not_there_in_time_can_be_asked_for_again() -> None:
    hold = threading.Event()
    with StageThread(talker()) as stage:
        waiting = stage.call_soon(lambda _: trio.to_thread.run_sync(hold.wait))
        for _ in range(2):
            with pytest.raises(TimeoutError) as late:
                waiting.result(0.001)
            assert not isinstance(late.value, StageThreadStuck)
        hold.set()
        assert waiting.result() is True


@pytest.mark.parametrize("way", ["on_ready", "call"])
def test_who_holds_the_thread_of_the_stage_is_named_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_transports.embed.trio_thread._CHECK_SECONDS", 0.01)
    hold, named, lines = threading.Event(), threading.Event(), list[str]()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "sleepy" in record.getMessage():
                lines.append(record.getMessage())
                named.set()

    def sleepy(*_: object) -> None:
        hold.wait(LONG)

    listener, log = Listener(), logging.getLogger("footlights.embed")
    log.addHandler(listener)
    try:
        with StageThread(talker()) as stage:
            session = stage.start()
            if way == "call":
                stage.call_soon(sleepy)
            else:
                session.on_ready(sleepy)
                session.begin_turn_soon("A room?")
            assert named.wait(LONG)
            hold.set()
    finally:
        log.removeHandler(listener)
    (line,) = lines
    assert re.fullmatch(r".*<locals>\.sleepy has held the thread of the stage for \d\.\d s: .*", line)


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("cast", lambda: StageThread("a cast").open()),  # type: ignore[arg-type]
        ("limits", lambda: StageThread(talker(), limits={"max_sessions": 1})),  # type: ignore[arg-type]
        ("personas", lambda: added(personas=["odo"])),
        ("persona", lambda: added(personas={"odo": "an innkeeper"})),
        ("tools", lambda: added(tools=7)),
        ("tool", lambda: added(tools=[print])),
        ("rules", lambda: added(rules=["pay"])),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused_by_name(what: str, given: Callable[[], object]) -> None:
    with pytest.raises(RegistrationError, match=rf"(?i)\b{what}\b.* must be of the kind \w+, and not \w+\.$"):
        given()


def added(**what: Any) -> None:
    with StageThread(talker()) as stage:
        stage.add(**what)


def test_a_session_that_is_open_is_in_use() -> None:
    with StageThread(talker()) as stage:
        bob = stage.start(SessionParams(session_id="bob"))
        with pytest.raises(SessionInUse) as refused:
            stage.start(SessionParams(session_id="bob"))
        assert refused.value.code == "session_in_use"
        assert isinstance(refused.value, InvalidCommand)
        bob.close()


def test_a_host_that_polls_where_it_is_woken_is_refused_and_loses_nothing() -> None:
    refused = queue.Queue[str]()

    def ready() -> None:
        try:
            session.poll(64)
        except InvalidCommand as error:
            refused.put(str(error))

    cast = standard_cast(ScriptedModel(lambda _: [Say("word " * 600)], pace=0.0001))
    with StageThread(cast) as stage:
        session = stage.start()
        session.on_ready(ready)
        turn_id = session.begin_turn("Talk.")
        assert "the stage's own thread" in refused.get(timeout=LONG)
        session.finalize(turn_id).result(LONG)
        events: list[StreamEvent] = []
        while not any(event.event_type is EventType.COMMIT_FINAL for event in events):
            events += session.poll(64, timeout=LONG)
    assert laws.check(events) == []
