"""The events of a turn: one envelope, a closed set of types, and one payload class for each type.

Events are plain frozen values. They know nothing of JSON (`footlights.wire` does) and nothing of what may
follow what (`footlights.turn.lifecycle` does).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_V = "1.0"

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""What JSON can say, as Python has it."""


class EventType(StrEnum):
    """What an event can be: a closed set, in the order of a turn."""

    TURN_ACCEPTED = "turn_accepted"
    """The input was received. Always the first event of a turn, before any model is asked for."""
    MODEL_SELECTED = "model_selected"
    """A model was chosen for what follows, and why."""
    MODEL_LOADING = "model_loading"
    """The chosen model is not ready yet. The first one comes at once, more may report progress."""
    MODEL_READY = "model_ready"
    """The chosen model can generate now."""
    TOKEN_DELTA = "token_delta"
    """The next piece of the turn's text."""
    TOOL_CALL_STARTED = "tool_call_started"
    """A tool began to run."""
    TOOL_CALL_RESULT = "tool_call_result"
    """It came back, failed, or was cancelled. Each call that was started gets one."""
    TURN_INTERRUPTED = "turn_interrupted"
    """Terminal: the turn ended early, by a cancel or by a failure. Nothing of it will be committed."""
    TURN_FINAL = "turn_final"
    """Terminal: the turn said all it had to say. Not authoritative."""
    COMMIT_FINAL = "commit_final"
    """What the authority plane decided about the turn. Always the last event."""


class DeliveryClass(StrEnum):
    """What becomes of an event when a subscriber is slow."""

    MUST_DELIVER = "must_deliver"
    """Has a reserved place in every queue; never dropped."""
    BOUNDED = "bounded"
    """Dropped only when a subscriber is past its limit for these."""
    BEST_EFFORT = "best_effort"
    """Joined with its neighbours or dropped when a subscriber is slow."""


class WarmState(StrEnum):
    """How ready a model is when it is asked for."""

    HOT = "hot"
    """Ready before it was asked for: there was nothing to load."""
    WARM = "warm"
    """Made ready from something kept nearby."""
    COLD = "cold"
    """Loaded from nothing."""


class InterruptReason(StrEnum):
    """Why a turn ended early."""

    CANCELED = "canceled"
    """`session.cancel` was called."""
    BARGE_IN = "barge_in"
    """A new turn of the session began with the busy rule `interrupt`."""
    MODEL_ERROR = "model_error"
    """The model failed, could not load, or said or asked for more than a turn may hold."""
    TOOL_ERROR = "tool_error"
    """A tool crashed. (A tool that raises `ToolError` has answered; the turn goes on.)"""
    WORKLOAD_ERROR = "workload_error"
    """A workload raised, left a tool open, or anything else inside the turn failed."""
    TIMEOUT = "timeout"
    """The turn ran for `turn_timeout` seconds, or its model took longer than its driver lets it."""
    STALLED = "stalled"
    """The turn's model or tool was silent for `stall_timeout` seconds."""
    SESSION_CLOSED = "session_closed"
    """`session.close` was called."""
    SHUTDOWN = "shutdown"
    """The stage closed."""
    RUNTIME_RESTART = "runtime_restart"
    """The process died, and its successor speaks for the turn."""


class CommitOutcome(StrEnum):
    """What the authority decided about a turn."""

    OK = "ok"
    """The turn's changes are kept."""
    FAIL_CLOSED = "fail_closed"
    """Nothing changed; the issues say why."""


@frozen
class SeqRange:
    """Sequence numbers that this subscriber will not get, both ends included."""

    start_seq: int
    """The first one missing."""
    end_seq: int
    """The last one missing."""


@frozen
class Ext:
    """The one place for an extension's own data."""

    namespace: str
    """`ext.<publisher>.<extension>`."""
    data: JsonValue
    """Any JSON. All subscribers share it: read it, and change nothing."""


@frozen
class ErrorInfo:
    """Why a tool call failed."""

    code: str
    """Stable, for programs."""
    message: str
    """A sentence, for people."""


@frozen
class Issue:
    """Why an authority result is what it is."""

    code: str
    """Stable, for programs."""
    message: str
    """A sentence, for people."""
    ref: str | None = None
    """The intent or the rule concerned."""


@frozen
class Heard:
    """How far the player really got."""

    seq: int
    """The last event they took in."""
    text: str
    """The turn's text up to it."""


@frozen(kw_only=True)
class Payload:
    """What every payload may carry besides its own fields."""

    ext: Ext | None = None
    """An extension's own data."""
    dropped_seq_ranges: tuple[SeqRange, ...] = ()
    """What this subscriber will not get of the turn before this event."""


@frozen
class TurnAccepted(Payload):
    """`turn_accepted`: the input was received."""

    turns_ahead: int = 0
    """How many turns of the session must end before this one runs."""


@frozen
class ModelSelected(Payload):
    """`model_selected`: which model, and why."""

    model_id: str
    """The model's id in the cast."""
    reason: str
    """Why this one: `default` or `requested` with the standard cast."""


@frozen
class ModelLoading(Payload):
    """`model_loading`: there is something to wait for."""

    model_id: str
    """The model that was selected."""
    cold_start: bool
    """Whether it is loaded from nothing."""
    progress: float | None = None
    """0 to 1; left out of the first one."""


@frozen
class ModelReady(Payload):
    """`model_ready`: the wait is over, if there was one."""

    model_id: str
    """The model that was selected."""
    warm_state: WarmState
    """How ready it was when it was asked for: `hot`, `warm` or `cold`."""
    load_ms: int
    """How long it took; 0 if it was hot."""


@frozen
class TokenDelta(Payload):
    """`token_delta`: the next piece of the text."""

    delta: str
    """The text; never empty."""
    offset: int
    """Where `delta` starts in the turn's text, in code points."""


@frozen
class ToolCallStarted(Payload):
    """`tool_call_started`: a tool began to run."""

    tool_call_id: str
    """Unique in its turn."""
    tool_name: str
    """The tool's name in the cast."""


@frozen
class ToolCallResult(Payload):
    """`tool_call_result`: how a call ended."""

    tool_call_id: str
    """The call that this is the result of."""
    tool_name: str
    """The same name that the call was started with."""
    canceled: bool
    """Whether the turn was interrupted before the result could count."""
    side_effects_may_have_occurred: bool | None = None
    """Known, and required, when `canceled` is true."""
    summary: str | None = None
    """One sentence that may be shown to people."""
    error: ErrorInfo | None = None
    """Why it failed, if it did."""


@frozen
class TurnInterrupted(Payload):
    """`turn_interrupted`: the turn ended early."""

    reason: InterruptReason
    """Who or what ended it."""
    detail: str | None = None
    """A stable code, or the name of the exception that ended the turn. Never its text."""
    heard: Heard | None = None
    """What the player took in, if the host said so."""


@frozen
class TurnFinal(Payload):
    """`turn_final`: the turn said all it had to say."""

    text: str
    """All that was said: a subscriber that missed deltas heals from it, unless it is forgotten."""
    output_tokens: int | None = None
    """What it cost to say, as its model counts; None if no model spoke."""
    authoritative: Literal[False] = False
    """Always false: words change nothing."""
    text_forgotten: bool = False
    """True if the turn ended so long ago, or before a restart, that only the ledger knows of it: the words are gone
    and `text` is empty. Keep those that you have."""


@frozen
class CommitFinal(Payload):
    """`commit_final`: what the authority decided."""

    commit_digest: str
    """Stands for everything that was decided; chained to the session's commit before."""
    commit_outcome: CommitOutcome
    """`ok`: the changes are true now. `fail_closed`: nothing changed."""
    issues: tuple[Issue, ...] = ()
    """Why it failed closed; empty if it is ok."""
    artifact_refs: tuple[str, ...] = ()
    """The artifacts that it left behind, each named by its digest."""
    commit_id: str | None = None
    """A short name for the commit."""
    authoritative: Literal[True] = True
    """Always true."""


PAYLOAD_TYPES: Mapping[EventType, type[Payload]] = {
    EventType.TURN_ACCEPTED: TurnAccepted,
    EventType.MODEL_SELECTED: ModelSelected,
    EventType.MODEL_LOADING: ModelLoading,
    EventType.MODEL_READY: ModelReady,
    EventType.TOKEN_DELTA: TokenDelta,
    EventType.TOOL_CALL_STARTED: ToolCallStarted,
    EventType.TOOL_CALL_RESULT: ToolCallResult,
    EventType.TURN_INTERRUPTED: TurnInterrupted,
    EventType.TURN_FINAL: TurnFinal,
    EventType.COMMIT_FINAL: CommitFinal,
}


EVENT_TYPES: Mapping[type[Payload], EventType] = {payload: kind for kind, payload in PAYLOAD_TYPES.items()}

DELIVERY: Mapping[EventType, DeliveryClass] = {
    EventType.TURN_ACCEPTED: DeliveryClass.MUST_DELIVER,
    EventType.MODEL_SELECTED: DeliveryClass.BOUNDED,
    EventType.MODEL_LOADING: DeliveryClass.BOUNDED,  # the first of a load; its progress is best effort
    EventType.MODEL_READY: DeliveryClass.BOUNDED,
    EventType.TOKEN_DELTA: DeliveryClass.BEST_EFFORT,
    EventType.TOOL_CALL_STARTED: DeliveryClass.BOUNDED,
    EventType.TOOL_CALL_RESULT: DeliveryClass.BOUNDED,
    EventType.TURN_INTERRUPTED: DeliveryClass.MUST_DELIVER,
    EventType.TURN_FINAL: DeliveryClass.MUST_DELIVER,
    EventType.COMMIT_FINAL: DeliveryClass.MUST_DELIVER,
}


@frozen
class StreamEvent:
    """One event, as every subscriber sees it.

    Order is (`session_id`, `turn_id`, `seq`) and nothing else. Time stamps order nothing.
    """

    schema_v: str
    """The version of the envelope: `"1.0"`."""
    session_id: str
    """Whose turn it is."""
    turn_id: str
    """Which turn it is; never used again."""
    seq: int
    """The place in the turn, from 0, the same for every subscriber."""
    mono_ts_ms: int
    """Milliseconds of the runtime's monotonic clock, for diagnosis: never less than before in the same turn. An event
    that is answered from the ledger carries 9007199254740991, because the turn's own clock may be gone."""
    event_type: EventType
    """Says which class `payload` is of."""
    payload: Payload
    """What this event says."""
    wall_ts: float | None = None
    """Seconds since the epoch, for people and logs."""
