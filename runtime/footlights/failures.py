"""Supervision of host code: the `contained` boundary, the reason, sentence and log text of a failure, and its hook.

An exception's message is never used here, because it may quote a player or a model. The sentence is one that was
written to be shown: see `footlights.failure_texts`. The hook gets the exception itself, and decides what to do with the
message.
"""

from __future__ import annotations

import logging
import re
import sys
from contextlib import contextmanager
from math import inf
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, TypeAlias, cast

import trio

from footlights.bad_return import BadReturn
from footlights.errors import FootlightsError, LedgerFenced, ModelError, ModelTimeout, StrayCancel, ToolError
from footlights.events import ErrorInfo, InterruptReason
from footlights.failure_texts import UNSPECIFIC, known, sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import FrameType, TracebackType

FailureHook: TypeAlias = "Callable[[str, BaseException], None]"
"""Called with what failed, in fixed words and ids, and the exception."""

_REASONS: tuple[tuple[type[BaseException], InterruptReason], ...] = (
    (ModelTimeout, InterruptReason.TIMEOUT),
    (ModelError, InterruptReason.MODEL_ERROR),
    (ToolError, InterruptReason.TOOL_ERROR),
    (BaseException, InterruptReason.WORKLOAD_ERROR),
)

_MODEL_ERROR = ErrorInfo(ModelError.code, ModelError.sentence)
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_NAME_CHARS = 64
_CLASS_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
"""Reads a class name past a metaclass that overrides `__name__`."""

_MAX_WRAPPERS = 8
"""Bound on a chain of causes, because an error may be its own cause."""

_OURS = frozenset({"footlights", "footlights_actors", "footlights_transports", "trio", "outcome", "importlib"})
_DEMO = "footlights_actors.demo."
"""The demo games are host code."""
_REPORTED = "__footlights_reported__"

_hooks: list[FailureHook] = []


class contained:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Supervision boundary around host code: a model, a tool, a workload, a load.

    Every exception of that code stops here and is passed to `fail`, including `SystemExit` and a stray `Cancelled`.
    Three exceptions propagate: `KeyboardInterrupt`, `Cancelled` if a scope around this block is cancelled, and
    `LedgerFenced`, because a stage without its ledger closes.

    `Cancelled` needs the distinction because every nursery absorbs it. If a driver leaves a deadline open, or a tool
    keeps a `Cancelled` and raises it later, the nursery would swallow that exception, and the failure would look like
    success.
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
            del error, others, failures  # breaks the reference cycle of traceback and frame


def is_failure(error: BaseException) -> bool:
    """Whether every leaf of this exception is a failure of host code, so that nothing has to propagate."""
    return not any(isinstance(leaf, _not_failures()) for leaf in leaves(error))


def _not_failures() -> tuple[type[BaseException], ...]:
    is_cancelled = trio.current_effective_deadline() == -inf
    passing = (KeyboardInterrupt, LedgerFenced)
    return (*passing, trio.Cancelled) if is_cancelled else passing


def explain(error: BaseException) -> tuple[InterruptReason, str, ErrorInfo]:
    """The `reason`, `detail` and `error` of `turn_interrupted`. The detail is a code or the name of the exception."""
    members = list(leaves(error))
    for kind, reason in _REASONS:
        for leaf in members:
            if isinstance(leaf, kind):
                return reason, _detail(leaf), _info(leaf, reason)
    raise AssertionError("every exception is a BaseException")


def describe(error: BaseException) -> str:
    """The failure, its source line, and the sentence of its driver if it has one, safe to log."""
    return "; ".join(f"{_detail(leaf)} at {_place(leaf)}{_hint(leaf)}{_said(leaf)}" for leaf in leaves(error))


def model_failure(error: ModelError) -> ErrorInfo:
    """The code and the sentence of a model's failure."""
    return _info(error, InterruptReason.MODEL_ERROR)


@contextmanager
def watch_failures(hook: Callable[[str, BaseException], None]) -> Generator[None]:
    """Call `hook` with every exception of host code that Footlights contains, until the block ends.

    It is called once for each exception, with what failed (fixed words and ids) and the exception, at the moment of the
    failure and in its task or thread, so it must be quick. It counts for all stages of the process; of several, the
    one that was entered last counts. The log has the type and the place of each failure in any case.
    """
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)  # blocks of different stages may end in any order


def report(log: logging.Logger, what: str, error: BaseException, level: int = logging.ERROR) -> None:
    """Pass a failure to the hook, if there is one, and log it by its type and place.

    The record says in `was_watched` whether there is a hook, for handlers that need not repeat what it shows.
    """
    tell_developer(log, what, error)
    log.log(level, "%s: %s", what, describe(error), extra={"was_watched": is_watched()})


def is_watched() -> bool:
    """Whether there is a hook."""
    return bool(_hooks)


def tell_developer(log: logging.Logger, what: str, error: BaseException) -> None:
    """Pass something to the hook, if there is one, which must not be logged."""
    if _hooks:
        _call(_hooks[-1], log, what, error)


def _call(hook: FailureHook, log: logging.Logger, what: str, error: BaseException) -> None:
    # A tool that fails also fails its turn, and a load every turn that waits for it. Groups are made on the way.
    originals = [vars(culprit(leaf)) for leaf in leaves(error)]
    if all(_REPORTED in each for each in originals):
        return
    for each in originals:
        each[_REPORTED] = True
    try:
        hook(what, error)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # noqa: BLE001 - a boundary: the hook is the host's, and this is about another failure
        log.error("the failure hook failed: %s", describe(failure))


def culprit(error: BaseException) -> BaseException:
    """The original exception behind a `ModelError` or `ToolError` that wraps it."""
    return wrappers(error)[-1]


def wrappers(error: BaseException) -> list[BaseException]:
    """The exception, those that it wraps, and the original one."""
    found = [error]
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(error, ModelError | ToolError) or error.__cause__ is None:
            break
        error = next(leaves(error.__cause__))
        found.append(error)
    return found


def _info(error: BaseException, reason: InterruptReason) -> ErrorInfo:
    """The innermost code that is specific, and the innermost sentence that was written for it."""
    info = known(UNSPECIFIC[reason]) or _MODEL_ERROR
    for each in wrappers(error):
        code = StrayCancel.code if isinstance(each, trio.Cancelled) else None
        if isinstance(each, FootlightsError):
            code = code_of(each)
        if isinstance(each, ModelError) and (code != ModelError.code or "sentence" in vars(each)):
            info = ErrorInfo(info.code if code == ModelError.code or code is None else code, sentence_of(each))
        elif code != ModelError.code:
            info = known(code) or info
    return info


def _said(error: BaseException) -> str:
    given = [each for each in wrappers(error) if isinstance(each, ModelError) and "sentence" in vars(each)]
    return f": {sentence_of(given[-1])}" if given else ""


def _detail(error: BaseException) -> str:
    original = culprit(error)
    if isinstance(original, trio.Cancelled):  # stray: a regular one has propagated to its scope
        return StrayCancel.code
    return code_of(original) if isinstance(original, FootlightsError) else name_of(original)


def code_of(error: FootlightsError) -> str:
    """The error's code. If a host's subclass has a malformed code, the code of the nearest base class."""
    for kind in type(error).__mro__:
        code: object = vars(kind).get("code")
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    raise AssertionError("FootlightsError has a code")


def name_of(value: object) -> str:
    """The name of the nearest class with a short ASCII identifier; a host may build class names from any text."""
    names = map(_CLASS_NAME, type(value).__mro__)
    return next(name for name in names if name.isidentifier() and name.isascii() and len(name) <= _MAX_NAME_CHARS)


def _place(error: BaseException) -> str:
    """The innermost line of the host; without one, the innermost line."""
    original = culprit(error)
    if isinstance(original, SyntaxError) and original.filename is not None:
        return f"{Path(original.filename).name}:{original.lineno}"
    if isinstance(original, BadReturn) and original.place is not None:
        return f"{Path(original.place.file).name}:{original.place.line}"
    frames = list(walk_tb(original.__traceback__))
    if not frames:
        return "unknown place"
    frame, line = next((each for each in reversed(frames) if not is_library(each[0])), frames[-1])
    return f"{Path(frame.f_code.co_filename).name}:{line}"


def _hint(error: BaseException) -> str:
    original = culprit(error)
    return f" ({original})" if isinstance(original, BadReturn) else ""


def is_ours(frame: FrameType) -> bool:
    """Whether the frame is one of Footlights, trio or the import system, and not of the host."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OURS and not module.startswith(_DEMO)


def is_library(frame: FrameType) -> bool:
    """Whether the frame is of Footlights, trio, Python or an installed package."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return is_ours(frame) or package in sys.stdlib_module_names or "site-packages" in frame.f_code.co_filename


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions inside nested groups, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from leaves(member)
    else:
        yield error
