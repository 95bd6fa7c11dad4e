"""Model phase: checks that a turn's model events are consistent.

The lifecycle decides which event may follow which. This checks that they name one model, that a fallback names another
and says what was wrong, that a model which was not hot shows that it loads, and that load progress does not go back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import InvalidEvent
from footlights.events import ModelLoading, ModelReady, ModelSelected, WarmState

if TYPE_CHECKING:
    from typing import TypeAlias

ModelEvent: TypeAlias = "ModelSelected | ModelLoading | ModelReady"

FALLBACK = "fallback"
"""The reason of a `model_selected` that replaces a model that failed."""


class ModelPhase:
    __slots__ = ("_model_id", "_progress", "_shown")

    def __init__(self) -> None:
        self._model_id = ""
        self._shown = False
        self._progress = 0.0

    def check(self, payload: ModelEvent) -> None:
        """Raises `InvalidEvent` if the event contradicts an earlier one."""
        if isinstance(payload, ModelSelected):
            if (payload.reason == FALLBACK) is (payload.error is None):
                raise InvalidEvent("payload.error: must be there exactly if the reason is fallback")
            if payload.error is not None and payload.model_id == self._model_id:
                raise InvalidEvent("payload.model_id: a fallback must be another model")
            return
        if payload.model_id != self._model_id:
            raise InvalidEvent("payload.model_id: must be the model that was selected")
        if isinstance(payload, ModelLoading):
            if (payload.progress or 0.0) < self._progress:
                raise InvalidEvent("payload.progress: must not go back")
        elif payload.warm_state is WarmState.HOT:
            if self._shown or payload.load_ms:
                raise InvalidEvent("payload.warm_state: a hot model has nothing to load")
        elif not self._shown:
            raise InvalidEvent("payload.warm_state: a model that was not hot shows that it loads first")

    def take(self, payload: ModelEvent) -> None:
        """Record an emitted event."""
        if isinstance(payload, ModelSelected):
            self._model_id, self._shown, self._progress = payload.model_id, False, 0.0
        elif isinstance(payload, ModelLoading):
            self._shown, self._progress = True, payload.progress or self._progress
