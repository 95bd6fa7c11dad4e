"""Progress of a benchmark, on stderr: stdout holds nothing but the report."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console


def say(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


class ShowProgress(Protocol):
    """Receives the name of the current phase and how far it is."""

    def __call__(self, phase: str, done: float, total: float, /) -> None: ...


def ignore_progress(phase: str, done: float, total: float) -> None:
    """A `ShowProgress` that shows nothing."""


@contextmanager
def shown_progress() -> Generator[ShowProgress]:
    """A bar in a terminal; elsewhere one line for each phase."""
    if sys.stderr.isatty():
        from rich.console import Console

        with progress_bar(Console(stderr=True)) as show:
            yield show
    else:
        yield _Phases()


@contextmanager
def progress_bar(console: Console) -> Generator[ShowProgress]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(phase: str, done: float, total: float) -> None:
            progress.update(task, description=phase, completed=done, total=total)

        yield show


class _Phases:
    """Prints the name of each phase once."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, phase: str, done: float, total: float) -> None:
        if phase != self._said:
            self._said = phase
            say(phase)
