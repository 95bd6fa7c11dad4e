"""Events of a turn: one envelope, a closed set of types, and one payload class for each type.

Events are plain frozen values. JSON is the concern of `footlights.wire`, the order of events that of
`footlights.turn.lifecycle`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_V = "1.0"

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""A JSON value in Python."""


class EventType(StrEnum):
    """Type of an event: a closed set, in the order of a turn."""

    TURN_ACCEPTED = "turn_accepted"
    """The input was received. Always the first event of a turn, before a model is chosen."""
    MODEL_SELECTED = "model_selected"
    """A model was chosen for the next round, and the reason."""
    MODEL_LOADING = "model_loading"
    """The chosen model is not ready yet. The first event comes at once; later ones report progress."""
    MODEL_READY = "model_ready"
    """The chosen model is ready to generate."""
    TOKEN_DELTA = "token_delta"
    """The next piece of the turn's text."""
    TOOL_CALL_STARTED = "tool_call_started"
    """A tool began to run."""
    TOOL_CALL_RESULT = "tool_call_result"
    """A tool call returned, failed, or was cancelled. Each call that was started has one result."""
    TURN_INTERRUPTED = "turn_interrupted"
    """Terminal: the turn ended early, by a cancel or by a failure. Nothing of it will be committed."""
    TURN_FINAL = "turn_final"
    """Terminal: the turn's text is complete. Not authoritative."""
    COMMIT_FINAL = "commit_final"
    """The authority plane's decision about the turn. Always the last event."""


class DeliveryClass(StrEnum):
    """Treatment of an event when a subscriber is slow."""

    MUST_DELIVER = "must_deliver"
    """Has a reserved place in every backlog; never dropped."""
    BOUNDED = "bounded"
    """Dropped only when the subscriber's limit for this class is reached."""
    BEST_EFFORT = "best_effort"
    """Joined with its neighbours, or dropped."""


class WarmState(StrEnum):
    """Readiness of a model when a turn needs it."""

    HOT = "hot"
    """Loaded already."""
    WARM = "warm"
    """Loaded from a cache."""
    COLD = "cold"
    """Loaded from scratch."""


class InterruptReason(StrEnum):
    """Reason for which a turn ended early."""

    CANCELED = "canceled"
    """`session.cancel` was called."""
    BARGE_IN = "barge_in"
    """A new turn of the session began with the busy rule `interrupt`."""
    MODEL_ERROR = "model_error"
    """The model failed, could not load, or exceeded a limit of the turn."""
    TOOL_ERROR = "tool_error"
    """A tool crashed. (After a `ToolError` the turn continues.)"""
    WORKLOAD_ERROR = "workload_error"
    """A workload raised, left a tool open, or anything else inside the turn failed."""
    TIMEOUT = "timeout"
    """The turn ran for `turn_timeout` seconds, or its model exceeded its driver's timeout."""
    STALLED = "stalled"
    """The turn's model or tool was silent for `stall_timeout` seconds."""
    SESSION_CLOSED = "session_closed"
    """`session.close` was called."""
    SHUTDOWN = "shutdown"
    """The stage closed."""
    RUNTIME_RESTART = "runtime_restart"
    """The process ended during the turn; the next process reported it."""


class CommitOutcome(StrEnum):
    """The authority plane's decision about a turn."""

    OK = "ok"
    """The turn's changes are committed."""
    FAIL_CLOSED = "fail_closed"
    """Nothing changed; the issues give the reasons."""


@frozen
class SeqRange:
    """Sequence numbers that this subscriber will not get; both ends are included."""

    start_seq: int
    """The first missing number."""
    end_seq: int
    """The last missing number."""


@frozen
class Ext:
    """Data of an extension. It may stand nowhere else in an event."""

    namespace: str
    """`ext.<publisher>.<extension>`."""
    data: JsonValue
    """Any JSON. All subscribers share the object, so it must not be modified."""


@frozen
class ErrorInfo:
    """Failure of a tool call, of a model or of a turn."""

    code: str
    """Stable, for programs."""
    message: str
    """A sentence, for people."""


@frozen
class Issue:
    """Reason for a decision of the authority plane."""

    code: str
    """Stable, for programs."""
    message: str
    """A sentence, for people."""
    ref: str | None = None
    """The intent or the rule concerned."""


@frozen
class Heard:
    """The part of a turn that the player really received."""

    seq: int
    """The last event received."""
    text: str
    """The turn's text up to that event."""


@frozen(kw_only=True)
class Payload:
    """Base class of payloads, with the fields that every payload may carry."""

    ext: Ext | None = None
    """Data of an extension."""
    dropped_seq_ranges: tuple[SeqRange, ...] = ()
    """Seqs before this one for which this subscriber gets no event: they were dropped, or joined into this event."""


@frozen
class TurnAccepted(Payload):
    """`turn_accepted`: the input was received."""

    turns_ahead: int = 0
    """Number of turns of the session that must end before this one runs."""


@frozen
class ModelSelected(Payload):
    """`model_selected`: the chosen model and the reason."""

    model_id: str
    """The model's id in the cast."""
    reason: str
    """Reason for the choice: `default`, `requested`, `persona` or `fallback` with the standard cast."""
    error: ErrorInfo | None = None
    """What was wrong with the model before, exactly if the reason is `fallback`. It quotes nobody."""


@frozen
class ModelLoading(Payload):
    """`model_loading`: the model is not ready yet."""

    model_id: str
    """The model that was selected."""
    cold_start: bool
    """Whether it is loaded from scratch."""
    progress: float | None = None
    """0 to 1; absent from the first event."""


@frozen
class ModelReady(Payload):
    """`model_ready`: the model is ready to generate."""

    model_id: str
    """The model that was selected."""
    warm_state: WarmState
    """Its readiness when the turn needed it: `hot`, `warm` or `cold`."""
    load_ms: int
    """Duration of the load in milliseconds; 0 if it was hot."""


@frozen
class TokenDelta(Payload):
    """`token_delta`: the next piece of the turn's text."""

    delta: str
    """The text; never empty."""
    offset: int
    """Position of `delta` in the turn's text, in code points."""


@frozen
class ToolCallStarted(Payload):
    """`tool_call_started`: a tool began to run."""

    tool_call_id: str
    """Unique in its turn."""
    tool_name: str
    """The tool's name in the cast."""


@frozen
class ToolCallResult(Payload):
    """`tool_call_result`: the end of a tool call."""

    tool_call_id: str
    """The id of the call."""
    tool_name: str
    """The tool's name, as in `tool_call_started`."""
    canceled: bool
    """Whether the turn was interrupted before the call ended."""
    side_effects_may_have_occurred: bool | None = None
    """Required when `canceled` is true."""
    summary: str | None = None
    """One sentence that may be shown to people."""
    error: ErrorInfo | None = None
    """The failure, if the call failed."""
    awaits_approval: bool = False
    """True if what the call asks for is not done before somebody approves it."""


@frozen
class TurnInterrupted(Payload):
    """`turn_interrupted`: the turn ended early."""

    reason: InterruptReason
    """Reason for the interruption."""
    detail: str | None = None
    """A stable code, or the name of the exception that ended the turn. Never its text."""
    heard: Heard | None = None
    """The part that the player received, if the host reported it."""
    error: ErrorInfo | None = None
    """Why the turn failed, if it did: a stable code, and a sentence that quotes nobody. A turn from the ledger has the
    code's standard sentence. Absent if the turn was canceled, or ended with its session, stage or process."""
    text_forgotten: bool = False
    """True if only the ledger knows of the turn, as in `turn_final`: text that a client does not have is gone."""


@frozen
class TurnFinal(Payload):
    """`turn_final`: the turn's text is complete."""

    text: str
    """The whole text, which also replaces missed deltas. Empty if `text_forgotten`."""
    output_tokens: int | None = None
    """Output tokens as the model counts them; None if no model was used."""
    cut: bool = False
    """True if the text was cut at its limit of tokens, and more would have followed."""
    authoritative: Literal[False] = False
    """Always false: text changes nothing."""
    text_forgotten: bool = False
    """True if only the ledger knows of the turn, because it ended long ago or before a restart. Then `text` is empty,
    and a client keeps the text that it has."""


@frozen
class CommitFinal(Payload):
    """`commit_final`: the authority plane's decision."""

    commit_digest: str
    """Digest of the commit record, chained to the session's previous commit."""
    commit_outcome: CommitOutcome
    """`ok`: the changes are committed. `fail_closed`: nothing changed."""
    issues: tuple[Issue, ...] = ()
    """Reasons for `fail_closed`; empty for `ok`."""
    artifact_refs: tuple[str, ...] = ()
    """Digests of the artifacts of the commit."""
    commit_id: str | None = None
    """A short id of the commit."""
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
    EventType.MODEL_LOADING: DeliveryClass.BOUNDED,  # the first of a load; later progress is best effort
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

    Events are ordered by (`session_id`, `turn_id`, `seq`), never by time stamps.
    """

    schema_v: str
    """The version of the envelope: `"1.0"`."""
    session_id: str
    """The session of the turn."""
    turn_id: str
    """The turn; its id is never used again."""
    seq: int
    """Position in the turn, from 0, the same for every subscriber."""
    mono_ts_ms: int
    """Milliseconds of the runtime's monotonic clock, for diagnosis; never decreases within a turn. An event from the
    ledger carries 9007199254740991, because the turn's own clock may be gone."""
    event_type: EventType
    """Determines the class of `payload`."""
    payload: Payload
    """The content of the event."""
    wall_ts: float | None = None
    """Seconds since the epoch, for people and logs."""
    covered: Payload | None = field(default=None, eq=False, repr=False)
    """The payload without what the cast's output filter hides, if it hides anything. It is not on the wire: a covered
    view gets it as the payload."""
