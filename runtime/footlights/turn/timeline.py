"""Timeline: where the time of one turn goes, as contiguous parts, each of which has one owner.

A part lasts until the next one begins. So parts have no gaps and no overlaps, whatever becomes of the turn, and add up
to the time from `turn_accepted` to `commit_final`. A boundary that is also an event has the very time that stamps it.

What runs beside the owner does not count: while several tools are open, the part is that of the one that was opened
first, until it ends. Tokens take no part in this: speaking is one part, so a token costs nothing more.
"""

from __future__ import annotations

from array import array
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from attrs import frozen


class Part(StrEnum):
    """What a turn waits for."""

    QUEUE = "queue"
    """Earlier turns of its session, and then the event loop, until its actors run."""
    MODEL_CHOICE = "model_choice"
    """The choice of its model."""
    LOAD = "load"
    """The model, which loads."""
    SLOT = "slot"
    """A slot of the model, while it serves other turns."""
    RETRY = "retry"
    """The time at which a model that refused may be asked again."""
    PROMPT = "prompt"
    """The prompt: its facts, and what fits into the context."""
    FIRST_TOKEN = "first_token"
    """The model, asked and silent: until its first text, or to its end if it says nothing."""
    SPEAKING = "speaking"
    """The model, from its first text to its end."""
    TOOL = "tool"
    """A tool, by its name."""
    WORKLOAD = "workload"
    """The host's own code, outside of its model and tools."""
    FINISHING = "finishing"
    """The end: what the output filter held back or, after a cancel, the grace of open tools."""
    COMMIT_WAIT = "commit_wait"
    """The committer, while it commits earlier turns, and the ledger, which reads what they left."""
    JUDGE = "judge"
    """The rules, for all turns of the batch."""
    WRITE = "write"
    """The ledger, until the batch is durable and announced."""


@frozen
class TurnPart:
    """One part of the time of a turn."""

    part: Part
    took_us: int
    """Microseconds."""
    tool: str | None = None
    """The name of the tool, if it is one."""


class CommitTimes(NamedTuple):
    """When a batch of the committer was begun to be judged, and to be written."""

    judged_from: float
    written_from: float


class Timeline:
    __slots__ = ("_from", "_owners", "owner")

    def __init__(self) -> None:
        # A turn is retained with its timeline, so this is compact.
        self._from = array("d")
        self._owners: list[Part | str] = []
        self.owner: Part | str = Part.QUEUE
        """The owner of the part that has begun last; a plain string is the name of a tool."""

    def enter(self, owner: Part | str, now: float) -> None:
        """Begin the part of this owner, or of the tool with this name. It ends the one before."""
        self._from.append(now)
        self._owners.append(owner)
        self.owner = owner

    def parts(self, until: float) -> tuple[TurnPart, ...]:
        """The parts in their order, the last one until then."""
        # Boundaries are rounded, and not the parts: so the parts add up exactly.
        boundaries = [int(each * 1_000_000) for each in (*self._from, until)]
        parts: list[TurnPart] = []
        for owner, (began, ended) in zip(self._owners, pairwise(boundaries), strict=True):
            kind, tool = (owner, None) if isinstance(owner, Part) else (Part.TOOL, owner)
            part = TurnPart(kind, ended - began, tool)
            if parts and (parts[-1].part, parts[-1].tool) == (part.part, part.tool):
                part = TurnPart(part.part, parts.pop().took_us + part.took_us, part.tool)
            parts.append(part)
        return tuple(parts)
