"""`footlights bench counts`: what turns and commits cost in steps, calls and copies, each beside its bound.

None of it is timed, so a busy machine changes nothing: a count that is over its bound is a change of the code.

    python -m footlights_bench.counts.suite --write-bounds    # what is counted now is what may be
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.counts.allocations import calibrated_meter
from footlights_bench.counts.bounds import FILE, bound_of, read_bounds, write_bounds
from footlights_bench.counts.memory import count_blocks
from footlights_bench.counts.meter import Count, repeatable
from footlights_bench.counts.scenes import (
    HALF_A_TURN,
    TURN_WITH_A_TOOL,
    a_tool_in_the_middle,
    committing,
    half_a_turn_yielding,
    look_around,
    paced_evenly,
    telling,
)
from footlights_bench.counts.wire import over_sse, over_websocket
from footlights_bench.lib.figures import Aim, Figure
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.lib.scripts import EVENTS_PER_TURN, whole_turn, whole_turn_yielding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from footlights_bench.counts.allocations import AllocationMeter
    from footlights_bench.counts.bounds import Bounds, Counted
    from footlights_bench.counts.meter import Meter
    from footlights_bench.counts.scenes import Scene
    from footlights_bench.lib.figures import Unit

_COMMITS = 64


@frozen
class Subject:
    """What is played, and how many of something are in it."""

    opened: Callable[[], AbstractAsyncContextManager[Scene]]
    number: int = EVENTS_PER_TURN
    each: str = "an event"
    is_followed: bool = False
    """Whether its allocations are counted too. That is slow, and a crowd would tell nothing new.

    Not where something is done that belongs into a thread, tools and durable commits: in one process of thirty those
    are one or two more, and nobody found out why.
    """


SUBJECTS: Mapping[str, Subject] = {
    "1 subscriber, flooding": Subject(partial(telling, whole_turn), is_followed=True),
    "1 subscriber, yielding": Subject(partial(telling, whole_turn_yielding)),
    "8 subscribers, flooding": Subject(partial(telling, whole_turn, subscribers=8)),
    "8 subscribers, yielding": Subject(partial(telling, whole_turn_yielding, subscribers=8)),
    "with a tool": Subject(
        partial(telling, a_tool_in_the_middle, TURN_WITH_A_TOOL, tools=[look_around]),
        TURN_WITH_A_TOOL.events,
    ),
    "cancelled half way": Subject(
        partial(telling, half_a_turn_yielding, HALF_A_TURN), HALF_A_TURN.events, is_followed=True
    ),
    "WebSocket, 1 client": Subject(partial(over_websocket, whole_turn_yielding), is_followed=True),
    "WebSocket, 8 clients": Subject(partial(over_websocket, whole_turn_yielding, clients=8)),
    "WebSocket in batches, 1 client": Subject(partial(over_websocket, paced_evenly, in_batches=True)),
    "WebSocket in batches, 8 clients": Subject(partial(over_websocket, paced_evenly, in_batches=True, clients=8)),
    "SSE, 1 client": Subject(partial(over_sse, whole_turn_yielding), is_followed=True),
    "SSE, 8 clients": Subject(partial(over_sse, whole_turn_yielding, clients=8)),
    "durable commit, a session's first": Subject(partial(committing, 1, known_sessions=False), 1, "a commit"),
    "durable commit, a session's next": Subject(partial(committing, 1, known_sessions=True), 1, "a commit"),
    "64 durable commits at once": Subject(partial(committing, _COMMITS, known_sessions=True), _COMMITS, "a commit"),
}


def run_counts(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Count, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_counts(quick=quick), json_path, strict=strict)


def measure_counts(*, quick: bool) -> Report:
    machine = this_machine()
    return Report("counts", quick, machine, figures(count_all(memory=not quick), read_bounds(FILE)))


def count_all(*, memory: bool = True) -> Counted:
    """Everything, with what is counted in blocks of memory or without."""
    counted: Counted = {}
    for name, subject in SUBJECTS.items():
        say(f"counting {name}")
        counted[name] = count_scene(subject)
        if memory and subject.is_followed:
            counted[name] |= count_allocations_alone(name)
    if memory:
        say("counting blocks of memory")
        counted.update(repeatable(count_blocks))
    return counted


def count_scene(subject: Subject) -> dict[Count, int]:
    return repeatable(partial(_count_scene, subject))


async def _count_scene(subject: Subject, meter: Meter) -> dict[Count, int]:
    async with subject.opened() as scene:
        try:
            with meter.time_goes_on():  # what is made once, for the first, is no cost of the next
                await scene.play()
            await scene.look()
            with meter.running():
                await scene.play()
            return {**meter.counts, **await scene.look()}
        finally:
            meter.let_time_pass()


def count_allocations_alone(name: str) -> dict[Count, int]:
    """In a process of its own: there it is the same every time."""
    command = [sys.executable, "-m", "footlights_bench.counts.suite", "--allocations", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    return {Count.ALLOCATIONS: int(done.stdout)}


def count_allocations(subject: Subject) -> dict[Count, int]:
    return repeatable(partial(_count_allocations, subject, calibrated_meter()))


async def _count_allocations(subject: Subject, allocations: AllocationMeter, meter: Meter) -> dict[Count, int]:
    async with subject.opened() as scene:
        try:
            with meter.time_goes_on(), allocations.learning():
                await scene.play()
            await scene.look()
            with meter.time_goes_on(), allocations.running():
                await scene.play()
            return {Count.ALLOCATIONS: allocations.allocations}
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
    unit: Unit = (
        "bytes" if count is Count.BYTES else "blocks" if count in (Count.BLOCKS, Count.ALLOCATIONS) else "times"
    )
    subject = SUBJECTS.get(name)
    spread = {} if subject is None or subject.number == 1 else {subject.each: round(value / subject.number, 2)}
    return Figure(name, count, value, unit, aim, spread)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Count what turns and commits cost.")
    parser.add_argument("--write-bounds", action="store_true", help=f"keep what is counted in {FILE.name}")
    parser.add_argument("--allocations", choices=SUBJECTS, metavar="SCENE", help="print how many this scene makes")
    options = parser.parse_args(arguments)
    if options.allocations:
        sys.stdout.write(f"{count_allocations(SUBJECTS[options.allocations])[Count.ALLOCATIONS]}\n")
    elif options.write_bounds:
        write_bounds(count_all(), FILE)
    else:
        raise SystemExit(run_counts(quick=False, json_path=None, strict=True))


if __name__ == "__main__":
    main()
