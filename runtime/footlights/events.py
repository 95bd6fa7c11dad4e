"""The events of a turn: one envelope, a closed set of types, and one payload class for each type.

Events are plain frozen values. They know nothing of JSON (`footlights.wire` does) and nothing of what may
follow what (`footlights.lifecycle` does).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_V = "1.0"

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class EventType(StrEnum):
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
    TOOL_CALL_RESULT = "tool_call_result"
    TURN_INTERRUPTED = "turn_interrupted"
    """Terminal: the turn ended early, by a cancel or by a failure. Nothing of it will be committed."""
    TURN_FINAL = "turn_final"
    """Terminal: the turn said all it had to say. Not authoritative."""
    COMMIT_FINAL = "commit_final"
    """What the authority plane decided about the turn. Always the last event."""


class DeliveryClass(StrEnum):
    MUST_DELIVER = "must_deliver"
    """Has a reserved place in every queue; never dropped."""
    BOUNDED = "bounded"
    """Dropped only when a subscriber is past its limit for these."""
    BEST_EFFORT = "best_effort"
    """Joined with its neighbours or dropped when a subscriber is slow."""


class WarmState(StrEnum):
    HOT = "hot"
    """Ready before it was asked for: there was nothing to load."""
    WARM = "warm"
    """Made ready from something kept nearby."""
    COLD = "cold"
    """Loaded from nothing."""


class InterruptReason(StrEnum):
    CANCELED = "canceled"
    BARGE_IN = "barge_in"
    MODEL_ERROR = "model_error"
    TOOL_ERROR = "tool_error"
    WORKLOAD_ERROR = "workload_error"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    SESSION_CLOSED = "session_closed"
    SHUTDOWN = "shutdown"
    RUNTIME_RESTART = "runtime_restart"


class CommitOutcome(StrEnum):
    OK = "ok"
    FAIL_CLOSED = "fail_closed"


@frozen
class SeqRange:
    """Sequence numbers that this subscriber will not get, both ends included."""

    start_seq: int
    end_seq: int


@frozen
class Ext:
    """The one place for an extension's own data. `namespace` reads `ext.<publisher>.<extension>`."""

    namespace: str
    data: JsonValue


@frozen
class ErrorInfo:
    code: str
    message: str


@frozen
class Issue:
    """Why an authority result is what it is: a stable code, a sentence, and the intent or rule concerned."""

    code: str
    message: str
    ref: str | None = None


@frozen
class Heard:
    """How far the player really got: the last event they took in, and the text up to it."""

    seq: int
    text: str


@frozen(kw_only=True)
class Payload:
    """What every payload may carry besides its own fields."""

    ext: Ext | None = None
    dropped_seq_ranges: tuple[SeqRange, ...] = ()


@frozen
class TurnAccepted(Payload):
    turns_ahead: int = 0
    """How many turns of the session must end before this one runs."""


@frozen
class ModelSelected(Payload):
    model_id: str
    reason: str


@frozen
class ModelLoading(Payload):
    model_id: str
    cold_start: bool
    progress: float | None = None


@frozen
class ModelReady(Payload):
    model_id: str
    warm_state: WarmState
    load_ms: int


@frozen
class TokenDelta(Payload):
    delta: str
    offset: int
    """Where `delta` starts in the turn's text, in code points."""


@frozen
class ToolCallStarted(Payload):
    tool_call_id: str
    tool_name: str


@frozen
class ToolCallResult(Payload):
    tool_call_id: str
    tool_name: str
    canceled: bool
    side_effects_may_have_occurred: bool | None = None
    """Known, and required, when `canceled` is true."""
    summary: str | None = None
    error: ErrorInfo | None = None


@frozen
class TurnInterrupted(Payload):
    reason: InterruptReason
    detail: str | None = None
    heard: Heard | None = None


@frozen
class TurnFinal(Payload):
    text: str
    authoritative: Literal[False] = False


@frozen
class CommitFinal(Payload):
    commit_digest: str
    commit_outcome: CommitOutcome
    issues: tuple[Issue, ...] = ()
    artifact_refs: tuple[str, ...] = ()
    commit_id: str | None = None
    authoritative: Literal[True] = True


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

    Order is (`session_id`, `turn_id`, `seq`) and nothing else. `mono_ts_ms` is for diagnosis, `wall_ts`
    (seconds since the epoch) for people and logs.
    """

    schema_v: str
    session_id: str
    turn_id: str
    seq: int
    mono_ts_ms: int
    event_type: EventType
    payload: Payload
    wall_ts: float | None = None
