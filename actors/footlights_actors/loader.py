"""Model loader of a turn: makes the chosen model ready and streams the progress, or reports why it cannot.

A hot model is ready at once. For any other, `model_loading` is sent before the load begins, progress follows in whole
percents, and `model_ready` reports the duration. `model_ready` is sent when the turn has a slot of the model.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.errors import ModelUnavailable
from footlights.events import ModelLoading, ModelReady, WarmState
from footlights.turn.lifecycle import TurnState
from footlights.turn.timeline import Part

if TYPE_CHECKING:
    from footlights.events import ModelSelected
    from footlights.models.pool import ModelLease
    from footlights.turn.turn import Turn

_ROUNDING = 1e-9
"""0.29 * 100 is a little less than 29."""


@enable_ki_protection
async def load_model(
    turn: Turn, selected: ModelSelected, lease: ModelLease, result: trio.MemorySendChannel[ModelUnavailable | None]
) -> None:
    """Make the selected model ready. The result is None then, or else the reason why it is unavailable."""
    turn.emit(selected)
    # The result is sent without a checkpoint: when its receiver runs, this task has ended.
    try:
        await _make_ready(turn, lease)
    except ModelUnavailable as error:
        result.send_nowait(error)
    else:
        result.send_nowait(None)


def select_hot(turn: Turn, selected: ModelSelected) -> None:
    """Report a model that is hot and has a free slot."""
    turn.emit(selected)
    turn.emit(ModelReady(selected.model_id, WarmState.HOT, load_ms=0))


async def _make_ready(turn: Turn, lease: ModelLease) -> None:
    model_id = lease.model.model_id
    warm_state = lease.warm_state
    progress: _Progress | None = None
    load_ms = 0
    # A model that dies while the turn waits for a slot is loaded again.
    while not lease.claim_now():
        if lease.warm_state is WarmState.HOT:
            with turn.in_line(Part.SLOT):
                await lease.claim()
            continue
        lease.release()
        if progress is None:
            warm_state = lease.warm_state
            progress = _Progress(turn, model_id, cold_start=warm_state is WarmState.COLD)
        began = trio.current_time()
        await lease.load(progress.report)
        load_ms += round((trio.current_time() - began) * 1000)
    turn.emit(ModelReady(model_id, warm_state, load_ms))


class _Progress:
    """Reports the start of the load at once, then its progress, at most 100 times."""

    def __init__(self, turn: Turn, model_id: str, *, cold_start: bool) -> None:
        self._turn = turn
        self._model_id = model_id
        self._cold_start = cold_start
        self._percent = 0
        turn.emit(ModelLoading(model_id, cold_start))

    def report(self, progress: float) -> None:
        """Pass on increasing progress while the turn is loading; models may report any value at any time."""
        percent = 0 if isnan(progress) else int(max(0.0, min(1.0, progress)) * 100 + _ROUNDING)
        if percent > self._percent and self._turn.state is TurnState.LOADING:
            self._percent = percent
            self._turn.emit(ModelLoading(self._model_id, self._cold_start, percent / 100))
