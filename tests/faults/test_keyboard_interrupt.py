"""Ctrl-C at any instant tears no event.

A real SIGINT is raised at a line of the kernel or of an actor: one run for each line of code that a scenario
runs through, when it does so for the first time, and for every eleventh step besides. Wherever it strikes,
the host gets its KeyboardInterrupt, the stage closes in order, and a subscriber that outlives it all sees a
lawful and complete stream.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

import footlights
import footlights_actors
from footlights import InteractionSession, StreamEvent, Tool, ToolContext, WarmState, laws, open_stage
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast
from footlights_kit.trio_hooks import scheduled_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from footlights import Prompt
    from footlights.events import JsonValue

pytestmark = pytest.mark.usefixtures("interruptible")

EVERY = 11
SHARES = 4
"""The runs are shared out over so many tests, the first of which is always run."""
RUNTIME = Path(footlights.__file__).parent
NOT_THE_KERNEL = tuple(str(RUNTIME / name) for name in ("testing", "laws", "wire"))
KERNEL = (str(RUNTIME), str(Path(footlights_actors.__file__).parent))


class Striking:
    """Counts the lines that run in the kernel, and raises SIGINT at one of them."""

    def __init__(self, at: int | None) -> None:
        self.lines = 0
        self.first_times: dict[tuple[str, int], int] = {}
        self._at = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Striking | None:
        path = frame.f_code.co_filename
        if not path.startswith(KERNEL) or path.startswith(NOT_THE_KERNEL):
            return None
        if event == "line":
            self.lines += 1
            self.first_times.setdefault((path, frame.f_lineno), self.lines)
            if self.lines == self._at:
                signal.raise_signal(signal.SIGINT)
        return self


async def rent(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep(0.01)
    return True


def script(prompt: Prompt) -> list[Line]:
    return [Say(" Done.")] if prompt.exchanges else [Say("Good evening, traveller."), Call("rent")]


async def watch(session: InteractionSession, seen: list[StreamEvent], task_status: trio.TaskStatus[None]) -> None:
    with trio.CancelScope(shield=True):
        async with session.subscribe() as stream:
            task_status.started()
            seen.extend([event async for event in stream])


async def host(seen: list[StreamEvent], striking: Striking, begun: list[str]) -> None:
    model = ScriptedModel(script, pace=0.01, warm_state=WarmState.COLD, load_seconds=0.05, load_steps=2)
    cast = standard_cast(model, tools=[Tool(name="rent", run=rent)])
    async with trio.open_nursery() as nursery:  # noqa: SIM117 - the watcher outlives the stage
        async with open_stage(cast, wall_clock=trio.current_time) as stage:
            session = stage.start()
            await nursery.start(watch, session, seen)
            sys.settrace(striking)
            begun.append(session.begin_turn("A room?"))
            begun.append(session.begin_turn("And breakfast?"))
            async with session.subscribe() as stream:
                async for _ in stream.until_commit(begun[0]):
                    pass
            session.heard(begun[0], 3)
            session.cancel()
            await session.close()
            sys.settrace(None)


def run(striking: Striking) -> tuple[list[StreamEvent], list[str], BaseException | None]:
    seen: list[StreamEvent] = []
    begun: list[str] = []
    tracing: Callable[..., object] | None = sys.gettrace()
    try:
        with scheduled_by(0):
            trio.run(host, seen, striking, begun, clock=trio.testing.MockClock(autojump_threshold=0))
    except BaseException as error:  # noqa: BLE001 - it is looked at
        return seen, begun, error
    finally:
        sys.settrace(tracing)  # type: ignore[arg-type]
    return seen, begun, None


@pytest.mark.parametrize("share", [0, *(pytest.param(share, marks=pytest.mark.long) for share in range(1, SHARES))])
def test_ctrl_c_at_any_line_tears_no_event(share: int) -> None:
    run(Striking(None))  # the first run fills caches, and goes through more lines than any after it
    whole = Striking(None)
    _, _, error = run(whole)
    assert error is None
    assert whole.lines > 1000
    strikes = sorted({*whole.first_times.values(), *range(1, whole.lines, EVERY)})
    assert len(whole.first_times) > 400
    for at in strikes[share::SHARES]:
        seen, begun, error = run(Striking(at))
        assert error is not None, f"line {at}"
        assert _is_interrupt(error), f"line {at}: {error!r}"
        assert laws.check(seen) == [], f"line {at}"
        assert {event.turn_id for event in seen} >= set(begun), f"line {at}"


def _is_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_interrupt(each) for each in error.exceptions)
    return isinstance(error, KeyboardInterrupt)
