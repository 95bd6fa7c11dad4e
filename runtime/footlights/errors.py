"""Exceptions of Footlights.

    FootlightsError
    ├── InvalidEvent          data from outside is not a valid event
    ├── IllegalTransition     the lifecycle table does not allow this step
    ├── InvalidCommand        a call with invalid arguments
    ├── UnknownSession        no open session has that id
    ├── UnknownTurn           the session has no turn with that id
    ├── SessionClosed         the session, or its stage, is closed
    ├── Busy                  a limit is reached; nothing was accepted
    ├── TooLarge              a value exceeds its limit
    ├── RegistrationError     an invalid cast, tool, rule, workload or limit
    ├── Detached              the subscriber was detached; it may resume
    ├── CommitUnknown         the outcome of a commit will be known after a restart
    ├── LedgerUnavailable     the ledger could not write; nothing was committed
    │   └── LedgerInUse       another stage has the ledger open
    ├── ModelError            a model failed
    │   ├── ModelTimeout      it exceeded its time limit
    │   ├── PromptTooLarge    the prompt exceeds the model's context window
    │   ├── RemoteNotAllowed  it is remote, and the session has not given consent
    │   ├── StreamError       its stream broke off, perhaps after a part of the answer
    │   └── RateLimitError    its rate limit is reached; retry later
    ├── StrayCancel           code in a turn raised Cancelled without a cancelled scope
    └── ToolError             a tool refused or failed, with a message for its model

Each class has one stable `code`; the codes are part of the wire protocol. Messages are for people and may
change. No message contains text of a player or a model.
"""

from __future__ import annotations

from typing import ClassVar


class FootlightsError(Exception):
    """Base class of all exceptions of Footlights."""

    code: ClassVar[str] = "internal"
    """Stable, for programs."""


class InvalidEvent(FootlightsError):
    """Data from outside is not a valid event. The message names the field and the reason, without quoting the data."""

    code = "invalid_event"


class IllegalTransition(FootlightsError):
    """The lifecycle table does not allow this step in the turn's state."""

    code = "illegal_transition"


class InvalidCommand(FootlightsError):
    """A call with invalid arguments."""

    code = "invalid_command"


class UnknownSession(FootlightsError):
    """There is no open session with that id."""

    code = "unknown_session"


class UnknownTurn(FootlightsError):
    """The session has no turn with that id, or the ledger holds nothing about it."""

    code = "unknown_turn"


class SessionClosed(FootlightsError):
    """The session, or its stage, is closed and accepts no turns and subscribers."""

    code = "session_closed"


class Busy(FootlightsError):
    """A limit is reached, or the busy rule is `reject`. Nothing was accepted."""

    code = "busy"


class TooLarge(FootlightsError):
    """A value exceeds its limit."""

    code = "too_large"


class RegistrationError(FootlightsError):
    """An invalid cast, tool, rule, workload or limit."""

    code = "invalid_registration"


class CommitUnknown(FootlightsError):
    """The stage closed before it knew whether the turn was committed. It is known after a restart."""

    code = "commit_unknown"


class Detached(FootlightsError):
    """The stage detached this subscriber. It may resume with its stream's `cursor`.

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
    """Another stage has this ledger open, in this process or in another."""

    code = "ledger_in_use"


class ModelError(FootlightsError):
    """A model failed. Models raise it; any other exception of a model is converted to it."""

    code = "model_error"


class ModelTimeout(ModelError):
    """A model exceeded its time limit. A `TimeoutError` of a model is converted to it."""

    code = "model_timeout"


class PromptTooLarge(ModelError):
    """The prompt exceeds the model's context window."""

    code = "prompt_too_large"


class RemoteNotAllowed(ModelError):
    """The model is remote, and the session has not given consent to send its text there."""

    code = "remote_not_allowed"


class StreamError(ModelError):
    """A model's stream broke off: the output so far is incomplete."""

    code = "model_broke_off"


class RateLimitError(ModelError):
    """A model's rate limit is reached. `retry_after` is the number of seconds to wait, if the model gave one."""

    code = "model_rate_limited"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StrayCancel(FootlightsError):
    """Code in a turn raised `trio.Cancelled`, and no scope around the turn was cancelled.

    Causes are a model that yields inside `trio.fail_after`, or a workload that keeps a `Cancelled` and raises it later.
    """

    code = "stray_cancel"


class ToolError(FootlightsError):
    """A tool refused or failed. Tools raise it, with a message that the model may read."""

    code = "tool_error"
