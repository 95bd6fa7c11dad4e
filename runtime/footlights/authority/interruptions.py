"""Interruption issue: the issue by which a record states that its turn was interrupted, and the reason.

A record has no field for the reason. The issue's message is one fixed sentence for each reason, so the reason can be
read back exactly. Only this module writes and reads the issue, and no rule may use its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import InterruptReason, Issue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TURN_INTERRUPTED = "turn_interrupted"
"""The code of the issue."""


def interruption(reason: InterruptReason) -> Issue:
    """The issue of an interrupted turn."""
    return Issue(TURN_INTERRUPTED, f"The turn was interrupted: {reason.value}.")


_REASONS: Mapping[str, InterruptReason] = {interruption(reason).message: reason for reason in InterruptReason}


def interrupted_by(issues: Iterable[Issue]) -> InterruptReason | None:
    """The reason for which the turn with these issues was interrupted; None if it was not.

    An unknown reason, which another version wrote, reads as `runtime_restart`.
    """
    for issue in issues:
        if issue.code == TURN_INTERRUPTED:
            return _REASONS.get(issue.message, InterruptReason.RUNTIME_RESTART)
    return None
