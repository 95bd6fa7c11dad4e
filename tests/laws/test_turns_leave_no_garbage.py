"""Turns leave nothing for the garbage collector, however they end: counts, never times.

So collections can be rare and short, in `footlights serve` and in games that decide about them themselves.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from footlights import (
    BusyRule,
    Cast,
    InteractionContext,
    Limits,
    Persona,
    SideEffects,
    ToolError,
    TurnParams,
    WarmState,
    open_stage,
    tool,
    traceback_text,
    watch_failures,
)
from footlights_actors import Call, Fail, Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator
    from pathlib import Path
    from typing import TypeAlias

    from footlights import InteractionSession, Prompt, Stage
    from footlights_actors import Line, Script

    Act: TypeAlias = Callable[[Stage, InteractionSession], Awaitable[None]]

TIMES = 10
"""One circle in each of so many turns is found; whatever happens once in a while is not this."""


@tool(side_effects=SideEffects.NONE)
async def look() -> str:
    """Look around."""
    await trio.lowlevel.checkpoint()
    return "A room."


@tool
async def pay() -> str:
    """Pay for the room."""
    return "Paid."


@tool(side_effects=SideEffects.NONE)
async def stumble() -> str:
    """Fall over."""
    raise ValueError


@tool(side_effects=SideEffects.NONE)
async def decline() -> str:
    """Say no."""
    raise ToolError("No.")


@tool(side_effects=SideEffects.NONE)
def look_in_a_thread() -> str:
    """Look around."""
    return "A room."


@tool(side_effects=SideEffects.NONE)
def stumble_in_a_thread() -> str:
    """Fall over."""
    raise ValueError


@tool(side_effects=SideEffects.NONE)
def decline_in_a_thread() -> str:
    """Say no."""
    raise ToolError("No.")


@tool(cancel_safe=True, side_effects=SideEffects.NONE)
async def sleep() -> str:
    """Sleep."""
    await trio.sleep_forever()
    raise AssertionError


@tool(side_effects=SideEffects.NONE)
async def oversleep() -> str:
    """Sleep, and wake up when nobody waits any more."""
    await trio.sleep(60)
    raise ValueError


@tool(timeout=1.0, side_effects=SideEffects.NONE)
async def dawdle() -> str:
    """Take too long."""
    await trio.sleep_forever()
    raise AssertionError


async def dream() -> None:
    raise AssertionError


@tool(side_effects=SideEffects.NONE)
async def forget_to_await() -> Any:
    """Return a coroutine."""
    return dream()


@tool(side_effects=SideEffects.NONE)
def forget_to_await_in_a_thread() -> Any:
    """Return a coroutine."""
    return dream()


TOOLS = (
    forget_to_await,
    forget_to_await_in_a_thread,
    look,
    pay,
    stumble,
    decline,
    look_in_a_thread,
    stumble_in_a_thread,
    decline_in_a_thread,
    sleep,
    oversleep,
    dawdle,
)


class Ends:
    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()


class Breaks:
    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError


def speaks(_prompt: Prompt) -> Iterator[Line]:
    yield Say("Good evening, traveller.")


def stalls(_prompt: Prompt) -> Iterator[Line]:
    yield Say("Good")
    yield Stall()


def fails(_prompt: Prompt) -> Iterator[Line]:
    yield Say("Good")
    yield Fail(ValueError())


ALWAYS_THE_SAME = Fail(ValueError())


def fails_again(_prompt: Prompt) -> Iterator[Line]:
    yield ALWAYS_THE_SAME


def calls(name: str) -> Script:
    def script(prompt: Prompt) -> Iterator[Line]:
        yield Say("Done.") if prompt.rounds else Call(name)

    return script


def cast_of(script: Script) -> Cast:
    return standard_cast(ScriptedModel(script), tools=TOOLS)


async def to_the_end(_stage: Stage, session: InteractionSession) -> None:
    await session.finalize(session.begin_turn("Good evening.")).wait()


async def canceled(_stage: Stage, session: InteractionSession) -> None:
    turn_id = session.begin_turn("Good evening.")
    await wait_all_tasks_blocked()
    session.cancel(turn_id)
    await session.finalize(turn_id).wait()


async def canceled_at_once(_stage: Stage, session: InteractionSession) -> None:
    turn_id = session.begin_turn("Good evening.")
    session.cancel(turn_id)
    await session.finalize(turn_id).wait()


async def overslept(_stage: Stage, session: InteractionSession) -> None:
    await canceled(_stage, session)
    await trio.sleep(100)


async def barged_into(stage: Stage, session: InteractionSession) -> None:
    session.begin_turn("Good evening.")
    await wait_all_tasks_blocked()
    turn_id = session.begin_turn("Stop.", TurnParams(busy=BusyRule.INTERRUPT))
    await wait_all_tasks_blocked()
    session.cancel(turn_id)
    await session.finalize(turn_id).wait()


async def queued(_stage: Stage, session: InteractionSession) -> None:
    session.begin_turn("Good evening.")
    await session.finalize(session.begin_turn("A room?")).wait()


async def subscribed(_stage: Stage, session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("Good evening.")
        async for _ in stream.until_commit(turn_id):
            pass


async def in_a_session_of_its_own(stage: Stage, _session: InteractionSession) -> None:
    session = stage.start()
    await to_the_end(stage, session)
    await session.close()


def with_workload(name: str) -> Act:
    async def act(_stage: Stage, session: InteractionSession) -> None:
        await session.finalize(session.begin_turn("Go.", TurnParams(workload=name))).wait()

    return act


@contextmanager
def _only_what_is_new() -> Generator[None]:
    """Nothing is collected but by those who ask, and nothing is looked at that is here already."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def garbage_of(cast: Cast, act: Act, limits: Limits | None = None, ledger: Path | None = None) -> int:
    """How many objects are found after so many of them, when those before have made whatever is made once."""
    async with open_stage(cast, ledger=ledger, limits=limits or Limits(replay_sessions=1, replay_turns=4)) as stage:
        session = stage.start()
        for _ in range(4 + 1):
            await act(stage, session)
        await wait_all_tasks_blocked()
        with _only_what_is_new():
            for _ in range(TIMES):
                await act(stage, session)
            await wait_all_tasks_blocked()
            return gc.collect()


@pytest.mark.parametrize(
    ("script", "act"),
    [
        pytest.param(speaks, to_the_end, id="ok"),
        pytest.param(stalls, canceled, id="canceled"),
        pytest.param(speaks, canceled_at_once, id="canceled before it ran"),
        pytest.param(stalls, barged_into, id="barged into"),
        pytest.param(speaks, queued, id="queued"),
        pytest.param(stalls, to_the_end, id="stalled"),
        pytest.param(fails, to_the_end, id="the model fails"),
        pytest.param(fails_again, to_the_end, id="the model fails in the same way"),
        pytest.param(calls("look"), to_the_end, id="a tool"),
        pytest.param(calls("pay"), to_the_end, id="a tool with effects"),
        pytest.param(calls("stumble"), to_the_end, id="a tool fails"),
        pytest.param(calls("decline"), to_the_end, id="a tool declines"),
        pytest.param(calls("look_in_a_thread"), to_the_end, id="a tool in a thread"),
        pytest.param(calls("stumble_in_a_thread"), to_the_end, id="a tool in a thread fails"),
        pytest.param(calls("decline_in_a_thread"), to_the_end, id="a tool in a thread declines"),
        pytest.param(calls("sleep"), canceled, id="canceled with its tool"),
        pytest.param(calls("oversleep"), overslept, id="canceled without its tool, which fails later"),
        pytest.param(calls("dawdle"), to_the_end, id="a tool takes too long"),
        pytest.param(calls("nothing"), to_the_end, id="no such tool"),
    ],
)
async def test_a_turn_leaves_nothing_to_the_garbage_collector(script: Script, act: Act, quiet_clock: object) -> None:
    assert await garbage_of(cast_of(script), act) == 0


async def test_a_turn_whose_model_must_be_loaded_leaves_nothing(quiet_clock: object) -> None:
    model = ScriptedModel(speaks, warm_state=WarmState.COLD)

    async def cold(stage: Stage, session: InteractionSession) -> None:
        model.cool()
        await to_the_end(stage, session)

    assert await garbage_of(standard_cast(model), cold) == 0


async def test_a_turn_whose_model_cannot_be_loaded_leaves_nothing(quiet_clock: object) -> None:
    model = ScriptedModel(speaks, warm_state=WarmState.COLD, load_error=ValueError())
    assert await garbage_of(standard_cast(model), to_the_end) == 0


@pytest.mark.parametrize("name", ["ends", "breaks"])
async def test_a_workload_leaves_nothing(name: str, quiet_clock: object) -> None:
    cast = standard_cast(ScriptedModel(speaks), workloads={"ends": Ends(), "breaks": Breaks()})
    assert await garbage_of(cast, with_workload(name)) == 0


def breaks(*_: object) -> Any:
    raise ValueError


def gives_nothing(*_: object) -> Any:
    return None


@pytest.mark.parametrize("is_watched", [False, True], ids=["", "watched"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: standard_cast(ScriptedModel(speaks), rules={"it": breaks}), id="a rule fails"),
        pytest.param(
            lambda: standard_cast(ScriptedModel(speaks), rules={"it": gives_nothing}), id="a rule without ruling"
        ),
        pytest.param(lambda: standard_cast(ScriptedModel(speaks), personas=Persona(facts=breaks)), id="facts fail"),
        pytest.param(
            lambda: standard_cast(ScriptedModel(speaks), personas=Persona(facts=gives_nothing)), id="no facts"
        ),
        pytest.param(lambda: standard_cast(ScriptedModel(gives_nothing)), id="a script without lines"),
        pytest.param(lambda: cast_of(calls("stumble")), id="a tool fails"),
        pytest.param(lambda: cast_of(calls("forget_to_await")), id="a tool that awaits nothing"),
        pytest.param(
            lambda: cast_of(calls("forget_to_await_in_a_thread")), id="a tool in a thread that awaits nothing"
        ),
    ],
)
async def test_a_bug_of_the_host_leaves_nothing(
    make: Callable[[], Cast], is_watched: bool, quiet_clock: object
) -> None:
    def look_at(_what: str, error: BaseException) -> None:
        traceback_text(error)

    with watch_failures(look_at) if is_watched else nullcontext():
        assert await garbage_of(make(), to_the_end) == 0


@pytest.mark.parametrize("script", [speaks, calls("pay")], ids=["ok", "a tool with effects"])
async def test_a_turn_on_disk_leaves_nothing(script: Script, tmp_path: Path) -> None:
    assert await garbage_of(cast_of(script), to_the_end, ledger=tmp_path / "a.ledger") == 0


async def test_the_count_finds_one_circle_in_each_turn(quiet_clock: object) -> None:
    async def with_a_circle(stage: Stage, session: InteractionSession) -> None:
        circle: list[object] = []
        circle.append(circle)
        await to_the_end(stage, session)

    assert await garbage_of(cast_of(speaks), with_a_circle) == TIMES


async def test_a_subscriber_that_leaves_leaves_nothing(quiet_clock: object) -> None:
    assert await garbage_of(cast_of(speaks), subscribed) == 0


async def test_a_closed_session_that_is_forgotten_leaves_nothing(quiet_clock: object) -> None:
    assert await garbage_of(cast_of(speaks), in_a_session_of_its_own) == 0
