"""`make bench-counts`: task steps, calls, encodes and sends of turns and commits, each with its bound.

Nothing is timed, so the load of the machine changes nothing: only a change of the code can exceed a bound.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.lib.progress import say
from suites.counts.bounds import FILE, bound_of, read_bounds
from suites.counts.memory import count_blocks
from suites.counts.meter import Count, repeatable
from suites.counts.wire import over_sse, over_websocket
from suites.counts.workloads import (
    HALF_A_TURN,
    TURN_WITH_A_TOOL,
    a_tool_in_the_middle,
    durable_commits,
    half_a_turn_yielding,
    local_turn,
    look_around,
    paced_evenly,
)
from suites.lib.figures import Aim, Figure
from suites.lib.report import run_suite
from suites.lib.scripts import EVENTS_PER_TURN, whole_turn, whole_turn_yielding

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from suites.counts.bounds import Bounds, Counted
    from suites.counts.meter import Meter
    from suites.counts.workloads import Workload
    from suites.lib.figures import Unit


@frozen
class Subject:
    """A workload, and the number of events or commits in it, by which its counts are divided."""

    opened: Callable[[], AbstractAsyncContextManager[Workload]]
    number: int = EVENTS_PER_TURN
    each: str = "an event"


SUBJECTS: Mapping[str, Subject] = {
    "1 subscriber, flooding": Subject(partial(local_turn, whole_turn)),
    "1 subscriber, yielding": Subject(partial(local_turn, whole_turn_yielding)),
    "8 subscribers, flooding": Subject(partial(local_turn, whole_turn, subscribers=8)),
    "8 subscribers, yielding": Subject(partial(local_turn, whole_turn_yielding, subscribers=8)),
    "with a tool": Subject(
        partial(local_turn, a_tool_in_the_middle, TURN_WITH_A_TOOL, tools=[look_around]),
        TURN_WITH_A_TOOL.events,
    ),
    "cancelled half way": Subject(partial(local_turn, half_a_turn_yielding, HALF_A_TURN), HALF_A_TURN.events),
    "WebSocket, 1 client": Subject(partial(over_websocket, whole_turn_yielding)),
    "WebSocket, 8 clients": Subject(partial(over_websocket, whole_turn_yielding, clients=8)),
    "WebSocket in batches, 1 client": Subject(partial(over_websocket, paced_evenly, in_batches=True)),
    "WebSocket in batches, 8 clients": Subject(partial(over_websocket, paced_evenly, in_batches=True, clients=8)),
    "SSE, 1 client": Subject(partial(over_sse, whole_turn_yielding)),
    "SSE, 8 clients": Subject(partial(over_sse, whole_turn_yielding, clients=8)),
    "durable commit, a session's first": Subject(partial(durable_commits, 1, known_sessions=False), 1, "a commit"),
    "durable commit, a session's next": Subject(partial(durable_commits, 1, known_sessions=True), 1, "a commit"),
    "64 durable commits at once": Subject(partial(durable_commits, 64, known_sessions=True), 64, "a commit"),
}


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    def measure() -> list[Figure]:
        return figures(count_all(memory=not quick), read_bounds(FILE))

    return run_suite("counts", {"counts": measure}, quick=quick, json_path=json_path, strict=strict)


def count_all(*, memory: bool = True) -> Counted:
    """All counts; those of memory only if `memory`."""
    counted: Counted = {}
    for name, subject in SUBJECTS.items():
        say(f"counting {name}")
        counted[name] = count_workload(subject)
    if memory:
        say("counting blocks of memory")
        counted.update(repeatable(count_blocks))
    return counted


def count_workload(subject: Subject) -> dict[Count, int]:
    async def count(meter: Meter) -> dict[Count, int]:
        async with _opened(subject, meter) as workload:
            with meter.running():
                await workload.play()
            return {**meter.counts, **await workload.look()}

    return repeatable(count)


@asynccontextmanager
async def _opened(subject: Subject, meter: Meter) -> AsyncGenerator[Workload]:
    """A workload that was played once: objects that only the first play makes are not counted."""
    async with subject.opened() as workload:
        try:
            with meter.time_goes_on():
                await workload.play()
            await workload.look()
            yield workload
        finally:
            meter.let_time_pass()


def figures(counted: Counted, bounds: Bounds) -> list[Figure]:
    return [
        _figure(name, count, value, bound_of(bounds, name, count))
        for name, counts in counted.items()
        for count, value in counts.items()
    ]


def _figure(name: str, count: Count, value: int, bound: int | None) -> Figure:
    aim = None if bound is None else Aim("at most", bound)
    unit: Unit = "bytes" if count is Count.BYTES else "blocks" if count is Count.BLOCKS else "times"
    subject = SUBJECTS.get(name)
    spread = {} if subject is None or subject.number == 1 else {subject.each: round(value / subject.number, 2)}
    return Figure(name, count, value, unit, aim, spread)
