"""`footlights run`: one narrated run in this process.

A first interrupt cancels the run and shows its end; a second one does not wait for the end.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import trio

from footlights import FootlightsError, open_stage
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.dexi.pure.events import Done, RunOutcome
from footlights_transports.views.dexi.runs import Runs

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable

    from footlights import Cast
    from footlights_transports.views.dexi.pure.events import DexiEvent
    from footlights_transports.views.dexi.run import Run
    from footlights_transports.views.dexi.runs import RunRequest, RunSettings

_ME = User()


def run_here(cast: Cast, request: RunRequest, show: Callable[[DexiEvent], None]) -> RunOutcome:
    """Run until the end or until SIGINT, and pass each event to `show`. Raises `FootlightsError`.

    If `show` raises `BrokenPipeError`, the run is canceled, and the error is raised again.
    """
    return trio.run(_run_until_signal, cast, request, show)


async def _run_until_signal(cast: Cast, request: RunRequest, show: Callable[[DexiEvent], None]) -> RunOutcome:
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        return await run(cast, request, show, interrupts)


async def run(
    cast: Cast,
    request: RunRequest,
    show: Callable[[DexiEvent], None],
    interrupts: AsyncIterable[object] | None = None,
    settings: RunSettings | None = None,
) -> RunOutcome:
    """Run on a stage of its own, and return the outcome."""
    outcome = RunOutcome.CANCELED
    refused: FootlightsError | BrokenPipeError | None = None
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        runs = Runs(SessionAccess(stage), settings)
        await nursery.start(runs.keep)
        try:
            begun = await runs.begin(_ME, request)
        except FootlightsError as error:  # raised again outside of the nursery, which would wrap it
            refused = error
        else:
            if interrupts is not None:
                nursery.start_soon(_obey, interrupts, runs, begun, nursery.cancel_scope)
            try:
                outcome = await _follow(begun, show)
            except BrokenPipeError as error:  # likewise
                refused = error
        nursery.cancel_scope.cancel(reason="the run is over")
    if refused is not None:
        raise refused
    return outcome


async def _follow(begun: Run, show: Callable[[DexiEvent], None]) -> RunOutcome:
    shown = 0
    while True:
        await begun.wait_beyond(shown)
        for entry in begun.entries[shown:]:
            show(entry.event)
        shown = len(begun.entries)
        if begun.is_over:
            last = begun.entries[-1].event
            return last.outcome if isinstance(last, Done) else RunOutcome.UNKNOWN


async def _obey(interrupts: AsyncIterable[object], runs: Runs, begun: Run, everything: trio.CancelScope) -> None:
    async for _ in interrupts:
        if not runs.cancel_run(begun):  # it was canceled before
            everything.cancel(reason="interrupted twice")
