"""The terminal event of a turn that failed."""

from __future__ import annotations

from footlights.events import ErrorInfo, InterruptReason, TurnInterrupted
from footlights.failure_texts import FAILURE_TEXTS, UNSPECIFIC


def failed(
    reason: InterruptReason, detail: str | None = None, code: str | None = None, sentence: str | None = None
) -> TurnInterrupted:
    """`code` is that of the reason unless given; `sentence` is that of the code."""
    told = code or (detail if detail is not None and detail in FAILURE_TEXTS else UNSPECIFIC[reason])
    return TurnInterrupted(reason, detail, error=ErrorInfo(told, sentence or FAILURE_TEXTS[told]))
