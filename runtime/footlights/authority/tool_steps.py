"""What a ledger holds of tools: the steps that each took under its key, in order. None of them ever changes."""

from __future__ import annotations

from enum import StrEnum

from footlights.errors import InvalidCommand


class ToolStep(StrEnum):
    """What happened to the key of a tool."""

    STARTED = "started"
    """It was claimed. With no step after this, whether the tool had its effect is unknown."""
    OK = "ok"
    """The tool ended well."""
    ERROR = "error"
    """The tool ended, and failed."""
    RELEASED = "released"
    """It was given back: the tool was stopped before it had any effect."""


NEXT_STEPS: dict[ToolStep | None, frozenset[ToolStep]] = {
    None: frozenset({ToolStep.STARTED}),
    ToolStep.STARTED: frozenset({ToolStep.OK, ToolStep.ERROR, ToolStep.RELEASED}),
    ToolStep.OK: frozenset(),
    ToolStep.ERROR: frozenset(),
    ToolStep.RELEASED: frozenset({ToolStep.STARTED}),
}
"""Which step may follow which, of the same key."""


def check_key(key: object) -> None:
    """Raises `InvalidCommand` for a key that could not be written down and found again."""
    if type(key) is not str or not _is_unicode(key):
        raise InvalidCommand("The key of a tool is a plain string of valid Unicode.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
