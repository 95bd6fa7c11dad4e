"""Supervision of code that is not ours: what leaves it, what that means for a stream, and what may be logged.

Never an exception's message: that may quote what somebody said.
"""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, cast

import trio

from footlights.errors import FootlightsError, ModelError, ModelTimeout, StrayCancel, ToolError
from footlights.events import InterruptReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_REASONS: tuple[tuple[type[BaseException], InterruptReason], ...] = (
    (ModelTimeout, InterruptReason.TIMEOUT),
    (ModelError, InterruptReason.MODEL_ERROR),
    (ToolError, InterruptReason.TOOL_ERROR),
    (BaseException, InterruptReason.WORKLOAD_ERROR),
)

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_NAME_CHARS = 64
_CLASS_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
"""The name of a class, whatever its metaclass makes of `__name__`."""

_MAX_WRAPPERS = 8
"""An error may be its own cause."""


class contained:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Supervision boundary around code of a host: a model, a tool, a workload, a load.

    Whatever that code raises ends here and goes to `fail`, `SystemExit` and a stray `Cancelled` included. Two things go
    on: `KeyboardInterrupt`, which is the host's, and `Cancelled` if a scope around this block is cancelled.

    `Cancelled` needs the distinction because every nursery absorbs it. A deadline that a driver left open, or a
    `Cancelled` that a tool kept and raised again, would pass for the end of the block: the failure would look like
    success to whoever reads only that nothing was raised.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if is_failure(error):
            self._fail(error)
            return True
        if not isinstance(error, BaseExceptionGroup):
            return False
        others, failures = cast("BaseExceptionGroup[BaseException]", error).split(_not_failures())
        if others is None or failures is None:
            return False
        self._fail(failures)
        try:
            raise others
        finally:
            del error, others, failures  # they lead to this frame, which must not lead back


def is_failure(error: BaseException) -> bool:
    """Whether an exception is wholly the fault of the code that raised it, and nothing in it has to go on."""
    return not any(isinstance(leaf, _not_failures()) for leaf in leaves(error))


def _not_failures() -> tuple[type[BaseException], ...]:
    is_cancelled = trio.current_effective_deadline() == -inf
    return (KeyboardInterrupt, trio.Cancelled) if is_cancelled else (KeyboardInterrupt,)


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
        error = next(leaves(error.__cause__))
    return error


def _detail(error: BaseException) -> str:
    culprit = _culprit(error)
    if isinstance(culprit, trio.Cancelled):  # any other went on to its scope
        return StrayCancel.code
    return code_of(culprit) if isinstance(culprit, FootlightsError) else _name_of(culprit)


def code_of(error: FootlightsError) -> str:
    """Its code; the code of the nearest class of ours if a host's class gave it one that a stream cannot carry."""
    for kind in type(error).__mro__:
        code: object = vars(kind).get("code")
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    raise AssertionError("the root of all errors has a code")


def _name_of(error: BaseException) -> str:
    """The name of its class; a class may be called anything, also what somebody said."""
    names = map(_CLASS_NAME, type(error).__mro__)
    return next(name for name in names if name.isidentifier() and name.isascii() and len(name) <= _MAX_NAME_CHARS)


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
