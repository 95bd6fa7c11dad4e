"""`make performance`: run the suites, keep their results, and write docs/performance.md.

    python -m suites.performance                    nearly all suites, in less than 25 minutes
    python -m suites.performance --full             all suites; the million turns of growth take long
    python -m suites.performance --only core wire   these suites; the others keep their results and dates
    python -m suites.performance --quick --docs D   a smoke test, with a page in another folder
    python -m suites.performance --render-only      no measurement, only the page

The exit code is 1 if a suite failed, or if the page does not explain a missed aim.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from suites.performance.page import rendered, unexplained, unshown
from suites.performance.results import Results
from suites.performance.run import measure
from suites.performance.suites import BENCHMARKS, SUITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suites.performance.suites import Suite

DOCS = BENCHMARKS.parent / "docs"
PAGE = "performance.md"
FOLDER = "performance"


def main(arguments: Sequence[str], suites: Sequence[Suite] = SUITES) -> int:
    names = [suite.name for suite in suites]
    parser = ArgumentParser(prog="suites.performance", description="Run the suites and write the performance page.")
    parser.add_argument("--quick", action="store_true", help="a smoke test, not a measurement; no aim is judged")
    parser.add_argument("--full", action="store_true", help="also run the suites that take very long")
    parser.add_argument("--only", nargs="+", metavar="SUITE", choices=names, default=[], help="run only these")
    parser.add_argument("--render-only", action="store_true", help="run nothing, write the page from the results")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="the folder of the page")
    asked = parser.parse_args(arguments)
    if asked.quick and asked.docs is None:
        parser.error("a quick run would replace measurements: name another folder with --docs")
    docs: Path = asked.docs or DOCS

    results = Results(docs / FOLDER)
    everything = asked.full or asked.quick
    chosen = [each for each in suites if (each.name in asked.only if asked.only else everything or not each.is_long)]
    failed: Sequence[str] = () if asked.render_only else measure(chosen, results, quick=asked.quick)
    page = docs / PAGE
    text = rendered(page.read_text(encoding="utf-8"), results, suites)
    page.write_text(text, encoding="utf-8")
    troubles = [
        *[f"{name} failed" for name in failed],
        *[f"{PAGE} has no section for {name}" for name in unshown(text, suites)],
        *[
            f"{PAGE} does not fully explain why this aim was missed: {name}"
            for name in unexplained(text, results, suites)
        ],
    ]
    for trouble in troubles:
        print(f"*** {trouble} ***", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
