"""Tracebacks for development: where the host's code failed, without the frames of Footlights and trio.

The text contains the messages of exceptions, which may quote a player or a model: it is for the developer's own screen,
and never for a log.
"""

from __future__ import annotations

from traceback import FrameSummary, StackSummary, TracebackException, walk_tb
from typing import TYPE_CHECKING, cast

from footlights.bad_return import BadReturn
from footlights.errors import FootlightsError
from footlights.failures import describe, is_library, is_ours, leaves, wrappers

if TYPE_CHECKING:
    from collections.abc import Iterable


def traceback_text(error: BaseException) -> str:
    """The traceback of a failure that `watch_failures` reports: the host's frames, then the exception and its message.

    Of a group, every member is shown. If Footlights raised the exception on purpose, and no line of the host is in it,
    its message is enough. Any other traceback without a frame of the host is shown whole.
    """
    return "".join(map(_text, leaves(error)))


def _text(error: BaseException) -> str:
    chain = wrappers(error)
    original = chain[-1]
    ours = [each for each in chain if isinstance(each, FootlightsError)]
    if isinstance(original, BadReturn) and original.place is not None:
        place = original.place
        where = StackSummary.from_list([FrameSummary(place.file, place.line, place.name)])
        return "".join([*where.format(), f"{type(original).__name__}: {original}\n"])
    if ours and not any(not is_library(frame) for frame, _ in walk_tb(original.__traceback__)):
        told = "".join(TracebackException.from_exception(ours[-1]).format_exception_only())
        return told if ours[-1] is original else f"{told.rstrip()} ({describe(error)})\n"
    shown = TracebackException.from_exception(original)
    # A module that cannot be compiled has no frame, and its message has the line.
    if not _keep_hosts(shown, original) and not isinstance(original, SyntaxError):
        shown = TracebackException.from_exception(original)
    return "".join(shown.format() if shown.stack else shown.format_exception_only())


def _keep_hosts(told: TracebackException, error: BaseException) -> bool:
    """Remove our frames from a traceback, and from those of the exceptions behind it. Returns whether any is left."""
    frames = zip(told.stack, walk_tb(error.__traceback__), strict=False)
    told.stack = StackSummary.from_list([each for each, (frame, _) in frames if not is_ours(frame)])
    for inner, behind in _behind(told, error):
        _keep_hosts(inner, behind)
    return bool(told.stack)


def _behind(told: TracebackException, error: BaseException) -> Iterable[tuple[TracebackException, BaseException]]:
    for inner, behind in ((told.__cause__, error.__cause__), (told.__context__, error.__context__)):
        if inner is not None and behind is not None:
            yield inner, behind
    if isinstance(error, BaseExceptionGroup):
        yield from zip(told.exceptions or (), cast("BaseExceptionGroup[BaseException]", error).exceptions, strict=False)
