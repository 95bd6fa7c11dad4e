"""Position in an AG-UI stream: the `id` of an event, from which a client resumes.

    t1-000005.17.1.340.m12

It says what the client has: of this turn, everything before the core event 17, and the first AG-UI event that this one
became; 340 characters of text; and that the text message 12 is open. If none is, a letter tells how far the run is (see
`Phase`). So a position is enough to continue a stream, also in a process that has not seen its beginning.
"""

from __future__ import annotations

import re
from enum import StrEnum

from attrs import frozen

from footlights.errors import InvalidCommand

_FORM = re.compile(r"(t[0-9]{1,18}-[0-9]{6,18})\.(-1|[0-9]{1,10})\.([0-9]{1,4})\.([0-9]{1,10})\.([ntcd]|m[0-9]{1,10})")


class Phase(StrEnum):
    """How far a run is."""

    RUNNING = "n"
    TURN_ENDED = "t"
    """The turn's terminal event was shown, if there was something to show."""
    COMMITTED = "c"
    """The commit was shown."""
    DONE = "d"
    """The end of the run was shown."""


@frozen
class Position:
    """What a client has of a turn."""

    turn_id: str
    seq: int = -1
    """The seq of the last core event of which it has something; -1 for what comes before the first."""
    parts: int = 0
    """How many AG-UI events of this core event it has. Those about text do not count: the next two fields tell."""
    text: int = 0
    """Length of the text that it has, in code points."""
    message: int | None = None
    """The open text message, if any."""
    phase: Phase = Phase.RUNNING

    def __str__(self) -> str:
        state = self.phase.value if self.message is None else f"m{self.message}"
        return f"{self.turn_id}.{self.seq}.{self.parts}.{self.text}.{state}"


def read_position(written: str) -> Position:
    """The position with this id. Raises `InvalidCommand`."""
    found = _FORM.fullmatch(written)
    if found is None:
        raise InvalidCommand("Last-Event-ID: is not the id of an event of a run.")
    turn_id, seq, parts, text, state = found.groups()
    if state.startswith("m"):
        return Position(turn_id, int(seq), int(parts), int(text), int(state[1:]))
    return Position(turn_id, int(seq), int(parts), int(text), phase=Phase(state))
