"""Laws of models: selected, perhaps loading, then ready; no text and no tool call before that.

A model that fails may be replaced until it has said or done something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from footlights.events import WarmState

if TYPE_CHECKING:
    from footlights.events import ModelLoading, ModelReady, ModelSelected
    from footlights.laws.gap_places import Hidden
    from footlights.laws.law_texts import Report


@define
class _Load:
    model_id: str
    shown: bool = False
    progress: float = 0.0


class Models:
    def __init__(self, report: Report, hidden: Hidden) -> None:
        self._report = report
        self._hidden = hidden
        self._load: _Load | None = None
        """The model that was selected and is not ready yet."""
        self._last = ""
        """The model that was selected last; empty if that is not known."""
        self._silent = True
        """Whether nothing was said or done since it was selected."""
        self._since = 0
        """The seq of the last event that determines the state; a hidden event must have come after it."""

    def selected(self, seq: int, payload: ModelSelected) -> None:
        if payload.reason == "fallback":
            self._judge_fallback(seq, payload)
        else:
            if payload.error is not None:
                self._report("model_fallback", seq, "says what was wrong with a model that it does not replace")
            self._must_be_ready(seq, "selects a model while another one is not ready")
        self._load = _Load(payload.model_id)
        self._last, self._silent = payload.model_id, True
        self._since = seq

    def _judge_fallback(self, seq: int, payload: ModelSelected) -> None:
        if payload.error is None:
            self._report("model_fallback", seq, "is a fallback and does not say what was wrong")
        # Another selection may be hidden before it.
        if not self._silent and not self._hidden.take(self._since):
            self._report("model_fallback", seq, "replaces a model that has said or done something")
        elif payload.model_id == self._last and not self._hidden.take(self._since):
            self._report("model_fallback", seq, "replaces a model by itself")

    def loading(self, seq: int, payload: ModelLoading) -> None:
        load = self._load_of(seq, payload.model_id)
        progress = payload.progress
        if progress is not None:
            if progress < load.progress and not self._began_anew():
                self._report("model_progress", seq, "reports less progress than before")
            load.progress = progress
        load.shown = True
        self._since = seq

    def ready(self, seq: int, payload: ModelReady) -> None:
        load = self._load_of(seq, payload.model_id)
        if payload.warm_state is WarmState.HOT:
            if payload.load_ms != 0 or (load.shown and not self._began_anew()):
                self._report("model_hot", seq, "says that a model was hot which took time to load")
        elif not load.shown and not self._hidden.take(self._since):
            self._report("model_shown", seq, "says that a model was loaded which did not show it")
        self._load = None
        self._since = seq

    def used(self, seq: int) -> None:
        """Text or a tool call came, for which no selected model may be unready."""
        self._must_be_ready(seq, "came before the selected model was ready")
        self._silent = False
        self._since = seq

    def _must_be_ready(self, seq: int, sentence: str) -> None:
        if self._load is not None and not self._hidden.take(self._since):
            self._report("model_order", seq, sentence)
        self._load = None

    def _load_of(self, seq: int, model_id: str) -> _Load:
        if self._load is not None and self._load.model_id == model_id:
            return self._load
        # One hidden event is enough to select it, even while another is not ready: that may have been replaced.
        if not self._hidden.take(self._since):
            self._report("model_order", seq, "is about a model that was not selected")
        self._load = _Load(model_id)
        self._last, self._silent = model_id, True
        return self._load

    def _began_anew(self) -> bool:
        # One model became ready or was replaced, and then this one was selected: two hidden events.
        return self._hidden.take(self._since, places=2)
