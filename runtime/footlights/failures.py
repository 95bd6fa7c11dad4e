"""What an exception that left a turn means for its stream, and what of it may be logged.

Never its message: that may quote what somebody said.
"""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, cast

from footlights.errors import FootlightsError, ModelError, ToolError
from footlights.events import InterruptReason

if TYPE_CHECKING:
    from collections.abc import Iterator

_REASONS: tuple[tuple[type[BaseException], InterruptReason], ...] = (
    (ModelError, InterruptReason.MODEL_ERROR),
    (ToolError, InterruptReason.TOOL_ERROR),
    (BaseException, InterruptReason.WORKLOAD_ERROR),
)


def explain(error: BaseException) -> tuple[InterruptReason, str]:
    """The reason to give in `turn_interrupted`, and its detail: a stable code, or the name of the exception."""
    leaves = list(_leaves(error))
    for kind, reason in _REASONS:
        for leaf in leaves:
            if isinstance(leaf, kind):
                return reason, _detail(leaf)
    raise AssertionError("every exception is a BaseException")


def describe(error: BaseException) -> str:
    """What failed and where, fit for a log."""
    return "; ".join(f"{_detail(leaf)} at {_place(leaf)}" for leaf in _leaves(error))


def _detail(error: BaseException) -> str:
    cause = error.__cause__
    if isinstance(error, ModelError | ToolError) and cause is not None:
        return _detail(cause)
    return error.code if isinstance(error, FootlightsError) else type(error).__name__


def _place(error: BaseException) -> str:
    frames = extract_tb((error.__cause__ or error).__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from _leaves(member)
    else:
        yield error
