"""Turn: its place in the lifecycle, its ordered stream of events, and the intents that it staged.

Every method is a plain call that either happens completely or raises and changes nothing. A turn ends in exactly one
terminal event, decided by the first of `finish` and `stop` (a cancel, a failure, a shutdown). Then the session hands it
to the committer; later `settle` publishes the commit, the last event of the turn.

The actors of a turn use this class. Extension authors see only `footlights.turn.workloads.InteractionContext`.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import Context, copy_context
from math import inf
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve, frozen
from trio.lowlevel import enable_ki_protection

from footlights import wire
from footlights.authority.digest import digest_bytes
from footlights.authority.intents import NOTHING_KNOWN
from footlights.authority.ledger.protocol import TurnRequest
from footlights.errors import Busy, IllegalTransition, InvalidEvent, TooLarge
from footlights.events import (
    DELIVERY,
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    DeliveryClass,
    ErrorInfo,
    EventType,
    Ext,
    Heard,
    InterruptReason,
    ModelSelected,
    Payload,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.lazy_event import LazyEvent
from footlights.redaction.screen import Screen
from footlights.speaker import Speaker
from footlights.stream.fast_path import NONE, WITHOUT_END
from footlights.stream.lane import Entry
from footlights.stream.replay import ENVELOPE_BYTES, Replay
from footlights.turn.lifecycle import SPEAKING, Lifecycle, Step, TurnState
from footlights.turn.model_phase import ModelPhase
from footlights.turn.timeline import Part, Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from footlights.authority.intents import Intent
    from footlights.cast import Cast
    from footlights.events import JsonValue
    from footlights.limits import Limits
    from footlights.params import TurnParams
    from footlights.stream.outbox import Outbox
    from footlights.turn.model_phase import ModelEvent
    from footlights.turn.timeline import CommitTimes, TurnPart

ADDRESSED = "ext.footlights.turn"
"""The namespace of the `ext` of `turn_accepted`."""
_MUST_DELIVER = DeliveryClass.MUST_DELIVER
_OWNER_AFTER = {
    Step.MODEL_SELECTED: Part.MODEL_CHOICE,
    Step.MODEL_FALLBACK: Part.MODEL_CHOICE,
    Step.MODEL_LOADING: Part.LOAD,
    Step.MODEL_READY: Part.PROMPT,
}
_FIRST_TOKEN = Part.FIRST_TOKEN
_ENDED = frozenset({TurnState.INTERRUPTED, TurnState.FINAL, TurnState.COMMITTED, TurnState.IN_DOUBT})


@frozen
class Interruption:
    """The reason why a turn ends early. `detail` is a stable code or the name of an exception, never its text."""

    reason: InterruptReason
    detail: str | None = None
    error: ErrorInfo | None = None
    """Why the turn failed, if it did."""


class Clock(Protocol):
    """The clock of `trio.current_time`, read directly: a third of the cost for each token, and no check for threads."""

    def __call__(self) -> float: ...


class WallClock(Protocol):
    """Seconds since 1970, for people to read. It orders nothing and enters no digest."""

    def __call__(self) -> float: ...


class TurnHost(Protocol):
    """The part of a session that a turn uses."""

    outboxes: tuple[Outbox, ...]
    limits: Limits
    clock: Clock
    wall_clock: WallClock
    remote_models: bool
    about: bytes

    def turn_stopping(self, turn: Turn) -> None: ...
    def turn_ended(self, turn: Turn) -> None: ...
    def turn_settled(self, turn: Turn) -> None: ...


class Turn:
    why = None
    """Only commits of the host have a reason in words."""
    __slots__ = (
        "__weakref__",
        "_host",
        "_if_canceled",
        "_intent_bytes_left",
        "_intents_left",
        "_model",
        "_stamped_at",
        "_text_bytes_left",
        "about",
        "cast",
        "commit",
        "context",
        "cut",
        "heard_seq",
        "input",
        "input_digest",
        "interrupted",
        "interruption",
        "last_activity",
        "lifecycle",
        "mode_decision",
        "output_tokens",
        "params",
        "replay",
        "request",
        "scope",
        "screen",
        "session_id",
        "settled",
        "staged",
        "timeline",
        "turn_id",
        "waits_in_line",
    )

    def __init__(
        self,
        host: TurnHost,
        cast: Cast,
        session_id: str,
        turn_id: str,
        said: str,
        params: TurnParams,
        mode_decision: dict[str, JsonValue] | None = None,
        request_id: str | None = None,
    ) -> None:
        self._host = host
        self.about = host.about
        self.cast = cast
        """The cast at the beginning of the turn; later changes of it concern later turns."""
        self.session_id = session_id
        self.turn_id = turn_id
        self.input = said
        self.params = params
        self.mode_decision = mode_decision
        self.request = None if request_id is None else TurnRequest(session_id, request_id, turn_id)
        self.input_digest = None if request_id is None else digest_bytes(said.encode())
        """To compare a repeated request with; it outlives the input, and stays in memory."""
        self.lifecycle = Lifecycle()
        self.timeline = Timeline()
        self.screen = None if cast.output_filter is None else Screen(cast.output_filter)
        self.replay = Replay(session_id, turn_id, self.screen)
        self.staged: list[Intent] = []
        self.last_activity = self._stamped_at = 0.0
        self.output_tokens: int | None = None
        self.cut = False
        """Whether the text was cut at its limit of tokens."""
        self.waits_in_line = False
        self.heard_seq = -1
        self.interruption: Interruption | None = None
        self.commit: CommitFinal | None = None
        self.interrupted = LazyEvent()
        self.settled = LazyEvent()
        self.context: Context | None = copy_context()
        self.scope = trio.CancelScope()
        self._text_bytes_left = host.limits.max_turn_text_bytes
        self._model = ModelPhase()
        self._intents_left = host.limits.max_intents_per_turn
        self._intent_bytes_left = host.limits.max_intent_bytes_per_turn
        self._if_canceled: dict[str, Callable[[], ToolCallResult]] = {}

    @property
    def state(self) -> TurnState:
        return self.lifecycle.state

    @property
    def remote_models(self) -> bool:
        """Whether the player consented to remote models."""
        return self._host.remote_models

    @property
    def speaker(self) -> Speaker:
        """The player of the session."""
        return Speaker(self.session_id, self.about)

    @property
    def persona_name(self) -> str:
        return self.params.persona or self.cast.default_persona

    @property
    def accepted_ms(self) -> int:
        """When it was accepted, as its first event says."""
        first = self.replay.event_after(-1)
        assert first is not None
        return first.mono_ts_ms

    @property
    def is_waiting(self) -> bool:
        return self.lifecycle.state is TurnState.ACCEPTED

    @property
    def is_interrupted(self) -> bool:
        """Whether the turn ends early, even if its terminal event still waits for a tool to report."""
        return self.interruption is not None

    @property
    def has_ended(self) -> bool:
        return self.lifecycle.state in _ENDED

    # -- called by the actors

    @enable_ki_protection
    def accept(self, turns_ahead: int) -> None:
        is_plain = self.params.persona is None and self.about is NOTHING_KNOWN
        self._step(Step.TURN_ACCEPTED, TurnAccepted(turns_ahead, ext=None if is_plain else self._addressed()))
        self.timeline.enter(Part.QUEUE, self._stamped_at)

    def run(self) -> None:
        """Leave the queue: from now on the actors may emit."""
        self.lifecycle.advance(Step.RUN)

    def wait_for(self, owner: Part) -> None:
        """From now on the time of the turn is that of this owner, unless the turn was interrupted."""
        if self.interruption is None:
            self.timeline.enter(owner, self._host.clock())

    @enable_ki_protection
    def emit(self, payload: ModelEvent) -> None:
        """Emit an event about the turn's model."""
        falls_back = isinstance(payload, ModelSelected) and payload.error is not None
        step = Step.MODEL_FALLBACK if falls_back else Step(EVENT_TYPES[type(payload)])
        if self.lifecycle.may(step):
            self._model.check(payload)
        if falls_back and self.screen is not None:
            self.screen.drop()
        self._step(step, payload)
        self._model.take(payload)
        is_asked = step is Step.MODEL_READY and self.params.workload is not None
        self.timeline.enter(_FIRST_TOKEN if is_asked else _OWNER_AFTER[step], self._stamped_at)

    def ask(self) -> None:
        """The model is asked: what follows is its first token."""
        self.replay.fast_path.until_seq = NONE  # so that `say` notices that token
        self.wait_for(_FIRST_TOKEN)

    @enable_ki_protection
    def say(self, delta: str, *, is_settled: bool = False) -> None:
        """Stream the next piece of the turn's text. This is the hot path: see `footlights.stream.fast_path`.

        An empty piece only shows the watchdog that the model is alive.
        """
        if self.screen is not None and not is_settled:
            delta = self.screen.take(delta, self.replay.text_length)
        if not delta:
            self.last_activity = trio.current_time()
            return
        size = len(delta) if delta.isascii() else utf8_size(delta)
        if size > self._text_bytes_left:
            raise self._too_much()
        host = self._host
        now = host.clock()
        wall_ts = host.wall_clock()
        replay = self.replay
        fast_path = replay.fast_path
        size_queued = ENVELOPE_BYTES + size
        if (
            replay.next_seq >= fast_path.until_seq
            or replay.said_bytes + size_queued > fast_path.until_bytes
            or now > fast_path.until_time
        ):
            if self.lifecycle.state not in SPEAKING:
                self.lifecycle.advance(Step.TOKEN_DELTA)
            fast_path.until_seq = fast_path.until_bytes = WITHOUT_END
            fast_path.until_time = inf
            for outbox in host.outboxes:
                outbox.put_delta(replay, size_queued, now)
            if self.timeline.owner is _FIRST_TOKEN:
                self.timeline.enter(Part.SPEAKING, now)
        self._text_bytes_left -= size
        self.last_activity = now
        replay.append_delta(delta, size_queued, now, wall_ts)

    @enable_ki_protection
    def flush(self) -> None:
        """Say what the output filter holds back, because other events follow it."""
        if self.screen is not None:
            self.say(self.screen.flush(self.replay.text_length), is_settled=True)

    @enable_ki_protection
    def start_tool(self, payload: ToolCallStarted, if_canceled: Callable[[], ToolCallResult] | None = None) -> None:
        """Open a tool call. `if_canceled` makes its result if the turn ends before the tool does."""
        self.flush()
        self._check_room()
        draft = self._draft(payload)
        self.lifecycle.start_tool(payload.tool_call_id, payload.tool_name)
        if len(self.lifecycle.open_tools) == 1:
            self.timeline.enter(payload.tool_name, self._stamped_at)
        if if_canceled is not None:
            self._if_canceled[payload.tool_call_id] = if_canceled
        self._publish(draft)

    @enable_ki_protection
    def end_tool(self, payload: ToolCallResult) -> None:
        draft = self._draft(payload)
        self.lifecycle.end_tool(payload.tool_call_id, payload.tool_name)
        self._if_canceled.pop(payload.tool_call_id, None)
        self._publish(draft)
        if self.interruption is None:
            self.timeline.enter(self._owner_after_tool(), self._stamped_at)
        elif self.state is TurnState.STOPPED:
            self._interrupt(self._draft_terminal(self.interruption))

    @enable_ki_protection
    def say_with_ext(self, payload: TokenDelta) -> None:
        """Stream a delta with an extension's data. It is kept as it is, never joined."""
        self.flush()
        size = utf8_size(payload.delta)
        if size > self._text_bytes_left:
            raise self._too_much()
        if self.screen is not None:
            self.screen.take_whole(payload.delta, self.replay.text_length)
        self._step(Step.TOKEN_DELTA, evolve(payload, offset=self.replay.text_length))
        if self.timeline.owner is _FIRST_TOKEN:
            self.timeline.enter(Part.SPEAKING, self._stamped_at)
        self._text_bytes_left -= size

    @contextmanager
    def in_line(self, what: Part) -> Generator[None]:
        """Wait for a slot of the model, or for the time at which it may be asked again.

        The watchdog does not count this time as a stall.
        """
        before = self.timeline.owner
        self.wait_for(what)
        self.waits_in_line = True
        try:
            yield
        finally:
            self.waits_in_line = False
            self.last_activity = trio.current_time()
            if self.interruption is None:
                self.timeline.enter(before, self.last_activity)

    def reserve_intent(self, size: int) -> None:
        """Count an intent against the turn's limits before it is staged, here or by a running tool."""
        if self.is_interrupted or self.has_ended:
            raise IllegalTransition(f"A turn that is {self.state} takes no more intents.")
        if not self._intents_left:
            raise Busy(f"The turn staged {self._host.limits.max_intents_per_turn} intents (max_intents_per_turn).")
        if size > self._intent_bytes_left:
            limit = self._host.limits.max_intent_bytes_per_turn
            raise TooLarge(f"The intents of the turn take more than {limit} bytes (max_intent_bytes_per_turn).")
        self._intents_left -= 1
        self._intent_bytes_left -= size

    # -- how it ends

    @enable_ki_protection
    def stop(self, reason: InterruptReason, detail: str | None = None, error: ErrorInfo | None = None) -> bool:
        """Interrupt the turn, unless it is ending already. Without open tools the terminal event is emitted now."""
        if not self.lifecycle.may(Step.STOP):
            return False
        interruption = Interruption(reason, detail, error)
        terminal = self._draft_terminal(interruption)
        self.lifecycle.advance(Step.STOP)
        self.replay.fast_path.until_seq = NONE
        self.interruption = interruption
        self.staged.clear()
        if self.state is TurnState.STOPPED:
            self._interrupt(terminal)
        else:
            self.timeline.enter(Part.FINISHING, self._stamped_at)
            self._host.turn_stopping(self)
        self.scope.cancel(reason=reason)
        self.interrupted.set()
        return True

    @enable_ki_protection
    def finish(self) -> bool:
        """End the turn with its text, unless it is ending already or a tool is open."""
        if not self.lifecycle.may(Step.TURN_FINAL):
            return False
        self.flush()
        text = self.replay.text
        self._step(Step.TURN_FINAL, TurnFinal(text, self.output_tokens, self.cut))
        self.timeline.enter(Part.COMMIT_WAIT, self._stamped_at)
        self.replay.seal(text)
        self._host.turn_ended(self)
        return True

    @enable_ki_protection
    def abandon_tools(self) -> None:
        """End every open tool call without waiting for its tool."""
        for tool_call_id, tool_name in list(self.lifecycle.open_tools.items()):
            if_canceled = self._if_canceled.get(tool_call_id)
            self.end_tool(
                ToolCallResult(tool_call_id, tool_name, canceled=True, side_effects_may_have_occurred=True)
                if if_canceled is None
                else if_canceled()
            )

    @enable_ki_protection
    def settle(self, commit: CommitFinal, times: CommitTimes) -> None:
        """Publish the commit, the last event of the turn."""
        self._step(Step.COMMIT_FINAL, commit)
        self.timeline.enter(Part.JUDGE, times.judged_from)
        self.timeline.enter(Part.WRITE, times.written_from)
        self.commit = commit
        self.context = None
        # The turn is retained for its events. Nothing else of it is needed any more.
        self.input = ""
        self.staged.clear()
        self.settled.set()
        self._host.turn_settled(self)

    @enable_ki_protection
    def lose_sight(self) -> None:
        """Give up on the commit: the stage closes while it is in doubt."""
        self.lifecycle.advance(Step.LOSE_SIGHT)
        self.settled.set()

    def hear(self, seq: int) -> None:
        self.heard_seq = max(self.heard_seq, seq)

    # -- inside

    @property
    def parts(self) -> tuple[TurnPart, ...]:
        """The parts of the turn's time, which add up; while it is not settled, those until its last event."""
        return self.timeline.parts(self._stamped_at)

    def _owner_after_tool(self) -> Part | str:
        """The tool that was opened next, if one is open; otherwise what uses the results."""
        after = Part.PROMPT if self.params.workload is None else Part.WORKLOAD
        return next(iter(self.lifecycle.open_tools.values()), after)

    def _too_much(self) -> TooLarge:
        return TooLarge(f"The turn said more than {self._host.limits.max_turn_text_bytes} bytes (max_turn_text_bytes).")

    def _addressed(self) -> Ext:
        """The persona, and the name of the player if the host gave one."""
        name = self.speaker.name
        return Ext(ADDRESSED, {"persona": self.persona_name, **({} if name is None else {"speaker": name})})

    def _draft_terminal(self, interruption: Interruption) -> Entry:
        heard = Heard(self.heard_seq, self.replay.text_until(self.heard_seq)) if self.heard_seq >= 0 else None
        return self._draft(TurnInterrupted(interruption.reason, interruption.detail, heard, interruption.error))

    def _interrupt(self, terminal: Entry) -> None:
        self.lifecycle.advance(Step.TURN_INTERRUPTED)
        self._publish(terminal)
        self.timeline.enter(Part.COMMIT_WAIT, self._stamped_at)
        self.replay.seal(self.replay.text)
        self._host.turn_ended(self)

    def _step(self, step: Step, payload: Payload) -> None:
        draft = self._draft(payload)
        if draft.delivery is not _MUST_DELIVER:
            self._check_room()
        self.lifecycle.advance(step)
        self._publish(draft)

    def _check_room(self) -> None:
        limit = self._host.limits.max_turn_events
        if self.replay.kept_events >= limit:
            raise TooLarge(f"The turn emitted {limit} events besides its text (max_turn_events).")

    def _draft(self, payload: Payload) -> Entry:
        """Make the event. Everything that can fail happens here, before the lifecycle moves."""
        event_type = EVENT_TYPES[type(payload)]
        delivery = DELIVERY[event_type]
        if event_type is EventType.MODEL_LOADING and self.state is TurnState.LOADING:
            delivery = DeliveryClass.BEST_EFFORT
        self._stamped_at = now = self._host.clock()
        event = StreamEvent(
            SCHEMA_V,
            self.session_id,
            self.turn_id,
            self.replay.next_seq,
            int(now * 1000),
            event_type,
            payload,
            self._host.wall_clock(),
            None if self.screen is None else self.screen.cover(payload),
        )
        size = 0 if delivery is _MUST_DELIVER else ENVELOPE_BYTES + wire.payload_size(payload)
        return Entry(event, delivery, size)

    def _publish(self, entry: Entry) -> None:
        self.last_activity = now = self._stamped_at
        for outbox in self._host.outboxes:
            outbox.put(entry, self.replay, now)
        self.replay.append(entry.event, entry.size)


def utf8_size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidEvent("The text holds half of a surrogate pair; it is not valid Unicode.") from None
