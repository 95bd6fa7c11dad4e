"""Logs of a server: they say what failed and where, and never contain text of users.

Records of Footlights are written whole, because they never hold text of users, tokens or keys. Libraries make no such
promise at any level, so of their records only the file and line are written.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand
from footlights.failures import describe

if TYPE_CHECKING:
    from typing import TextIO

VARIABLE = "FOOTLIGHTS_LOG"
LEVELS = ("debug", "info", "warning", "error")
_OURS = "footlights"


class RedactingFormatter(logging.Formatter):
    """One line for each record, without the messages of exceptions and of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        said = record.getMessage() if record.name.partition(".")[0] == _OURS else f"{record.filename}:{record.lineno}"
        error = record.exc_info[1] if record.exc_info else None
        told = "" if error is None else f" ({describe(error)})"
        return f"{self.formatTime(record)} {record.levelname.lower()} {record.name}: {said}{told}"


def set_up_logs(level: str, stream: TextIO) -> None:
    """Log everything in this process to a stream, from this level up. Raises `InvalidCommand`."""
    if level not in LEVELS:
        raise InvalidCommand(f"{VARIABLE} must be one of {', '.join(LEVELS)}.")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    log = logging.getLogger("footlights.process")
    warnings.showwarning = partial(_log_warning, log)
    # Python would print an uncaught exception with its message, which may quote a user.
    sys.unraisablehook = lambda lost: log.error("lost: %s", _described(lost.exc_value))
    threading.excepthook = lambda lost: log.error("a thread died: %s", _described(lost.exc_value))


def _log_warning(
    log: logging.Logger,
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    _file: TextIO | None = None,
    _line: str | None = None,
) -> None:
    """Log a warning of Python by its type and place: its message may quote a user."""
    hint = " (a coroutine was not awaited: write await before the call)" if _is_unawaited(message) else ""
    log.warning("%s at %s:%d%s", category.__name__, Path(filename).name, lineno, hint)


def _is_unawaited(message: Warning | str) -> bool:
    return str(message).endswith("was never awaited")


def _described(error: BaseException | None) -> str:
    return "unknown" if error is None else describe(error)
