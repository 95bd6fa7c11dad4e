"""How a record says that its turn was interrupted, and why: one issue, written and read back here and nowhere else.

A record has no field for the reason. Its issue is a sentence for people, one for each reason, and so it can be read
back exactly. No rule may use this issue's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import InterruptReason, Issue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TURN_INTERRUPTED = "turn_interrupted"
"""The code of the issue."""


def interruption(reason: InterruptReason) -> Issue:
    """The issue of a turn that was interrupted."""
    return Issue(TURN_INTERRUPTED, f"The turn was interrupted: {reason.value}.")


_REASONS: Mapping[str, InterruptReason] = {interruption(reason).message: reason for reason in InterruptReason}


def interrupted_by(issues: Iterable[Issue]) -> InterruptReason | None:
    """Why the turn with these issues was interrupted; None if it was not.

    A reason that is not known here, because another version wrote it, reads as `runtime_restart`: somebody else
    speaks for the turn.
    """
    for issue in issues:
        if issue.code == TURN_INTERRUPTED:
            return _REASONS.get(issue.message, InterruptReason.RUNTIME_RESTART)
    return None
