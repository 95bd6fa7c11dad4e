"""`footlights bench growth`: whether more sessions and more turns make a turn dearer, or the process larger.

Three questions in one run: what a turn costs when many sessions are open, what becomes of time and memory over very
many turns, and for how long the garbage collector holds everybody up.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights_bench.growth.cost import measure_cost
from footlights_bench.growth.pauses import measure_pauses
from footlights_bench.growth.run import measure_long_run
from footlights_bench.growth.scale import GROWTH_FULL, GROWTH_QUICK
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.growth.pauses import Policy
    from footlights_bench.lib.figures import Figure


def run_growth(serving: Policy, *, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code.

    `serving` is how a server collects garbage.
    """
    return publish(measure_growth(serving, quick=quick), json_path, strict=strict)


def measure_growth(serving: Policy, *, quick: bool) -> Report:
    scale = GROWTH_QUICK if quick else GROWTH_FULL
    machine = this_machine()
    say("measuring pauses")
    figures: list[Figure] = trio.run(partial(measure_pauses, serving=serving), scale)
    # In one process the sessions of all stages are in the way of a collector that goes through everything.
    with serving():
        say("measuring turns among many sessions")
        figures += trio.run(measure_cost, scale)
        say("measuring very many turns")
        figures += trio.run(measure_long_run, scale)
    return Report("growth", quick, machine, figures)
