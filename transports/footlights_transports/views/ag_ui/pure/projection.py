"""Projection of a turn to the events of an AG-UI run.

    RUN_STARTED, CUSTOM footlights.model_*, TEXT_MESSAGE_*, TOOL_CALL_*, CUSTOM footlights.commit, RUN_FINISHED

AG-UI allows nothing after the end of a run, so the run ends with the commit and not with the text. A turn that was
canceled ends as `cancelled`, one that failed or was refused ends with RUN_ERROR, which gives the reason. An act that
waits for an approval ends the run as an `interrupt`, which the next run answers. A question that is still open ends the
runs after it in the same way, so that a page which has lost it gets it again.

Every event carries the turn and the seq of its core event in `metadata`, and has a `Position`. A projection can begin
at any position: it shows what comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import orjson
from attrs import evolve, frozen

from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights_transports.views.ag_ui.pure.position import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from footlights.authority.pending import PendingApproval
    from footlights.events import JsonValue, StreamEvent
    from footlights_transports.views.ag_ui.pure.position import Position

Body: TypeAlias = "dict[str, JsonValue]"

PROTOCOL_VERSION = "1.0"
PREFIX = "footlights."
"""Beginning of the names of CUSTOM events."""
COMMIT_UNKNOWN = "commit_unknown"
INTERNAL = "internal"
APPROVAL_ANSWER: Body = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}
"""JSON Schema of the answer to an approval."""

_CANCELED = frozenset({InterruptReason.CANCELED, InterruptReason.BARGE_IN, InterruptReason.SESSION_CLOSED})
_REASONS = {
    InterruptReason.SHUTDOWN: ErrorInfo("shutdown", "The server shut down."),
    InterruptReason.RUNTIME_RESTART: ErrorInfo("runtime_restart", "The server was restarted during the turn."),
}
_UNKNOWN = ErrorInfo("interrupted", "The turn was interrupted.")
"""For a failure that does not say why, which no lawful stream has."""
ENDS = ("RUN_FINISHED", "RUN_ERROR")


@frozen
class AgUiEvent:
    """One event of a run, and the position of a client that has it."""

    body: Body
    position: Position

    @property
    def type(self) -> str:
        return str(self.body["type"])


class AgUiProjection:
    """The run of one turn, from a position on. It is given the turn's events from the first on."""

    heartbeat_at: float | None = None

    def __init__(self, thread_id: str, run_id: str, position: Position) -> None:
        self.run_id = run_id
        self.turn_id = position.turn_id
        self.pending: Sequence[PendingApproval] = ()
        """The approvals for which the session waits, to be set before the commit is taken."""
        self._thread_id = thread_id
        self._given = position
        self._at = position
        self._interrupted: TurnInterrupted | None = None
        self._usage: Body = {}
        self._calls: set[str] = set()

    def begin(self, now: float) -> list[AgUiEvent]:
        """RUN_STARTED, unless the client has it."""
        run: Body = {"threadId": self._thread_id, "runId": self.run_id, "protocolVersion": PROTOCOL_VERSION}
        return list(self._parts([{"type": "RUN_STARTED", **run}])) if self._at.seq < 0 else []

    def take(self, event: StreamEvent, now: float) -> list[AgUiEvent]:
        payload = event.payload
        if isinstance(payload, TurnInterrupted):
            self._interrupted = payload
        elif isinstance(payload, ToolCallStarted):
            self._calls.add(payload.tool_call_id)
        elif isinstance(payload, ModelSelected):
            self._usage = {"model": payload.model_id}
        elif isinstance(payload, TurnFinal) and payload.output_tokens is not None:
            self._usage = {**self._usage, "outputTokens": payload.output_tokens}
        if event.seq < self._given.seq:
            return []
        if event.seq > self._at.seq:
            self._at = evolve(self._at, seq=event.seq, parts=0)
        return list(self._shown(payload))

    def silence(self, now: float) -> list[AgUiEvent]:
        """Nothing: the comments that keep a connection alive are enough."""
        return []

    def lose_sight(self, now: float) -> list[AgUiEvent]:
        return self._broken(COMMIT_UNKNOWN, "The server closed before it knew whether the turn was committed.")

    def break_off(self, shown: Sequence[AgUiEvent], now: float) -> list[AgUiEvent]:
        self._at = shown[-1].position if shown else self._given
        return self._broken(INTERNAL, "The run cannot be shown any further. The turn may be committed all the same.")

    @staticmethod
    def is_end(event: AgUiEvent) -> bool:
        return event.type in ENDS

    @staticmethod
    def is_heartbeat(event: AgUiEvent) -> bool:
        return False

    @staticmethod
    def write(place: int, event: AgUiEvent) -> bytes:
        return b"id: %b\ndata: %b\n\n" % (str(event.position).encode(), orjson.dumps(event.body))

    # -- the AG-UI events of one core event

    def _shown(self, payload: Payload) -> Iterator[AgUiEvent]:
        match payload:
            case TokenDelta(delta=delta, offset=offset):
                yield from self._text(delta, offset)
            case TurnFinal(text=text, text_forgotten=is_forgotten, cut=is_cut):
                yield from self._text(text, 0)
                yield from self._end_turn("text_forgotten" if is_forgotten else "text_cut" if is_cut else None)
            case TurnInterrupted(dropped_seq_ranges=dropped):
                yield from self._end_turn("text_forgotten" if dropped else None)
            case ToolCallStarted():
                yield from self._end_text()
                yield from self._parts(self._tool_started(payload))
            case ToolCallResult():
                # A start may be missing from a stream whose subscriber lagged far behind.
                if payload.tool_call_id in self._calls:
                    yield from self._parts([self._tool_result(payload)])
            case CommitFinal():
                if self._at.phase in (Phase.RUNNING, Phase.TURN_ENDED):
                    self._at = evolve(self._at, phase=Phase.COMMITTED)
                    yield self._event(_custom("commit", _decision(payload)))
                if self._at.phase is Phase.COMMITTED:
                    self._at = evolve(self._at, phase=Phase.DONE)
                    yield self._event(self._end(payload))
            case _:
                yield from self._parts(_told(payload))

    def _text(self, text: str, offset: int) -> Iterator[AgUiEvent]:
        """The part of this text that the client does not have. After a gap there is none until the whole text comes."""
        new = text[self._at.text - offset :] if offset <= self._at.text else ""
        if not new:
            return
        if self._at.message is None:
            self._at = evolve(self._at, message=self._at.seq)
            yield self._event({"type": "TEXT_MESSAGE_START", "messageId": self._message_id(), "role": "assistant"})
        self._at = evolve(self._at, text=offset + len(text))
        yield self._event({"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message_id(), "delta": new})

    def _end_text(self) -> Iterator[AgUiEvent]:
        if self._at.message is not None:
            message_id = self._message_id()
            self._at = evolve(self._at, message=None)
            yield self._event({"type": "TEXT_MESSAGE_END", "messageId": message_id})

    def _end_turn(self, about_text: str | None) -> Iterator[AgUiEvent]:
        """The end of the last message, and what is wrong with the text."""
        if self._at.phase is not Phase.RUNNING:
            return
        if about_text is not None:
            yield from self._end_text()
        self._at = evolve(self._at, phase=Phase.TURN_ENDED)
        yield from self._end_text() if about_text is None else [self._event(_custom(about_text, {}))]

    def _tool_started(self, call: ToolCallStarted) -> list[Body]:
        name: Body = {"toolCallId": self._call_id(call.tool_call_id)}
        return [
            {"type": "TOOL_CALL_START", **name, "toolCallName": call.tool_name},
            {"type": "TOOL_CALL_ARGS", **name, "delta": "{}"},  # arguments are no part of a stream
            {"type": "TOOL_CALL_END", **name},
        ]

    def _tool_result(self, call: ToolCallResult) -> Body:
        call_id = self._call_id(call.tool_call_id)
        said = call.summary or (None if call.error is None else call.error.message)
        details: Body = {"canceled": call.canceled}
        if call.error is not None:
            details["error"] = call.error.code
        if call.side_effects_may_have_occurred is not None:
            details["side_effects_may_have_occurred"] = call.side_effects_may_have_occurred
        if call.awaits_approval:
            details["awaits_approval"] = True
            said = f"Waits for approval: {said}" if said else "Waits for approval."
        return {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{call_id}/result",
            "toolCallId": call_id,
            "role": "tool",
            "content": said or ("The call was canceled." if call.canceled else "Done."),
            "metadata": details,
        }

    def _end(self, commit: CommitFinal) -> Body:
        if self._interrupted is not None and self._interrupted.reason in _CANCELED:
            return self._finished({"type": "cancelled"})
        if self._interrupted is not None:
            why = self._interrupted.error or _REASONS.get(self._interrupted.reason, _UNKNOWN)
            return {"type": "RUN_ERROR", "code": why.code, "message": why.message}
        if commit.commit_outcome is not CommitOutcome.OK:
            issue = commit.issues[0] if commit.issues else Issue(commit.commit_outcome.value, "Nothing was committed.")
            return {"type": "RUN_ERROR", "code": issue.code, "message": issue.message}
        questions: list[JsonValue] = [_interrupt(each) for each in self.pending]
        return self._finished({"type": "interrupt", "interrupts": questions} if questions else {"type": "success"})

    def _finished(self, outcome: Body) -> Body:
        usage: Body = {"usage": [self._usage]} if "outputTokens" in self._usage else {}
        names: Body = {"threadId": self._thread_id, "runId": self.run_id}
        return {"type": "RUN_FINISHED", **names, "outcome": outcome, **usage}

    def _broken(self, code: str, message: str) -> list[AgUiEvent]:
        if self._at.phase is Phase.DONE:
            return []
        return [*self._end_text(), self._event({"type": "RUN_ERROR", "code": code, "message": message})]

    # -- positions

    def _parts(self, bodies: Iterable[Body]) -> Iterator[AgUiEvent]:
        """The events of these bodies that the client does not have."""
        had = self._at.parts
        for number, body in enumerate(bodies, 1):
            if number > had:
                self._at = evolve(self._at, parts=number)
                yield self._event(body)

    def _event(self, body: Body) -> AgUiEvent:
        of_core: Body = {"turn_id": self.turn_id}
        if self._at.seq >= 0:
            of_core["seq"] = self._at.seq
        details = body.get("metadata", {})
        assert isinstance(details, dict)
        return AgUiEvent({**body, "metadata": {**of_core, **details}}, self._at)

    def _message_id(self) -> str:
        return f"{self.turn_id}/{self._at.message}"

    def _call_id(self, tool_call_id: str) -> str:
        """Unique in the thread: the ids of the core are so in their turn."""
        return f"{self.turn_id}/{tool_call_id}"


def _told(payload: Payload) -> list[Body]:
    """The core events that AG-UI has no event for."""
    match payload:
        case TurnAccepted(turns_ahead=ahead):
            return [_custom("queued", {"turns_ahead": ahead})] if ahead else []
        case ModelSelected():
            selected: Body = {"model_id": payload.model_id, "reason": payload.reason}
            if payload.error is not None:
                selected["error"] = {"code": payload.error.code, "message": payload.error.message}
            return [_custom("model_selected", selected)]
        case ModelLoading():
            loading: Body = {"model_id": payload.model_id, "cold_start": payload.cold_start}
            return [_custom("model_loading", {**loading, "progress": payload.progress})]
        case ModelReady():
            ready: Body = {"model_id": payload.model_id, "warm_state": payload.warm_state.value}
            return [_custom("model_ready", {**ready, "load_ms": payload.load_ms})]
        case _:
            return []


def _custom(name: str, value: Body) -> Body:
    return {"type": "CUSTOM", "name": f"{PREFIX}{name}", "value": value}


def _decision(commit: CommitFinal) -> Body:
    return {
        "commit_outcome": commit.commit_outcome.value,
        "commit_digest": commit.commit_digest,
        "commit_id": commit.commit_id,
        "issues": [{"code": each.code, "message": each.message, "ref": each.ref} for each in commit.issues],
    }


def _interrupt(pending: PendingApproval) -> Body:
    question: Body = {"id": pending.id, "reason": "approval", "message": pending.question}
    return {**question, "responseSchema": APPROVAL_ANSWER}
