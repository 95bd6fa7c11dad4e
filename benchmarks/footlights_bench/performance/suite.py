"""`make performance`: measure everything, keep the results, and write them into docs/performance.md.

    python -m footlights_bench.performance.suite               nearly everything, in less than 25 minutes
    python -m footlights_bench.performance.suite --full        everything; the million turns of growth take a while
    python -m footlights_bench.performance.suite --only core wirethese; the others keep their results and their dates
    python -m footlights_bench.performance.suite --quick --docs Da smoke test, with a page in another folder
    python -m footlights_bench.performance.suite --render-only measures nothing, only writes the page again

It exits with 1 if a suite failed, and if the page does not say why an aim was missed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from footlights_bench.performance.page import rendered, unexplained, unshown
from footlights_bench.performance.results import Results
from footlights_bench.performance.run import measure
from footlights_bench.performance.suites import BENCHMARKS, SUITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.performance.suites import Suite

DOCS = BENCHMARKS.parent / "docs"
PAGE = "performance.md"
FOLDER = "performance"


def main(arguments: Sequence[str], suites: Sequence[Suite] = SUITES) -> int:
    names = [suite.name for suite in suites]
    parser = ArgumentParser(prog="footlights_bench.performance.suite", description="All that is measured, on one page.")
    parser.add_argument("--quick", action="store_true", help="a smoke test, not a measurement; nothing is judged")
    parser.add_argument("--full", action="store_true", help="also what takes very long")
    parser.add_argument("--only", nargs="+", metavar="SUITE", choices=names, default=[])
    parser.add_argument("--render-only", action="store_true", help="measure nothing, write the page again")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="where the page is")
    asked = parser.parse_args(arguments)
    if asked.quick and asked.docs is None:
        parser.error("a quick run would replace measurements: name another place with --docs")
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
        *[f"{PAGE} has no place for {name}" for name in unshown(text, suites)],
        *[f"{PAGE} does not say all about why this was missed: {name}" for name in unexplained(text, results, suites)],
    ]
    for trouble in troubles:
        print(f"*** {trouble} ***", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
