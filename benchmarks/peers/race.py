"""`make bench-peers`: the same turn in Footlights and in its peers, in one interleaved run.

    python -m peers.race --quick --json race.json --markdown race.md

It takes some minutes. Peers without an environment under `.venv-peers` are skipped, and named.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from peers.entrants import ENVIRONMENTS, entrants
from peers.laps import FULL, QUICK, run_race
from peers.race_report import RaceReport
from peers.results import results

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(prog="peers.race", description="The same NPC turn in Footlights and in its peers.")
    parser.add_argument("--quick", action="store_true", help="seconds; shows that the race works, no more")
    parser.add_argument("--stages", type=int, default=5, help="that tokens pass, where a peer has stages")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="where those of the peers are")
    asked = parser.parse_args(arguments)

    machine = this_machine()
    pace = QUICK if asked.quick else FULL
    ready, skipped = entrants(asked.stages, asked.environments)
    for peer in skipped:
        print(f"*** SKIPPED: {peer.name}: {peer.reason} ***", file=sys.stderr)
    records, failed = trio.run(partial(run_race, ready, pace, say))
    report = RaceReport(machine.afterwards(), pace, asked.stages, results(records), [*skipped, *failed])
    text = report.to_markdown()
    print(text)
    if asked.markdown is not None:
        asked.markdown.write_text(text, encoding="utf-8")
    if asked.json is not None:
        found = {"bench": "peers", "quick": asked.quick, **report.to_json()}
        asked.json.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
