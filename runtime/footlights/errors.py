"""Everything Footlights raises on purpose.

    FootlightsError
    ├── InvalidEvent          what came from outside is not a lawful event
    ├── IllegalTransition     the lifecycle table has no such step
    ├── InvalidCommand        a call whose arguments make no sense
    ├── UnknownSession        no open session has that id
    ├── UnknownTurn           the session never gave out that turn id
    ├── SessionClosed         the session, or its stage, takes nothing more
    ├── Busy                  a limit is reached; nothing was accepted
    ├── TooLarge              one thing is bigger than its limit
    ├── RegistrationError     a cast, tool, rule or workload that cannot work
    ├── Detached              this subscriber was let go; it may resume
    ├── CommitUnknown         whether the turn committed will be known after a restart
    ├── LedgerUnavailable     the ledger could not write; nothing was committed
    │   └── LedgerInUse       another stage writes it
    ├── ModelError            a model failed
    │   ├── ModelTimeout      it took longer than it may
    │   ├── PromptTooLarge    what it would have to be told does not fit
    │   ├── RemoteNotAllowed  it is elsewhere, and the session has not agreed to that
    │   ├── StreamError       it broke off, after it may have said a part
    │   └── RateLimitError    it wants to be asked again later
    ├── StrayCancel           code in a turn was cancelled by nothing that surrounds the turn
    └── ToolError             a tool refused or failed, in words its model may read

Each class has one stable `code`; the codes are part of the wire protocol. Messages are for people and may
change. No message ever contains what a player or a model said.
"""

from __future__ import annotations

from typing import ClassVar


class FootlightsError(Exception):
    """The root of them all."""

    code: ClassVar[str] = "internal"
    """Stable, for programs."""


class InvalidEvent(FootlightsError):
    """What came from outside is not a lawful event. The message says where and why, without quoting it."""

    code = "invalid_event"


class IllegalTransition(FootlightsError):
    """The lifecycle table has no such step from where the turn is."""

    code = "illegal_transition"


class InvalidCommand(FootlightsError):
    """A call whose arguments make no sense."""

    code = "invalid_command"


class UnknownSession(FootlightsError):
    """There is no open session with that id."""

    code = "unknown_session"


class UnknownTurn(FootlightsError):
    """The session never gave out that turn id, or the ledger holds nothing about it."""

    code = "unknown_turn"


class SessionClosed(FootlightsError):
    """The session, or its stage, takes no more turns and subscribers."""

    code = "session_closed"


class Busy(FootlightsError):
    """A limit is reached, or the busy rule is `reject`. Nothing was accepted."""

    code = "busy"


class TooLarge(FootlightsError):
    """One thing is bigger than its limit."""

    code = "too_large"


class RegistrationError(FootlightsError):
    """A cast, tool, rule, workload or limit that cannot work."""

    code = "invalid_registration"


class CommitUnknown(FootlightsError):
    """The stage closed before it knew whether the turn was committed. A restart will tell."""

    code = "commit_unknown"


class Detached(FootlightsError):
    """This subscriber was let go; it may resume, with its stream's `cursor`.

    `reason` is a value of `footlights.DetachReason`.
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
    """The ledger could not write; nothing was committed."""

    code = "ledger_unavailable"


class LedgerInUse(LedgerUnavailable):
    """Another stage writes this ledger, in this process or another."""

    code = "ledger_in_use"


class ModelError(FootlightsError):
    """A model failed. Raise it from a model; whatever else a model raises becomes one."""

    code = "model_error"


class ModelTimeout(ModelError):
    """A model took longer than it may. A `TimeoutError` of a model becomes one."""

    code = "model_timeout"


class PromptTooLarge(ModelError):
    """What a model would have to be told does not fit into its context window."""

    code = "prompt_too_large"


class RemoteNotAllowed(ModelError):
    """The model is elsewhere, and the session has not agreed that its text goes there."""

    code = "remote_not_allowed"


class StreamError(ModelError):
    """A model broke off: what it said until then is a part, and the rest will not come."""

    code = "model_broke_off"


class RateLimitError(ModelError):
    """A model wants to be asked again later, after `retry_after` seconds if it said so."""

    code = "model_rate_limited"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StrayCancel(FootlightsError):
    """Code in a turn raised `trio.Cancelled`, and no scope around the turn was cancelled.

    A model that yields inside `trio.fail_after` does it, or a workload that keeps a `Cancelled` and raises it later.
    """

    code = "stray_cancel"


class ToolError(FootlightsError):
    """A tool refused or failed, in words its model may read. Raise it from a tool."""

    code = "tool_error"
