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
    ├── CommitPending         the commit waits for a rule that has not returned
    ├── CommitUnknown         the outcome of a commit will be known after a restart
    ├── LedgerUnavailable     the ledger could not write; nothing was committed
    │   └── LedgerInUse       another stage has the ledger open
    ├── LedgerFenced          another stage has taken the ledger over; nothing was committed
    ├── ModelError            a model failed
    │   ├── ModelTimeout      it exceeded its time limit
    │   ├── PromptTooLarge    the prompt exceeds the model's context window
    │   ├── RemoteNotAllowed  it is remote, and the session has not given consent
    │   ├── KeyMissing        its server requires a key, and there is none
    │   ├── KeyRefused        its server refused the key
    │   ├── ModelNotFound     its server does not have it
    │   ├── StreamError       its stream broke off, perhaps after a part of the answer
    │   └── ModelUnavailable  it cannot answer now; another model may
    │       ├── ModelUnreachable  its server cannot be reached
    │       ├── ModelServerError  its server failed
    │       ├── RateLimitError    its rate limit is reached; retry later
    │       └── ModelLoadFailed   it could not be loaded
    │           └── ExtraMissing  a package that it needs is not installed
    ├── StrayCancel           code in a turn raised Cancelled without a cancelled scope
    └── ToolError             a tool refused or failed, with a message for its model

Each class has one stable `code`; the codes are part of the wire protocol. Messages are for people and may
change. No message contains text of a player or a model.

The message of a `ModelError` of a host's driver may quote anything, so it is never shown. Its `sentence` is: see there.
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


class SessionInUse(InvalidCommand):
    """A session of that name is open already. `stage.session` finds it."""

    code = "session_in_use"


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


class CommitPending(FootlightsError):
    """The commit waits for a rule that should have returned. Ask again: it is decided when the rule returns."""

    code = "commit_pending"


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


class LedgerFenced(FootlightsError):
    """Another stage has opened this ledger since, and owns it now. The write of this one changed nothing.

    It is not a `LedgerUnavailable`: the ledger works, and this stage will never write to it again. It closes the stage.
    """

    code = "ledger_fenced"


class ModelError(FootlightsError):
    """A model failed. Models raise it; any other exception of a model is converted to it.

    `sentence` is what `turn_interrupted` and the log say about it, to players too. It must quote neither a player nor a
    model nor a key. Without one, that of the class is used. The message itself is shown nowhere.
    """

    code = "model_error"
    sentence: str = "The model failed. The log says where."
    """What people are told."""

    def __init__(self, message: str = "", *, sentence: str | None = None) -> None:
        super().__init__(message or sentence or self.sentence)
        if sentence is not None:
            self.sentence = sentence


class ModelTimeout(ModelError):
    """A model exceeded its time limit. A `TimeoutError` of a model is converted to it."""

    code = "model_timeout"
    sentence = "The model took longer than it may."


class PromptTooLarge(ModelError):
    """The prompt exceeds the model's context window."""

    code = "prompt_too_large"
    sentence = "The prompt exceeds the model's context window."


class RemoteNotAllowed(ModelError):
    """The model is remote, and the session has not given consent to send its text there."""

    code = "remote_not_allowed"
    sentence = (
        "The model is remote, and the session has not given consent: remote_models = true, in [cast] or of the session."
    )


class KeyMissing(ModelError):
    """The model's server requires a key, and none is configured or set."""

    code = "model_key_missing"
    sentence = "The model's server requires a key, and there is none."


class KeyRefused(ModelError):
    """The model's server refused the key."""

    code = "model_key_refused"
    sentence = "The model's server refused the key."


class ModelNotFound(ModelError):
    """The model's server does not have the model, or not the path that was asked for."""

    code = "model_not_found"
    sentence = "The model's server has no such model, or no such path."


class StreamError(ModelError):
    """A model's stream broke off: the output so far is incomplete."""

    code = "model_broke_off"
    sentence = "The model's answer broke off."


class ModelUnavailable(ModelError):
    """A model cannot answer now. Before its first token, the turn may try again or take another model.

    `retry_after` is the number of seconds after which the model may be asked again, if it gave one.
    """

    code = "model_unavailable"
    sentence = "The model cannot answer now."
    retry_after: float | None = None

    def __init__(self, message: str = "", retry_after: float | None = None, *, sentence: str | None = None) -> None:
        super().__init__(message, sentence=sentence)
        self.retry_after = retry_after


class ModelUnreachable(ModelUnavailable):
    """The model's server cannot be reached, or did not answer at all."""

    code = "model_unreachable"
    sentence = "The model's server cannot be reached."


class ModelServerError(ModelUnavailable):
    """The model's server failed before it answered."""

    code = "model_server_error"
    sentence = "The model's server failed."


class RateLimitError(ModelUnavailable):
    """A model's rate limit is reached."""

    code = "model_rate_limited"
    sentence = "The model's server limits requests."


class ModelLoadFailed(ModelUnavailable):
    """A model could not be loaded."""

    code = "model_load_failed"
    sentence = "The model could not be loaded."


class ExtraMissing(ModelLoadFailed):
    """A package that the model needs is not installed."""

    code = "model_extra_missing"
    sentence = "A package that the model needs is not installed."


class StrayCancel(FootlightsError):
    """Code in a turn raised `trio.Cancelled`, and no scope around the turn was cancelled.

    Causes are a model that yields inside `trio.fail_after`, or a workload that keeps a `Cancelled` and raises it later.
    """

    code = "stray_cancel"


class ToolError(FootlightsError):
    """A tool refused or failed. Tools raise it, with a message that the model may read."""

    code = "tool_error"
