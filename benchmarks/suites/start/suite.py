"""`make bench-start`: time from the start of a process to an import, a first turn and a server that answers.

`python -c pass` and `import trio` are measured too, as lower bounds. All kinds alternate in one run, so other load on
the machine slows all of them.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from footlights_bench.lib.progress import say
from suites.lib.figures import Aim, Figure, median_figure
from suites.lib.report import run_suite
from suites.start.runs import EVERY_NAME, Runs

if TYPE_CHECKING:
    from suites.start.runs import FirstTurn, Opening

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


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    def measure() -> list[Figure]:
        with TemporaryDirectory(prefix="footlights-bench-") as folder:
            return _measure(Runs(Path(folder).resolve()), _QUICK_ROUNDS if quick else _FULL_ROUNDS)

    return run_suite("start", {"the start of processes": measure}, quick=quick, json_path=json_path, strict=strict)


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
            median_figure(
                "a process that only imports", name, samples, "ms", IMPORT if name == "import footlights" else None
            )
            for name, samples in imports.items()
        ),
        median_figure(subject, "until commit_final", [turn.committed for turn in turns], "ms"),
        median_figure(subject, "the part after the imports", [turn.played for turn in turns], "ms"),
        median_figure(
            "footlights serve", "until /healthz answers", [server.answered for server in servers], "ms", SERVER
        ),
        median_figure(
            "footlights serve", "until it says that it is open", [server.announced for server in servers], "ms"
        ),
        median_figure("footlights serve", "until /healthz answers, nothing compiled yet", [uncompiled.answered], "ms"),
        median_figure("footlights --help", "until it has ended", helps, "ms"),
    ]
