"""Pauses of the garbage collector while sessions start, play and stream.

Every collection is timed, from before the first session until the last turn is over, with the default settings of
Python and with the policy of `footlights serve`. The figure is processor time, so other load on the machine does not
count as a pause; the longest pause in wall time is in the spread.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Literal

import trio
from attrs import frozen

from footlights import Limits, MemoryLedger, open_stage
from footlights_bench.lib.progress import say
from footlights_transports.server.gc_policy import GentleCollector
from suites.growth.crowd import TURNS_KEPT, Crowd, tiny_turn
from suites.lib.figures import Aim, Figure
from suites.lib.scripts import cast_of, paced_turn

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from footlights import InteractionSession, Prompt
    from footlights_actors import Line
    from suites.growth.suite import GrowthScale

SHORT_PAUSE = Aim("below", 10_000)
"""Microseconds."""

_GENERATIONS = range(3)
_SLOWLY = "Go on, slowly."


@frozen
class Pause:
    """One collection, in seconds."""

    generation: int
    processor: float
    clock: float


async def measure_pauses(scale: GrowthScale) -> list[Figure]:
    figures: list[Figure] = []
    policies = (("as Python does it", nullcontext, None), ("as serve does it", GentleCollector, SHORT_PAUSE))
    for silent in (0, scale.open_besides):
        subject = f"garbage collection, {scale.streaming:,} sessions streaming"
        if silent:
            subject += f", {silent:,} more open"
        for name, policy, aim in policies:
            say(f"{subject}, {name}")
            with recorded() as pauses, policy():  # in this order: work of the policy is part of the pause
                await stream(scale.streaming, silent, scale.seconds)
            figures.append(_figure(subject, name, pauses, aim))
    return figures


@contextmanager
def recorded() -> Generator[list[Pause]]:
    """Record every collection in the block."""
    pauses: list[Pause] = []
    began = 0.0, 0.0

    def note(phase: Literal["start", "stop"], info: Mapping[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = thread_time(), perf_counter()
        else:
            processor, clock = began
            pauses.append(Pause(info["generation"], thread_time() - processor, perf_counter() - clock))

    gc.callbacks.append(note)
    try:
        yield pauses
    finally:
        gc.callbacks.remove(note)


async def stream(streaming: int, silent: int, seconds: float) -> int:
    """Stream paced turns in `streaming` sessions, while `silent` sessions keep finished turns and are idle.

    Returns the number of turns that settled.
    """
    limits = Limits(replay_turns=TURNS_KEPT)
    async with open_stage(cast_of(_script), ledger=MemoryLedger(), limits=limits) as stage:
        if silent:
            await Crowd([stage.start() for _ in range(silent)]).fill(limits)
        async with trio.open_nursery() as nursery:
            for _ in range(streaming):
                nursery.start_soon(_stream, stage.start())
            await trio.sleep(seconds)
            nursery.cancel_scope.cancel(reason="it was measured for long enough")
        return sum(stage.statistics().turns_settled.values())


def _script(prompt: Prompt) -> Iterator[Line]:
    return paced_turn(prompt) if prompt.user == _SLOWLY else tiny_turn(prompt)


async def _stream(session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        while True:
            turn_id = session.begin_turn(_SLOWLY)
            async for _ in stream.until_commit(turn_id):
                pass


def _figure(subject: str, name: str, pauses: Sequence[Pause], aim: Aim | None) -> Figure:
    by_generation: dict[str, float] = {}
    for generation in _GENERATIONS:
        times = [pause.processor for pause in pauses if pause.generation == generation]
        by_generation[f"generation {generation} ({len(times):,} times)"] = _longest(times)
    spread = {**by_generation, "by the clock": _longest([pause.clock for pause in pauses])}
    return Figure(subject, f"longest pause, {name}", max(by_generation.values()), "µs", aim, spread)


def _longest(times: Sequence[float]) -> float:
    return max(times, default=0.0) * 1e6
