"""`python -m suites.counts`: compare the counts with their bounds, or write new bounds.

python -m suites.counts --write-bounds    # the current counts become the bounds
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from suites.counts import suite
from suites.counts.bounds import FILE, write_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="suites.counts", description="Count the cost of turns and commits.")
    parser.add_argument("--write-bounds", action="store_true", help=f"write the counts to {FILE.name}")
    options = parser.parse_args(arguments)
    if not options.write_bounds:
        return suite.run(quick=False, json_path=None, strict=True)
    write_bounds(suite.count_all(), FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
