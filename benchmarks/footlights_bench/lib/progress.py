"""What a benchmark is doing now, for those who wait: on stderr, so that stdout stays the report."""

from __future__ import annotations

import sys


def say(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)
