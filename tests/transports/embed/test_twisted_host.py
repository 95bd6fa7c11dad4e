"""Stage threads in programs on Twisted: Deferreds fire in the reactor's thread, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from twisted.internet import reactor as imported_reactor
from twisted.internet.defer import CancelledError, Deferred

from footlights import EventType, InvalidCommand, Stage, laws
from footlights.authority import Intent, IntentType
from footlights_transports import StageThread, StageThreadDied, ThreadSession
from footlights_transports.embed.twisted import answer, read
from tests.kit.threads import EXIT, cast
from tests.kit.threads import no_thread_is_left as no_thread_is_left

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from footlights import StreamEvent

T = TypeVar("T")
reactor: Any = imported_reactor  # which has no types
LONG = 30.0


@pytest.fixture(scope="session")
def run() -> Generator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs a coroutine in the thread of the reactor, of which a process has one."""

    def run(program: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = Future()

        def begin() -> None:
            Deferred.fromCoroutine(program).addCallbacks(done.set_result, lambda why: done.set_exception(why.value))

        reactor.callFromThread(begin)
        return done.result(LONG)

    thread = threading.Thread(target=reactor.run, kwargs={"installSignalHandlers": False}, daemon=True)
    thread.start()
    yield run
    reactor.callFromThread(reactor.stop)
    thread.join(LONG)


async def read_turn(session: ThreadSession) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    async for event in read(session):
        events.append(event)
        if event.event_type is EventType.COMMIT_FINAL:
            break
    return events


async def read_all(session: ThreadSession) -> list[StreamEvent]:
    return [event async for event in read(session)]


def test_turns_are_read_in_the_thread_of_the_reactor(run: Any) -> None:
    async def host() -> None:
        here = threading.get_ident()
        session = await answer(stage.start_soon())
        for _ in range(3):
            turn_id = await answer(session.begin_turn_soon("Talk."))
            assert laws.check(await read_turn(session)) == []
            assert (await answer(session.finalize(turn_id))).commit_outcome == "ok"
            assert threading.get_ident() == here

    with StageThread(cast()) as stage:
        run(host())


def test_callbacks_do_without_coroutines(run: Any) -> None:
    async def host() -> str:
        return await answer(stage.start_soon()).addCallback(lambda session: session.session_id)

    with StageThread(cast()) as stage:
        assert run(host()) == "s1-000001"


def test_a_cancelled_reader_loses_nothing(run: Any) -> None:
    async def host() -> None:
        for already in range(3):
            session = await answer(stage.start_soon())
            events: list[StreamEvent] = []

            async def reader(session: ThreadSession = session, events: list[StreamEvent] = events) -> None:
                async for event in read(session):
                    events += [event]

            reading = Deferred.fromCoroutine(reader())
            await answer(session.begin_turn_soon("Talk."))
            for _ in range(already):
                await answer(stage.call_soon(Stage.statistics))
            reading.cancel()
            with pytest.raises(CancelledError):
                await reading
            while not events or events[-1].event_type is not EventType.COMMIT_FINAL:
                events.append(await anext(read(session)))
            assert laws.check(events) == []

    with StageThread(cast()) as stage:
        run(host())


def block(is_blocked: threading.Event, gate: threading.Event) -> bool:
    is_blocked.set()
    return gate.wait(LONG)


def test_a_cancelled_call_is_withdrawn_or_made(run: Any) -> None:
    async def host() -> None:
        session = await answer(stage.start_soon())
        gate, is_blocked = threading.Event(), threading.Event()
        blocked = stage.call_soon(lambda _: block(is_blocked, gate))
        is_blocked.wait(LONG)
        late, begun = answer(session.begin_turn_soon("Never.")), answer(blocked)
        for deferred in (late, begun):
            deferred.cancel()
            with pytest.raises(CancelledError):
                await deferred
        gate.set()
        assert (await answer(stage.call_soon(Stage.statistics))).open_turns == 0
        assert blocked.result(LONG)

    with StageThread(cast()) as stage:
        run(host())


def test_a_second_reader_is_refused_and_the_first_gets_everything(run: Any) -> None:
    async def host() -> None:
        session = await answer(stage.start_soon())
        first = Deferred.fromCoroutine(read_turn(session))
        with pytest.raises(InvalidCommand, match="already"):
            await anext(read(session))
        await answer(session.begin_turn_soon("Talk."))
        assert laws.check(await first) == []

    with StageThread(cast()) as stage:
        run(host())


def test_an_iteration_ends_with_its_session_and_with_its_stage(run: Any) -> None:
    async def host() -> None:
        one, other = stage.start(), stage.start()
        first, second = Deferred.fromCoroutine(read_all(one)), Deferred.fromCoroutine(read_all(other))
        await answer(one.begin_turn_soon("Wait."))
        await answer(one.close_soon())
        assert laws.check(await first) == []
        stage.close()
        assert await second == []

    stage = StageThread(cast()).open()
    run(host())


def test_a_stage_that_died_is_raised_to_readers_and_callers(run: Any) -> None:
    async def host() -> None:
        session = await answer(stage.start_soon())
        await answer(session.begin_turn_soon("Exit.", EXIT))
        with pytest.raises(StageThreadDied):
            await read_all(session)
        with pytest.raises(StageThreadDied):
            await answer(session.begin_turn_soon("Talk."))

    stage = StageThread(cast()).open()
    run(host())
    with pytest.raises(StageThreadDied):
        stage.close()


def test_a_refused_call_fails_its_deferred(run: Any) -> None:
    async def host() -> None:
        with pytest.raises(InvalidCommand):
            await answer(stage.commit_soon([Intent(IntentType.DECISION, "pay")], ""))

    with StageThread(cast()) as stage:
        run(host())


_STOPPED = """
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from footlights import Stage
from footlights_transports import StageThread
from footlights_transports.embed.twisted import answer, read
from tests.kit.threads import cast

async def host():
    async for event in read(session):
        print("never")

with StageThread(cast()) as stage:
    session = stage.start()
    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(host()))
    reactor.callWhenRunning(reactor.stop)
    reactor.run()
    turn_id = session.begin_turn("Talk.")  # what comes now wakes a reactor that has stopped
    pending = answer(stage.call_soon(Stage.statistics))
    print(session.finalize(turn_id).result(30).commit_outcome)
    print(len(session.poll(1)), pending.called)
"""


def test_a_reactor_that_has_stopped_while_events_arrive_loses_none() -> None:
    done = subprocess.run([sys.executable, "-c", _STOPPED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n1 False\n", "")
