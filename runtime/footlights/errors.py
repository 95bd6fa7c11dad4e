"""Everything Footlights raises on purpose.

    FootlightsError
    ├── InvalidEvent          what came from outside is not a lawful event
    ├── IllegalTransition     the lifecycle table has no such step
    ├── InvalidCommand        a call whose arguments make no sense
    ├── UnknownSession
    ├── UnknownTurn
    ├── SessionClosed
    ├── Busy                  a limit is reached; nothing was accepted
    ├── TooLarge              one thing is bigger than its limit
    ├── RegistrationError     a cast, tool, rule or workload that cannot work
    ├── Detached              this subscriber was let go; it may resume
    ├── CommitUnknown         whether the turn committed will be known after a restart
    ├── LedgerUnavailable     the ledger could not write; nothing was committed
    ├── ModelError            a model failed
    └── ToolError             a tool refused or failed, in words its model may read

Each class has one stable `code`; the codes are part of the wire protocol. Messages are for people and may
change. No message ever contains what a player or a model said.
"""

from __future__ import annotations

from typing import ClassVar


class FootlightsError(Exception):
    code: ClassVar[str] = "internal"


class InvalidEvent(FootlightsError):
    code = "invalid_event"


class IllegalTransition(FootlightsError):
    code = "illegal_transition"


class InvalidCommand(FootlightsError):
    code = "invalid_command"


class UnknownSession(FootlightsError):
    code = "unknown_session"


class UnknownTurn(FootlightsError):
    code = "unknown_turn"


class SessionClosed(FootlightsError):
    code = "session_closed"


class Busy(FootlightsError):
    code = "busy"


class TooLarge(FootlightsError):
    code = "too_large"


class RegistrationError(FootlightsError):
    code = "invalid_registration"


class CommitUnknown(FootlightsError):
    code = "commit_unknown"


class Detached(FootlightsError):
    """Raised to a subscriber that was let go.

    `reason` is a value of `footlights.DetachReason`. Subscribe with the stream's `cursor` to resume.
    """

    code = "detached"

    def __init__(self, reason: str) -> None:
        super().__init__(
            "The stage closed before it knew whether a turn was committed; ask again after a restart."
            if reason == CommitUnknown.code
            else f"This subscriber was detached: {reason}. Subscribe with its cursor to resume."
        )
        self.reason = reason


class LedgerUnavailable(FootlightsError):
    code = "ledger_unavailable"


class ModelError(FootlightsError):
    code = "model_error"


class ToolError(FootlightsError):
    code = "tool_error"
