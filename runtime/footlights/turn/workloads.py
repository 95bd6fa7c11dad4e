"""Extensions: workloads, and the context through which a workload performs its turn.

A workload is a turn performed by the host's own code. It emits events through its context, requests commits, and can
learn that it was cancelled. Only the runtime accepts, ends and commits turns: a workload that tries to, or that puts
data anywhere but under `payload.ext`, gets an error, and nothing reaches the stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import trio

from footlights import wire
from footlights.authority.intents import Intent, check_intent
from footlights.errors import InvalidEvent, RegistrationError, TooLarge
from footlights.events import (
    DELIVERY,
    SCHEMA_V,
    DeliveryClass,
    EventType,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
)

if TYPE_CHECKING:
    from footlights.authority.world import World
    from footlights.limits import Limits
    from footlights.speaker import Speaker
    from footlights.turn.turn import Turn

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_RESERVED = frozenset(kind for kind, delivery in DELIVERY.items() if delivery is DeliveryClass.MUST_DELIVER)
"""Must-deliver events are emitted by the runtime alone."""


def draft_event(event_type: EventType | str, payload: Mapping[str, object]) -> StreamEvent:
    """An event for `emit_event`. The payload is checked here, and the runtime fills in the envelope.

    A `token_delta` needs no `offset`. Raises `InvalidEvent`.
    """
    known = _known(event_type)
    return StreamEvent(SCHEMA_V, "", "", 0, 0, known, wire.payload_from_wire(known, _with_offset(known, payload)))


def _with_offset(event_type: EventType, payload: object) -> Any:
    if event_type is EventType.TOKEN_DELTA and isinstance(payload, Mapping):
        return {"offset": 0, **cast("Mapping[str, object]", payload)}
    return payload


def _known(event_type: str) -> EventType:
    try:
        return EventType(event_type)
    except ValueError:
        raise InvalidEvent(f"event_type: {str(event_type)[:64]!r} is not an event type of v1.") from None


class InteractionContext:
    """The turn, as a workload sees it."""

    __slots__ = ("_limits", "_turn", "_world")

    def __init__(self, turn: Turn, limits: Limits, world: World) -> None:
        self._turn = turn
        self._limits = limits
        self._world = world

    @property
    def session_id(self) -> str:
        """The session of the turn."""
        return self._turn.session_id

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self._turn.turn_id

    @property
    def input(self) -> str:
        """What the player said; empty once the turn is settled."""
        return self._turn.input

    @property
    def persona(self) -> str:
        """The name of the persona that the player addresses."""
        return self._turn.persona_name

    @property
    def speaker(self) -> Speaker:
        """The player of the session, with what the host says about it."""
        return self._turn.speaker

    @property
    def world(self) -> Any:
        """The world as it was committed when the turn began, read-only."""
        return self._world.view()

    def emit_event(self, event: StreamEvent) -> None:
        """Emit an event made by `draft_event`. Its envelope is replaced.

        Raises:
            InvalidEvent: only the runtime may emit this event, or its payload is not valid.
            TooLarge: it is bigger than `max_event_bytes`, or the turn is over its limit on text.
            IllegalTransition: the event may not follow the ones before it, or the turn has ended.
            RuntimeError: it was called in a thread. Use `trio.from_thread.run_sync`.
        """
        trio.lowlevel.current_trio_token()  # raises in a thread
        event_type = _known(event.event_type)
        if event_type in _RESERVED:
            raise InvalidEvent(f"event_type: {event_type} is emitted by the runtime alone.")
        payload = self._checked(event_type, event.payload)
        match payload:
            case TokenDelta(ext=None):
                self._turn.say(payload.delta)
            case TokenDelta():
                self._turn.say_with_ext(payload)
            case ToolCallStarted():
                self._turn.start_tool(payload)
            case ToolCallResult():
                self._turn.end_tool(payload)
            case ModelSelected() | ModelLoading() | ModelReady():
                self._turn.emit(payload)
            case _:
                raise AssertionError(f"{event_type} is the runtime's own")

    def request_commit(self, intent: Intent) -> None:
        """Stage an intent. It is judged at the end of the turn, unless the turn is interrupted."""
        self._turn.reserve_intent(check_intent(intent).size)
        self._turn.staged.append(intent)

    def is_canceled(self) -> bool:
        """Whether the turn was interrupted, for any reason."""
        return self._turn.is_interrupted

    async def await_cancel(self) -> None:
        """Return when the turn is interrupted. The next checkpoint after that raises `trio.Cancelled`."""
        try:
            await self._turn.interrupted.wait()
        except trio.Cancelled:
            if not self._turn.is_interrupted:
                raise

    def _checked(self, event_type: EventType, payload: object) -> Payload:
        # The payload may have been made without `draft_event`, or changed since.
        raw = wire.payload_to_wire(payload) if isinstance(payload, Payload) else _with_offset(event_type, payload)
        checked = wire.payload_from_wire(event_type, raw)
        if checked.dropped_seq_ranges:
            raise InvalidEvent("payload.dropped_seq_ranges: is declared by the runtime alone.")
        if wire.payload_size(checked) > self._limits.max_event_bytes:
            raise TooLarge(f"The event is bigger than {self._limits.max_event_bytes} bytes (max_event_bytes).")
        return checked


class Workload(Protocol):
    """A turn performed by the host's own code. A protocol: nothing has to be inherited."""

    async def run(self, context: InteractionContext) -> None:
        """Perform one turn. Returning ends it with `turn_final`, raising with `turn_interrupted`."""
        ...


class ExtensionManager:
    """The workloads that turns may name."""

    __slots__ = ("_workloads",)

    def __init__(self, workloads: Mapping[str, Workload] | None = None) -> None:
        self._workloads: dict[str, Workload] = {}
        for name, workload in (workloads or {}).items():
            self.register(name, workload)

    def register(self, name: str, workload: Workload) -> None:
        """Register a workload for `TurnParams.workload`. Raises `RegistrationError` for an invalid or used name."""
        if not _NAME.fullmatch(name):
            raise RegistrationError(
                f"The workload name {name[:64]!r} must be 1 to 64 of a-z, 0-9, _, . and -, a letter first."
            )
        if name in self._workloads:
            raise RegistrationError(f"A workload named {name} is registered already.")
        import_module("footlights.wire.reading")  # not in the first turn, which would block the others meanwhile
        self._workloads[name] = workload

    def get(self, name: str) -> Workload | None:
        """The workload with this name, if there is one."""
        return self._workloads.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """In the order they were registered."""
        return tuple(self._workloads)
