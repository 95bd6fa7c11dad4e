"""A bar for those who wait in front of a terminal, and a line for each phase for those who read a log; on stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from footlights_bench.lib.progress import say

if TYPE_CHECKING:
    from collections.abc import Generator

    from footlights_bench.scenario.run import Show


@contextmanager
def shown() -> Generator[Show]:
    if sys.stderr.isatty():
        with bar(Console(stderr=True)) as show:
            yield show
    else:
        yield Phases()


@contextmanager
def bar(console: Console) -> Generator[Show]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(doing: str, done: float, total: float) -> None:
            progress.update(task, description=doing, completed=done, total=total)

        yield show


class Phases:
    """Says each phase once."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, doing: str, done: float, total: float) -> None:
        if doing != self._said:
            self._said = doing
            say(doing)
