"""Checker: dispatches each event of a recording to its turn, and collects the violations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from footlights import wire
from footlights.errors import InvalidEvent
from footlights.events import PAYLOAD_TYPES, EventType, StreamEvent
from footlights.laws.law_texts import Violation
from footlights.laws.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Recorded: TypeAlias = "StreamEvent | Mapping[str, object]"

_EVENT_TYPES: Mapping[str, EventType] = {each.value: each for each in EventType}

_LAW_OF_FIELD: Mapping[str, str] = {
    "payload": "payload",
    "payload.ext": "ext",
    "payload.dropped_seq_ranges": "range_form",
    "payload.authoritative": "authority_label",
    "payload.side_effects_may_have_occurred": "tool_canceled",
}
"""The law that a refused field breaks. Other fields break `payload` or `envelope`."""


def check(
    events: Iterable[Recorded],
    *,
    after: Mapping[str, int] | None = None,
    canceled: Collection[str] = (),
    complete: bool = True,
) -> list[Violation]:
    """Every violation in the events of one subscriber, in their order. An empty list means a lawful stream.

    `after` maps the turns that the subscriber resumed to the last seq it had of each; `canceled` names the turns that
    were cancelled. `complete=False` means that the recording ends early, so turns may be unfinished.
    """
    checker = Checker(after=after, canceled=canceled)
    for event in events:
        checker.see(event)
    if complete:
        checker.close()
    return checker.violations


class Checker:
    def __init__(self, *, after: Mapping[str, int] | None, canceled: Collection[str]) -> None:
        self.violations: list[Violation] = []
        self._after = after or {}
        self._canceled = frozenset(canceled)
        self._turns: dict[tuple[str, str], Turn] = {}

    def see(self, recorded: object) -> None:
        try:
            event = _read(recorded)
        except InvalidEvent as error:
            self._see_unfit(recorded, str(error))
        else:
            turn = self._turn(event.session_id, event.turn_id, event.seq, event.event_type)
            turn.see(event.seq, event.event_type, event)

    def close(self) -> None:
        for turn in self._turns.values():
            turn.close()

    def _see_unfit(self, recorded: object, refusal: str) -> None:
        """Report a malformed event, and count its seq in its turn if that can be read."""
        session_id, turn_id = _string(recorded, "session_id"), _string(recorded, "turn_id")
        seq, event_type = _seq(recorded), _event_type(recorded)
        self.violations.append(Violation(_law_of(refusal), session_id, turn_id, seq, refusal))
        if session_id is not None and turn_id is not None and seq is not None:
            self._turn(session_id, turn_id, seq, event_type).see(seq, event_type, None)

    def _turn(self, session_id: str, turn_id: str, seq: int, event_type: EventType | None) -> Turn:
        key = (session_id, turn_id)
        turn = self._turns.get(key)
        if turn is not None and not (turn.committed and event_type is EventType.TURN_ACCEPTED):
            return turn
        report = partial(_report, self.violations, session_id, turn_id)
        seen = self._after.get(turn_id, -1)
        if turn is not None:
            report("turn_unique", seq, "begins a turn under the id of one that was committed")
            seen = -1
        self._turns[key] = turn = Turn(report, seen=seen, canceled=turn_id in self._canceled)
        return turn


def _report(
    violations: list[Violation], session_id: str, turn_id: str, law: str, seq: int | None, sentence: str
) -> None:
    violations.append(Violation(law, session_id, turn_id, seq, sentence))


def _read(recorded: object) -> StreamEvent:
    """The event, validated like one from the wire, even if it was made in this process."""
    if not isinstance(recorded, StreamEvent):
        return wire.from_wire(cast(Mapping[str, object], recorded))
    try:
        if PAYLOAD_TYPES.get(recorded.event_type) is not type(recorded.payload):
            raise InvalidEvent("payload: must be the payload of its event type")
        written = wire.to_wire(recorded)
    except (AttributeError, TypeError):  # a value contradicts its declared type
        raise InvalidEvent("event: must hold values of the declared types") from None
    return wire.from_wire(written)


def _law_of(refusal: str) -> str:
    path = refusal.partition(": ")[0]
    field = ".".join(path.split(".")[:2]).partition("[")[0]
    root = "payload" if path.startswith("payload") else "envelope"
    return _LAW_OF_FIELD.get(field, root)


def _field(recorded: object, name: str) -> object:
    if isinstance(recorded, Mapping):
        return cast(Mapping[str, object], recorded).get(name)
    return getattr(recorded, name) if isinstance(recorded, StreamEvent) else None


def _string(recorded: object, name: str) -> str | None:
    value = _field(recorded, name)
    return value if isinstance(value, str) else None


def _seq(recorded: object) -> int | None:
    value = _field(recorded, "seq")
    return value if type(value) is int and value >= 0 else None


def _event_type(recorded: object) -> EventType | None:
    value = _field(recorded, "event_type")
    return _EVENT_TYPES.get(value) if isinstance(value, str) else None
