"""What an exception that left a turn means for its stream, and what of it may be logged.

Never its message: that may quote what somebody said.
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, cast

from footlights.errors import FootlightsError, ModelError, ModelTimeout, ToolError
from footlights.events import InterruptReason

if TYPE_CHECKING:
    from collections.abc import Iterator

_REASONS: tuple[tuple[type[BaseException], InterruptReason], ...] = (
    (ModelTimeout, InterruptReason.TIMEOUT),
    (ModelError, InterruptReason.MODEL_ERROR),
    (ToolError, InterruptReason.TOOL_ERROR),
    (BaseException, InterruptReason.WORKLOAD_ERROR),
)

_MAX_WRAPPERS = 8
"""An error may be its own cause."""


def explain(error: BaseException) -> tuple[InterruptReason, str]:
    """The reason to give in `turn_interrupted`, and its detail: a stable code, or the name of the exception."""
    members = list(leaves(error))
    for kind, reason in _REASONS:
        for leaf in members:
            if isinstance(leaf, kind):
                return reason, _detail(leaf)
    raise AssertionError("every exception is a BaseException")


def describe(error: BaseException) -> str:
    """What failed and where, fit for a log."""
    return "; ".join(f"{_detail(leaf)} at {_place(leaf)}" for leaf in leaves(error))


def _culprit(error: BaseException) -> BaseException:
    """What a model or a tool really raised, behind the error that says whose fault it was."""
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(error, ModelError | ToolError) or error.__cause__ is None:
            break
        error = error.__cause__
    return error


def _detail(error: BaseException) -> str:
    culprit = _culprit(error)
    return culprit.code if isinstance(culprit, FootlightsError) else type(culprit).__name__


def _place(error: BaseException) -> str:
    frames = extract_tb(_culprit(error).__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions themselves, whatever groups they came in."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from leaves(member)
    else:
        yield error
