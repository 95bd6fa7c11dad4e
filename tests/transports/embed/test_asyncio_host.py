"""Stage threads in programs on asyncio: nothing is lost, nothing blocks the loop, and every end is defined."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    BusyRule,
    CommitFinal,
    EventType,
    InvalidCommand,
    Stage,
    TokenDelta,
    Tool,
    TurnInterrupted,
    TurnParams,
    laws,
)
from footlights.authority import Intent, IntentType, JsonWorld, RuleBook, accept, patch
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_transports import StageThread, StageThreadDied, ThreadSession
from footlights_transports.embed.asyncio import answer, opened, read
from tests.kit.threads import EXIT, cast, text_of
from tests.kit.threads import no_thread_is_left as no_thread_is_left

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from typing import Any

    from footlights import Prompt, StreamEvent, ToolContext
    from footlights.events import JsonValue
    from footlights_actors import Line

LONG = 30.0


def run(program: Coroutine[Any, Any, None]) -> None:
    """Run it as a server would. What hangs fails."""
    asyncio.run(asyncio.wait_for(program, LONG))


async def read_turn(session: ThreadSession) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    async for event in read(session):
        events.append(event)
        if event.event_type is EventType.COMMIT_FINAL:
            break
    return events


def test_a_turn_is_awaited_and_read_one_iteration_after_another() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            for _ in range(3):
                turn_id = await answer(session.begin_turn_soon("Talk."))
                events = await read_turn(session)
                assert laws.check(events) == []
                assert {event.turn_id for event in events} == {turn_id}
                assert (await answer(session.finalize(turn_id))).commit_outcome == "ok"

    run(host())


def test_a_player_can_barge_in() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            await answer(session.begin_turn_soon("Wait."))
            async for event in read(session):
                if isinstance(event.payload, TokenDelta):
                    await answer(session.begin_turn_soon("Good evening.", TurnParams(busy=BusyRule.INTERRUPT)))
                    break
            events = [*await read_turn(session), *await read_turn(session)]
            assert [each.payload.reason for each in events if isinstance(each.payload, TurnInterrupted)] == ["barge_in"]
            assert text_of(events).endswith("Good evening, my friend.")

    run(host())


def test_a_reader_that_is_cancelled_anywhere_loses_nothing() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            for steps in range(30):
                session = await answer(stage.start_soon())
                await answer(session.begin_turn_soon("Talk."))
                events: list[StreamEvent] = []

                async def reader(session: ThreadSession = session, events: list[StreamEvent] = events) -> None:
                    async for event in read(session):
                        events.append(event)
                        await asyncio.sleep(0)

                task = asyncio.create_task(reader())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                if not events or events[-1].event_type is not EventType.COMMIT_FINAL:
                    events += await read_turn(session)
                assert laws.check(events) == []
                await answer(session.close_soon())

    run(host())


def block(is_blocked: threading.Event, gate: threading.Event) -> bool:
    is_blocked.set()
    return gate.wait(LONG)


def test_a_cancelled_call_is_withdrawn_or_made() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            gate, is_blocked = threading.Event(), threading.Event()
            blocked = stage.call_soon(lambda _: block(is_blocked, gate))
            await asyncio.to_thread(is_blocked.wait, LONG)
            late = asyncio.ensure_future(answer(session.begin_turn_soon("Never.")))
            late.cancel()
            begun = asyncio.ensure_future(answer(blocked))
            begun.cancel()
            for each in (late, begun):
                with pytest.raises(asyncio.CancelledError):
                    await each
            await asyncio.sleep(0)  # asyncio tells the call that it is cancelled
            gate.set()
            assert await answer(stage.call_soon(lambda inner: inner.statistics().open_turns)) == 0
            assert blocked.done()
            assert not blocked.cancelled()

    run(host())


def test_an_iteration_ends_with_its_session_and_with_its_stage() -> None:
    async def host() -> None:
        stage = StageThread(cast())
        async with opened(stage):
            one, other = await answer(stage.start_soon()), await answer(stage.start_soon())
            tasks = [asyncio.create_task(read_all(each)) for each in (one, other)]
            await answer(one.begin_turn_soon("Wait."))
            await answer(one.close_soon())
            assert laws.check(await tasks[0]) == []
            assert not tasks[1].done()
        assert await tasks[1] == []
        assert await read_all(one) == []

    run(host())


async def read_all(session: ThreadSession) -> list[StreamEvent]:
    return [event async for event in read(session)]


def test_the_loop_goes_on_while_the_stage_closes() -> None:
    may_end = threading.Event()

    async def slow(_: Mapping[str, JsonValue], __: ToolContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(may_end.wait, LONG)
        return "done"

    def script(prompt: Prompt) -> Iterable[Line]:
        return [Say("Done.")] if prompt.rounds else [Call("slow")]

    async def host() -> None:
        stage = StageThread(standard_cast(ScriptedModel(script), tools=[Tool(name="slow", run=slow)]))
        async with opened(stage):
            session = await answer(stage.start_soon())
            await answer(session.begin_turn_soon("Go."))
            async for event in read(session):
                if event.event_type is EventType.TOOL_CALL_STARTED:
                    break
            asyncio.get_running_loop().call_soon(may_end.set)  # if the loop stood still, this would wait for the tool
        assert EventType.COMMIT_FINAL in [event.event_type for event in await read_all(session)]

    run(host())


def test_a_stage_that_died_is_raised_to_readers_and_callers() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            reader = asyncio.create_task(read_all(session))
            await answer(session.begin_turn_soon("Exit.", EXIT))
            with pytest.raises(StageThreadDied):
                await reader
            with pytest.raises(StageThreadDied):
                await answer(session.begin_turn_soon("Talk."))

    with pytest.raises(StageThreadDied):
        run(host())


def test_an_error_of_the_block_is_raised_and_not_that_the_stage_died() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            await answer(session.begin_turn_soon("Exit.", EXIT))
            with pytest.raises(StageThreadDied):
                await read_all(session)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(host())


def test_a_stage_that_cannot_open_raises_why() -> None:
    async def host() -> None:
        with pytest.raises(InvalidCommand, match="opened once"):
            async with opened(StageThread(cast())) as stage, opened(stage):
                pass

    run(host())


def test_a_second_reader_is_refused_and_the_first_gets_everything() -> None:
    async def host() -> None:
        async with opened(StageThread(cast())) as stage:
            session = await answer(stage.start_soon())
            first = asyncio.create_task(read_turn(session))
            await asyncio.sleep(0)
            with pytest.raises(InvalidCommand, match="already"):
                await read_turn(session)
            await answer(session.begin_turn_soon("Talk."))
            with pytest.raises(InvalidCommand, match="already"):
                await anext(read(session))
            assert laws.check(await first) == []
            session.on_ready(print)
            with pytest.raises(InvalidCommand, match="Something waits"):
                session.on_ready(print)

    run(host())


def test_a_loop_that_is_closed_while_events_arrive_loses_none(caplog: pytest.LogCaptureFixture) -> None:
    async def begin(stage: StageThread) -> ThreadSession:
        session = await answer(stage.start_soon())
        asyncio.get_running_loop().create_task(read_turn(session))  # the loop is closed while it waits
        for _ in range(3):
            await asyncio.sleep(0)
        return session

    with StageThread(cast()) as stage:
        loop = asyncio.new_event_loop()
        session = loop.run_until_complete(begin(stage))
        waiting = asyncio.all_tasks(loop)
        answers = stage.call_soon(Stage.statistics)
        loop.close()
        turn_id = session.begin_turn("Talk.")
        session.finalize(turn_id).result(LONG)
        answers.result(LONG)
        assert session.is_awaited
        for task in waiting:
            task.get_coro().close()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        assert asyncio.run(asyncio.wait_for(read_turn(session), LONG))[-1].event_type is EventType.COMMIT_FINAL
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_block_that_is_cancelled_while_it_opens_leaves_no_stage() -> None:
    async def host() -> None:
        for steps in range(6):
            stage = StageThread(cast())

            async def block(stage: StageThread = stage) -> None:
                async with opened(stage):
                    await asyncio.Event().wait()

            task = asyncio.create_task(block())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(stage.close)
            assert stage._thread.has_ended or stage._thread._thread.ident is None

    run(host())


def test_commits_are_read_like_events() -> None:
    def pay(world: Any, intents: tuple[Intent, ...]) -> Any:
        return accept(patch.replace("/purse", world["purse"] + len(intents))) if intents else accept()

    async def host() -> None:
        paying = standard_cast(
            ScriptedModel(lambda _: [Say("Yes?")]), world=JsonWorld({"purse": 0}), rules=RuleBook({"pay": pay})
        )
        async with opened(StageThread(paying)) as stage:
            feed = await answer(stage.commits_soon())
            for why in ("one", "two", "three"):
                decided = await answer(stage.commit_soon([Intent(IntentType.DECISION, "pay")], why))
                assert isinstance(decided, CommitFinal)
                async for commit in read(feed):
                    assert (commit.commit_id, commit.why) == (decided.commit_id, why)
                    break
            rest = asyncio.create_task(drain(feed))
        assert await rest == []

    async def drain(feed: Any) -> list[Any]:
        return [commit async for commit in read(feed)]

    run(host())
