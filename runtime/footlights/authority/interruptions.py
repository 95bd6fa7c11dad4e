"""Interruption issues: the issues by which a record states that its turn was interrupted, the reason, and the failure.

A record has no field for the reason. The first issue's message is one fixed sentence for each reason, so the reason can
be read back exactly. Only this module writes and reads the issue, and no rule may use its code.

If more is known of a failure than the reason, a second issue has its code and the code's standard sentence. The
sentence that players saw may name a server or a variable, and differ between machines, so it is not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import InterruptReason, Issue
from footlights.failure_texts import UNSPECIFIC, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.events import ErrorInfo

TURN_INTERRUPTED = "turn_interrupted"
"""The code of the issue."""


def interruption(reason: InterruptReason, failure: str | None = None) -> tuple[Issue, ...]:
    """The issues of an interrupted turn. A code of a failure that is not one of Footlights is left out."""
    info = None if failure == UNSPECIFIC.get(reason) else known(failure)
    failed = () if info is None else (Issue(info.code, info.message),)
    return (Issue(TURN_INTERRUPTED, f"The turn was interrupted: {reason.value}."), *failed)


_REASONS: Mapping[str, InterruptReason] = {interruption(reason)[0].message: reason for reason in InterruptReason}


def interrupted_by(issues: Iterable[Issue]) -> InterruptReason | None:
    """The reason for which the turn with these issues was interrupted; None if it was not.

    An unknown reason, which another version wrote, reads as `runtime_restart`.
    """
    for issue in issues:
        if issue.code == TURN_INTERRUPTED:
            return _REASONS.get(issue.message, InterruptReason.RUNTIME_RESTART)
    return None


def failed_by(issues: Iterable[Issue]) -> ErrorInfo | None:
    """Why the turn with these issues failed; None if it did not."""
    issues = tuple(issues)
    reason = interrupted_by(issues)
    if reason is None or reason not in UNSPECIFIC:
        return None
    specific = (info for issue in issues if (info := known(issue.code)) is not None)
    return next(specific, known(UNSPECIFIC[reason]))
