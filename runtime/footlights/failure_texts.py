"""Failure texts: the code and the sentence by which a turn that failed says why.

The sentences are written here or by a driver, and quote neither a player nor a model nor an exception. A ledger keeps
the code alone, so `known` gives it a sentence again.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from footlights import errors
from footlights.errors import ModelError
from footlights.events import ErrorInfo, InterruptReason

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SENTENCE_CHARS = 300

TOOL_CRASHED = "tool_error"
WORKLOAD_FAILED = "workload_error"
TOOL_LEFT_OPEN = "tool_left_open"
MODEL_NOT_READY = "model_not_ready"
TURN_TIMEOUT = "turn_timeout"
STALL_TIMEOUT = "stall_timeout"
LOAD_TIMEOUT = "load_timeout"


def _of_models() -> dict[str, str]:
    members: list[object] = list(vars(errors).values())
    kinds = [each for each in members if isinstance(each, type) and issubclass(each, ModelError)]
    return {kind.code: kind.sentence for kind in kinds}


FAILURE_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        **_of_models(),
        errors.TooLarge.code: "The turn said or staged more than it may, or emitted too many events. See the limits.",
        errors.Busy.code: "The turn needed more than a limit allows.",
        errors.StrayCancel.code: "Code of the turn was cancelled, and nobody cancelled it. The log says where.",
        TOOL_CRASHED: "A tool crashed. The log says where.",
        WORKLOAD_FAILED: "The code that performs the turn failed. The log says where.",
        TOOL_LEFT_OPEN: "The workload ended while a tool was open.",
        MODEL_NOT_READY: "The workload ended while a model was not ready.",
        TURN_TIMEOUT: "The turn took longer than it may (turn_timeout).",
        STALL_TIMEOUT: "The model or a tool was silent for longer than it may be (stall_timeout).",
        LOAD_TIMEOUT: "The model made no progress with loading for longer than it may (load_timeout).",
    }
)
"""The sentence of each code of a failure."""

UNSPECIFIC: Mapping[InterruptReason, str] = MappingProxyType(
    {
        InterruptReason.MODEL_ERROR: ModelError.code,
        InterruptReason.TOOL_ERROR: TOOL_CRASHED,
        InterruptReason.WORKLOAD_ERROR: WORKLOAD_FAILED,
        InterruptReason.TIMEOUT: TURN_TIMEOUT,
        InterruptReason.STALLED: STALL_TIMEOUT,
    }
)
"""The code of a failure of which nothing is known but the reason. Other reasons are no failures."""


def known(code: str | None) -> ErrorInfo | None:
    """The code with its standard sentence; None for a code that is not one of a failure."""
    sentence = None if code is None else FAILURE_TEXTS.get(code)
    return None if code is None or sentence is None else ErrorInfo(code, sentence)


def sentence_of(error: ModelError) -> str:
    """The sentence of this error, or of the nearest base class whose sentence is one short line of text."""
    for named in (vars(error), *map(vars, type(error).__mro__)):
        sentence: object = named.get("sentence")
        if type(sentence) is str and sentence.isprintable() and 0 < len(sentence) <= MAX_SENTENCE_CHARS:
            return sentence
    raise AssertionError("ModelError has a sentence")
