"""Development mode: prints the traceback of each failure of the host's own code.

Tracebacks contain the messages of exceptions, which may quote people. So it is for a developer's own machine, and never
on when tokens are configured.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING

from footlights import traceback_text, watch_failures
from footlights_transports.cli.screen import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TextIO


@contextmanager
def development_mode(out: TextIO, make_room: Callable[[], None] = lambda: None) -> Generator[None]:
    """Print failures to `out` until the block ends, each after a call of `make_room`, and not to the log again."""

    def show(what: str, error: BaseException) -> None:
        make_room()
        out.write(f"{what}:\n{indent(printable(traceback_text(error)), '    ')}")
        out.flush()

    handlers = [*logging.getLogger().handlers, *([logging.lastResort] if logging.lastResort else [])]
    for handler in handlers:
        handler.addFilter(_was_not_shown)
    try:
        with watch_failures(show):
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(_was_not_shown)


def _was_not_shown(record: logging.LogRecord) -> bool:
    return not getattr(record, "was_watched", False)
