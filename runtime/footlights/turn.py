"""One turn: its place in the lifecycle, its ordered stream, and what it wants committed.

Every method is a plain call that either happens completely or raises and changes nothing. A turn ends in
exactly one terminal event, decided by whoever comes first: `finish`, or `stop` (a cancel, a failure, a
shutdown). At that moment it is handed over to be judged; later `settle` says what was decided, and the
stream is silent.

The actors of a turn use this class. Extension authors see only `footlights.extensions.InteractionContext`.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Protocol

import trio
from trio.lowlevel import enable_ki_protection

from footlights import wire
from footlights.errors import Busy, IllegalTransition, InvalidEvent, TooLarge
from footlights.events import (
    SCHEMA_V,
    CommitFinal,
    DeliveryClass,
    EventType,
    Heard,
    InterruptReason,
    ModelLoading,
    ModelReady,
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
from footlights.lane import Entry
from footlights.lifecycle import Lifecycle, State, Step
from footlights.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.authority.intents import Intent
    from footlights.limits import Limits
    from footlights.outbox import Outbox
    from footlights.params import TurnParams

ENVELOPE_BYTES = 200
"""What an event costs in a queue besides its payload."""

_SAY = Step.TOKEN_DELTA  # once: looking up an enum member costs as much as taking the step
_BEST_EFFORT = DeliveryClass.BEST_EFFORT
_BOUNDED = DeliveryClass.BOUNDED
_MUST_DELIVER = DeliveryClass.MUST_DELIVER


class WallClock(Protocol):
    """Seconds since the epoch, for people. It orders nothing and enters no digest."""

    def __call__(self) -> float: ...


class TurnHost(Protocol):
    """What a turn needs of its session."""

    outboxes: tuple[Outbox, ...]
    limits: Limits
    wall_clock: WallClock

    def turn_stopping(self, turn: Turn) -> None: ...
    def turn_ended(self, turn: Turn) -> None: ...
    def turn_settled(self, turn: Turn) -> None: ...


class Turn:
    __slots__ = (
        "__weakref__",
        "_host",
        "_if_canceled",
        "_intents_left",
        "_settled",
        "_stopped",
        "_text_bytes_left",
        "commit",
        "commit_unknown",
        "context",
        "heard_seq",
        "input",
        "interrupted",
        "last_activity",
        "lifecycle",
        "params",
        "replay",
        "scope",
        "session_id",
        "staged",
        "turn_id",
    )

    def __init__(self, host: TurnHost, session_id: str, turn_id: str, said: str, params: TurnParams) -> None:
        self._host = host
        self.session_id = session_id
        self.turn_id = turn_id
        self.input = said
        self.params = params
        self.lifecycle = Lifecycle()
        self.replay = Replay(session_id, turn_id)
        self.staged: list[Intent] = []
        self.last_activity = 0.0
        self.heard_seq = -1
        self.interrupted: tuple[InterruptReason, str | None] | None = None
        self.commit: CommitFinal | None = None
        self.commit_unknown = False
        self.context: Context | None = copy_context()
        self.scope = trio.CancelScope()
        self._text_bytes_left = host.limits.max_turn_text_bytes
        self._intents_left = host.limits.max_intents_per_turn
        self._if_canceled: dict[str, Callable[[], ToolCallResult]] = {}
        self._stopped: trio.Event | None = None
        self._settled: trio.Event | None = None

    @property
    def state(self) -> State:
        return self.lifecycle.state

    @property
    def is_waiting(self) -> bool:
        return self.lifecycle.state is State.ACCEPTED

    @property
    def is_stopping(self) -> bool:
        return self.interrupted is not None

    @property
    def has_ended(self) -> bool:
        return self.lifecycle.state in (State.INTERRUPTED, State.FINAL, State.COMMITTED)

    # -- what the actors say

    @enable_ki_protection
    def accept(self, turns_ahead: int) -> None:
        self._step(Step.TURN_ACCEPTED, EventType.TURN_ACCEPTED, TurnAccepted(turns_ahead), _MUST_DELIVER)

    def run(self) -> None:
        """It has its place: from now on its actors may speak."""
        self.lifecycle.advance(Step.RUN)

    @enable_ki_protection
    def select_model(self, payload: ModelSelected) -> None:
        self._step(Step.MODEL_SELECTED, EventType.MODEL_SELECTED, payload, _BOUNDED)

    @enable_ki_protection
    def loading_model(self, payload: ModelLoading) -> None:
        delivery = _BEST_EFFORT if self.state is State.LOADING else _BOUNDED
        self._step(Step.MODEL_LOADING, EventType.MODEL_LOADING, payload, delivery)

    @enable_ki_protection
    def model_ready(self, payload: ModelReady) -> None:
        self._step(Step.MODEL_READY, EventType.MODEL_READY, payload, _BOUNDED)

    @enable_ki_protection
    def say(self, delta: str) -> None:
        """Stream the next piece of the turn's text. This is the hot path: nothing here but what must be."""
        if not delta:
            return
        size = len(delta) if delta.isascii() else utf8_size(delta)
        if size > self._text_bytes_left:
            raise TooLarge("The turn said more than max_turn_text_bytes.")
        host = self._host
        now = trio.current_time()
        mono_ts_ms = int(now * 1000)
        wall_ts = host.wall_clock()
        self.lifecycle.advance(_SAY)
        self._text_bytes_left -= size
        self.last_activity = now
        replay = self.replay
        seq, offset = replay.next_seq, replay.text_length
        replay.append_delta(delta, mono_ts_ms, wall_ts)
        for outbox in host.outboxes:
            outbox.put_delta(replay, delta, seq, offset, ENVELOPE_BYTES + size, mono_ts_ms, wall_ts, now)

    @enable_ki_protection
    def start_tool(self, payload: ToolCallStarted, if_canceled: Callable[[], ToolCallResult] | None = None) -> None:
        """Open a tool call. `if_canceled` says what to report of it when nobody waits for it any more."""
        self._check_room()
        draft = self._draft(EventType.TOOL_CALL_STARTED, payload, _BOUNDED)
        self.lifecycle.start_tool(payload.tool_call_id, payload.tool_name)
        if if_canceled is not None:
            self._if_canceled[payload.tool_call_id] = if_canceled
        self._publish(draft)

    @enable_ki_protection
    def end_tool(self, payload: ToolCallResult) -> None:
        draft = self._draft(EventType.TOOL_CALL_RESULT, payload, _BOUNDED)
        self.lifecycle.end_tool(payload.tool_call_id, payload.tool_name)
        self._if_canceled.pop(payload.tool_call_id, None)
        self._publish(draft)
        if self.state is State.STOPPED:
            assert self.interrupted is not None
            self._interrupt(self._draft_terminal(*self.interrupted))

    @enable_ki_protection
    def say_with(self, payload: TokenDelta) -> None:
        """A delta that carries an extension's data: kept as it is, never joined."""
        size = utf8_size(payload.delta)
        if size > self._text_bytes_left:
            raise TooLarge("The turn said more than max_turn_text_bytes.")
        self._step(Step.TOKEN_DELTA, EventType.TOKEN_DELTA, payload, _BEST_EFFORT)
        self._text_bytes_left -= size

    def reserve_intent(self) -> None:
        """Take one of the turn's places for intents, before one is staged here or by a tool that still runs."""
        if self.is_stopping or self.has_ended:
            raise IllegalTransition(f"A turn that is {self.state} takes no more intents.")
        if not self._intents_left:
            raise Busy("The turn staged max_intents_per_turn intents already.")
        self._intents_left -= 1

    # -- how it ends

    @enable_ki_protection
    def stop(self, reason: InterruptReason, detail: str | None = None) -> bool:
        """Interrupt the turn, unless it is ending already. The terminal is out at once if no tool is open."""
        if not self.lifecycle.may(Step.STOP):
            return False
        terminal = self._draft_terminal(reason, detail)
        self.lifecycle.advance(Step.STOP)
        self.interrupted = (reason, detail)
        self.staged.clear()
        if self.state is State.STOPPED:
            self._interrupt(terminal)
        else:
            self._host.turn_stopping(self)
        self.scope.cancel(reason=reason)
        if self._stopped is not None:
            self._stopped.set()
        return True

    @enable_ki_protection
    def finish(self) -> bool:
        """End the turn with what it said, unless it is ending already or has something open."""
        if not self.lifecycle.may(Step.TURN_FINAL):
            return False
        text = self.replay.text
        self._step(Step.TURN_FINAL, EventType.TURN_FINAL, TurnFinal(text), _MUST_DELIVER)
        self.replay.seal(text)
        self._host.turn_ended(self)
        return True

    @enable_ki_protection
    def abandon_tools(self) -> None:
        """Report every tool that nobody waits for any more."""
        for tool_call_id, tool_name in list(self.lifecycle.open_tools.items()):
            if_canceled = self._if_canceled.get(tool_call_id)
            self.end_tool(
                ToolCallResult(tool_call_id, tool_name, canceled=True, side_effects_may_have_occurred=True)
                if if_canceled is None
                else if_canceled()
            )

    @enable_ki_protection
    def settle(self, commit: CommitFinal) -> None:
        """What the authority decided: the last event of the turn."""
        self._step(Step.COMMIT_FINAL, EventType.COMMIT_FINAL, commit, _MUST_DELIVER)
        self.commit = commit
        self._set_settled()
        self._host.turn_settled(self)

    @enable_ki_protection
    def leave_unknown(self) -> None:
        """The stage closes without knowing what became of the commit. Only a restart can tell."""
        self.commit_unknown = True
        self._set_settled()

    # -- what others ask

    def hear(self, seq: int) -> None:
        self.heard_seq = max(self.heard_seq, seq)

    async def wait_stopped(self) -> None:
        if self._stopped is None:
            self._stopped = trio.Event()
            if self.is_stopping:
                self._stopped.set()
        await self._stopped.wait()

    async def wait_settled(self) -> None:
        if self._settled is None:
            self._settled = trio.Event()
            if self.commit is not None or self.commit_unknown:
                self._settled.set()
        await self._settled.wait()

    # -- inside

    def _set_settled(self) -> None:
        self.context = None
        if self._settled is not None:
            self._settled.set()

    def _draft_terminal(self, reason: InterruptReason, detail: str | None) -> Entry:
        heard = Heard(self.heard_seq, self.replay.text_until(self.heard_seq)) if self.heard_seq >= 0 else None
        return self._draft(EventType.TURN_INTERRUPTED, TurnInterrupted(reason, detail, heard), _MUST_DELIVER)

    def _interrupt(self, terminal: Entry) -> None:
        self.lifecycle.advance(Step.TURN_INTERRUPTED)
        self._publish(terminal)
        self.replay.seal(self.replay.text)
        self._host.turn_ended(self)

    def _step(self, step: Step, event_type: EventType, payload: Payload, delivery: DeliveryClass) -> None:
        if delivery is not _MUST_DELIVER:
            self._check_room()
        draft = self._draft(event_type, payload, delivery)
        self.lifecycle.advance(step)
        self._publish(draft)

    def _check_room(self) -> None:
        if self.replay.kept_events >= self._host.limits.max_turn_events:
            raise TooLarge("The turn emitted more than max_turn_events events besides its text.")

    def _draft(self, event_type: EventType, payload: Payload, delivery: DeliveryClass) -> Entry:
        """Everything that could fail, before the lifecycle moves: after that, nothing may."""
        event = StreamEvent(
            SCHEMA_V,
            self.session_id,
            self.turn_id,
            self.replay.next_seq,
            int(trio.current_time() * 1000),
            event_type,
            payload,
            self._host.wall_clock(),
        )
        size = 0 if delivery is _MUST_DELIVER else ENVELOPE_BYTES + wire.payload_size(payload)
        return Entry(event, delivery, size)

    def _publish(self, entry: Entry) -> None:
        self.last_activity = now = trio.current_time()
        self.replay.append(entry.event)
        for outbox in self._host.outboxes:
            outbox.put(entry, self.replay, now)


def utf8_size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidEvent("The text holds half of a surrogate pair; it is not valid Unicode.") from None
