"""`make bench-NAME`, or `python -m suites NAME`: measure one part of Footlights on this machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

SUITES = {
    "core": "The kernel in process: plain calls, events a second, memory.",
    "authority": "Commits on this disk: rate, latency, and the behaviour of a long ledger.",
    "cluster": "Worlds in PostgreSQL: commits, compared with those in a file.",
    "world": "Worlds from 1 KB to 100 MB and of odd shapes: commits, latency, bytes, memory, opening again.",
    "models": "A local model: first token and cancel compared with its engine alone, and its effect on the event loop.",
    "embed": "A game loop with a stage on a thread: the effect of streaming turns on frames, and the latency of calls.",
    "growth": "Many sessions and very many turns: cost of a turn, memory, duration of garbage collections.",
    "wire": "The servers over loopback: events a second compared with bare loops.",
    "workers": "Many worlds in one process, and worlds spread over workers: memory, and CPU time of the servers.",
    "counts": "The cost of turns and commits in task steps, calls, encodes and sends: counted, not timed.",
    "start": "The time from the start of a process to an import, a first turn, a server that answers.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="suites", description=__doc__)
    commands = parser.add_subparsers(dest="suite", required=True, metavar="NAME")
    for name, about in SUITES.items():
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
        command.add_argument("--quick", action="store_true", help="fewer rounds: a smoke test, not a measurement")
        command.add_argument("--strict", action="store_true", help="exit with 1 if an aim is missed")
        if name == "models":
            command.add_argument("--model", metavar="NAME|FILE", default="smollm2", help="the weights to measure")
    asked = parser.parse_args(arguments)
    if asked.json is not None and not asked.json.parent.is_dir():
        parser.error(f"{asked.json} cannot be written: there is no such folder")
    also = {"weights": asked.model} if asked.suite == "models" else {}
    run = import_module(f"suites.{asked.suite}.suite").run
    try:
        return int(run(quick=asked.quick, json_path=asked.json, strict=asked.strict, **also))
    except FootlightsError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
