"""Tool steps: the ledger's append-only history of each tool key."""

from __future__ import annotations

from enum import StrEnum

from footlights.errors import InvalidCommand


class ToolStep(StrEnum):
    """A step in the history of a tool key."""

    STARTED = "started"
    """The key was claimed. Without a later step it is unknown whether the tool had its effect."""
    OK = "ok"
    """The tool succeeded."""
    ERROR = "error"
    """The tool failed."""
    RELEASED = "released"
    """The key was released, because the tool was stopped before it had any effect."""


NEXT_STEPS: dict[ToolStep | None, frozenset[ToolStep]] = {
    None: frozenset({ToolStep.STARTED}),
    ToolStep.STARTED: frozenset({ToolStep.OK, ToolStep.ERROR, ToolStep.RELEASED}),
    ToolStep.OK: frozenset(),
    ToolStep.ERROR: frozenset(),
    ToolStep.RELEASED: frozenset({ToolStep.STARTED}),
}
"""The steps that may follow each step of the same key."""


def check_key(key: object) -> None:
    """Raises `InvalidCommand` for a key that could not be stored and found again."""
    if type(key) is not str or not _is_unicode(key):
        raise InvalidCommand("The key of a tool is a plain string of valid Unicode.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
