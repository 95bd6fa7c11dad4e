"""The model loader of a turn: it makes the chosen model ready and lets everybody see that it does.

A hot model is ready at once. For any other, `model_loading` is out before the loading begins, progress follows
in whole percents, and `model_ready` says how long it took.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.errors import ModelError
from footlights.events import ModelLoading, ModelReady, ModelSelected, WarmState
from footlights.lifecycle import TurnState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.cast import ModelChoice
    from footlights.models import Model
    from footlights.turn import Turn

_ROUNDING = 1e-9
"""0.29 * 100 is a little less than 29."""


@enable_ki_protection
async def load_models(
    turn: Turn,
    models: Mapping[str, Model],
    choices: trio.MemoryReceiveChannel[ModelChoice],
    ready: trio.MemorySendChannel[Model],
) -> None:
    async for choice in choices:
        model = models[choice.model_id]
        turn.emit(ModelSelected(choice.model_id, choice.reason))
        await _make_ready(turn, model)
        await ready.send(model)


def select_hot(turn: Turn, choice: ModelChoice) -> None:
    """A model that is ready already: nothing to load, nothing to wait for."""
    turn.emit(ModelSelected(choice.model_id, choice.reason))
    turn.emit(ModelReady(choice.model_id, WarmState.HOT, load_ms=0))


async def _make_ready(turn: Turn, model: Model) -> None:
    warm_state = model.warm_state
    load_ms = 0
    if warm_state is not WarmState.HOT:
        began = trio.current_time()
        progress = _Progress(turn, model.model_id, cold_start=warm_state is WarmState.COLD)
        try:
            await model.load(progress.report)
        except ModelError:
            raise
        except Exception as error:  # a boundary: whatever a model raises is a ModelError, with that as its cause
            raise ModelError("The model failed while it was loading.") from error
        load_ms = round((trio.current_time() - began) * 1000)
    turn.emit(ModelReady(model.model_id, warm_state, load_ms))


class _Progress:
    """Says at once that loading began, then passes on progress, no more than 100 times."""

    def __init__(self, turn: Turn, model_id: str, *, cold_start: bool) -> None:
        self._turn = turn
        self._model_id = model_id
        self._cold_start = cold_start
        self._percent = 0
        turn.emit(ModelLoading(model_id, cold_start))

    def report(self, progress: float) -> None:
        """Forward only, and only while it loads: a model may report whatever and whenever it likes."""
        percent = 0 if isnan(progress) else int(max(0.0, min(1.0, progress)) * 100 + _ROUNDING)
        if percent > self._percent and self._turn.state is TurnState.LOADING:
            self._percent = percent
            self._turn.emit(ModelLoading(self._model_id, self._cold_start, percent / 100))
