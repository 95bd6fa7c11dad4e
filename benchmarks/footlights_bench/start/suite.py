"""`footlights bench start`: how long it takes until there is something to use, each from the start of a process.

An import, a first turn, a server that answers, and the help of the command line; beside them Python alone and `import
trio`, which nothing of ours can be faster than. All kinds take turns within one run, so that other work on the machine
slows all of them.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from footlights_bench.lib.figures import Aim, Figure
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.start.runs import EVERY_NAME, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.start.runs import FirstTurn, Opening

IMPORT = Aim("below", 150)
SERVER = Aim("below", 1_000)

_FULL_ROUNDS = 15
_QUICK_ROUNDS = 1

_PROGRAMS = {
    "python -c pass": "pass",
    "import trio": "import trio",
    "import footlights": "import footlights",
    "import footlights, and use every name": EVERY_NAME,
}


def run_start(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_start(quick=quick), json_path, strict=strict)


def measure_start(*, quick: bool) -> Report:
    machine = this_machine()
    with TemporaryDirectory(prefix="footlights-bench-") as folder:
        figures = _measure(Runs(Path(folder).resolve()), _QUICK_ROUNDS if quick else _FULL_ROUNDS)
    return Report("start", quick, machine, figures)


def _measure(runs: Runs, rounds: int) -> list[Figure]:
    say("compiling everything, once")
    uncompiled = runs.server()
    for program in _PROGRAMS.values():
        runs.program(program)
    runs.first_turn()
    imports: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    turns: list[FirstTurn] = []
    servers: list[Opening] = []
    helps: list[float] = []
    for number in range(1, rounds + 1):
        say(f"starting everything, round {number} of {rounds}")
        for name, program in _PROGRAMS.items():
            imports[name].append(runs.program(program))
        turns.append(runs.first_turn())
        servers.append(runs.server())
        helps.append(runs.command("--help"))
    subject = "first turn, from the start of a process"
    return [
        *(
            _figure("a process that only imports", name, samples, IMPORT if name == "import footlights" else None)
            for name, samples in imports.items()
        ),
        _figure(subject, "until commit_final", [turn.committed for turn in turns]),
        _figure(subject, "the part after the imports", [turn.played for turn in turns]),
        _figure("footlights serve", "until /healthz answers", [server.answered for server in servers], SERVER),
        _figure("footlights serve", "until it says that it is open", [server.announced for server in servers]),
        _figure("footlights serve", "until /healthz answers, nothing compiled yet", [uncompiled.answered]),
        _figure("footlights --help", "until it has ended", helps),
    ]


def _figure(subject: str, name: str, samples: Sequence[float], aim: Aim | None = None) -> Figure:
    return Figure(subject, name, median(samples), "ms", aim, {"min": min(samples), "max": max(samples)})
