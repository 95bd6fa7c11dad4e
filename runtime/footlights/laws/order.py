"""Laws of the order of a turn: turn_accepted, the body, one terminal event, one commit_final.

The order is one table, and no other module of this package repeats it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from footlights.events import EventType
from footlights.laws.law_texts import RESTART_SEQ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.laws.law_texts import Report


class State(Enum):
    UNBEGUN = auto()
    RESUMED = auto()
    """The subscriber saw the beginning, and perhaps the end, of the turn before it resumed; nothing came since."""
    OPEN = auto()
    ENDED = auto()
    COMMITTED = auto()


class Kind(Enum):
    ACCEPTED = auto()
    BODY = auto()
    TERMINAL = auto()
    COMMIT = auto()


_KINDS: Mapping[EventType, Kind] = {
    EventType.TURN_ACCEPTED: Kind.ACCEPTED,
    EventType.TURN_INTERRUPTED: Kind.TERMINAL,
    EventType.TURN_FINAL: Kind.TERMINAL,
    EventType.COMMIT_FINAL: Kind.COMMIT,
}

_STEPS: Mapping[tuple[State, Kind], tuple[State, str | None]] = {
    (State.UNBEGUN, Kind.ACCEPTED): (State.OPEN, None),
    (State.UNBEGUN, Kind.BODY): (State.OPEN, "accepted_first"),
    (State.UNBEGUN, Kind.TERMINAL): (State.ENDED, "accepted_first"),
    (State.UNBEGUN, Kind.COMMIT): (State.COMMITTED, "accepted_first"),
    (State.RESUMED, Kind.ACCEPTED): (State.OPEN, "accepted_once"),
    (State.RESUMED, Kind.BODY): (State.OPEN, None),
    (State.RESUMED, Kind.TERMINAL): (State.ENDED, None),
    (State.RESUMED, Kind.COMMIT): (State.COMMITTED, None),
    (State.OPEN, Kind.ACCEPTED): (State.OPEN, "accepted_once"),
    (State.OPEN, Kind.BODY): (State.OPEN, None),
    (State.OPEN, Kind.TERMINAL): (State.ENDED, None),
    (State.OPEN, Kind.COMMIT): (State.COMMITTED, "one_terminal"),
    (State.ENDED, Kind.ACCEPTED): (State.ENDED, "accepted_once"),
    (State.ENDED, Kind.BODY): (State.ENDED, "terminal_silence"),
    (State.ENDED, Kind.TERMINAL): (State.ENDED, "one_terminal"),
    (State.ENDED, Kind.COMMIT): (State.COMMITTED, None),
    (State.COMMITTED, Kind.ACCEPTED): (State.COMMITTED, "commit_silence"),
    (State.COMMITTED, Kind.BODY): (State.COMMITTED, "commit_silence"),
    (State.COMMITTED, Kind.TERMINAL): (State.COMMITTED, "commit_silence"),
    (State.COMMITTED, Kind.COMMIT): (State.COMMITTED, "commit_silence"),
}

_SENTENCES: Mapping[str, str] = {
    "accepted_first": "came before turn_accepted",
    "accepted_once": "accepts a turn that had begun",
    "one_terminal": "came without a terminal event before it, or after another one",
    "terminal_silence": "came after the terminal event",
    "commit_silence": "came after commit_final",
}


class Order:
    def __init__(self, report: Report, *, resumed: bool) -> None:
        self._report = report
        self.state = State.RESUMED if resumed else State.UNBEGUN
        self.terminal: EventType | None = None
        """The terminal event, if this subscriber was sent it."""

    def step(self, seq: int, event_type: EventType | None) -> bool:
        """Take the next event; False if its content must not be judged here. `event_type` is None if unknown."""
        if event_type is None:
            if self.state in (State.UNBEGUN, State.RESUMED):
                self.state = State.OPEN
            return True
        if seq >= RESTART_SEQ and self.state is State.UNBEGUN:
            # After a restart only the end of the turn is known.
            self.state = State.OPEN
        before = self.state
        kind = _KINDS.get(event_type, Kind.BODY)
        self.state, law = _STEPS[before, kind]
        if law is not None:
            self._report(law, seq, f"{event_type} {_SENTENCES[law]}")
        if kind is Kind.TERMINAL and before is not State.ENDED:
            self.terminal = event_type
        return kind is Kind.COMMIT or before is not State.ENDED

    def close(self) -> None:
        if self.state is State.OPEN:
            self._report("one_terminal", None, "the turn has no terminal event")
        elif self.state is State.ENDED:
            self._report("one_commit", None, "the turn has no commit_final")
