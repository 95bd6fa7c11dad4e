"""What a ledger file holds of tools: each step that one took, in order. None of them ever changes."""

from __future__ import annotations

from enum import StrEnum


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
