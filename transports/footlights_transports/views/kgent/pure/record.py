"""Turns of a conversation's record: complete, immutable, and composable.

whole = first >> second >> third        # associative
first >> IDENTITY == first
"""

from __future__ import annotations

import time
import uuid
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Generic, TypeAlias, cast

from attrs import asdict, evolve, field, fields, frozen

from footlights_transports.views.kgent.pure.messages import InvalidMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from typing_extensions import TypeVar

    from footlights_transports.views.kgent.pure.reader import Committed

    ContentT = TypeVar("ContentT", default=str)
else:
    from typing import TypeVar

    ContentT = TypeVar("ContentT")

SOURCE = "kgent-soul"
TEMPLATE_SOURCE = "kgent-template"
CONFIDENCE = 0.95


class TurnType(StrEnum):
    """Kind of a turn."""

    SPEECH = "SPEECH"
    """A complete answer."""
    ACTION = "ACTION"
    """Something was done."""
    THOUGHT = "THOUGHT"
    """A step on the way to an answer."""
    YIELD = "YIELD"
    """The floor was given to another speaker."""
    SILENCE = "SILENCE"
    """Nothing was said, on purpose."""


def _as_turn_type(turn_type: TurnType | str) -> TurnType:
    if turn_type not in list(TurnType):
        raise InvalidMessage(f"turn_type must be one of {', '.join(TurnType)}.")
    return TurnType(turn_type)


@frozen(kw_only=True)
class Turn(Generic[ContentT]):
    """One turn of a dialogue. Its content is text, unless your program makes turns of another type.

    Raises `InvalidMessage` for a number out of range.
    """

    id: str
    """Unique in its trace."""
    content: ContentT
    timestamp: float
    """Seconds since the epoch, for people, and to order turns that do not depend on each other."""
    source: str
    """The speaker."""
    turn_type: TurnType = field(converter=_as_turn_type)
    """The kind, or its name."""
    state_hash_pre: str = ""
    """The commit digest of the speech before; empty for the first. Other turns of the session may lie between."""
    state_hash_post: str = ""
    """The commit digest of this turn."""
    confidence: float
    """0 to 1."""
    entropy_cost: float
    """The cost: a thousandth for each token."""

    def __attrs_post_init__(self) -> None:
        if not isfinite(self.timestamp):
            raise InvalidMessage("timestamp must be a number.")
        if not 0 <= self.confidence <= 1:
            raise InvalidMessage("confidence must be a number from 0 to 1.")
        if not (isfinite(self.entropy_cost) and self.entropy_cost >= 0):
            raise InvalidMessage("entropy_cost must be a number, 0 or more.")

    @classmethod
    def create_turn(
        cls,
        content: ContentT,
        source: str,
        turn_type: TurnType = TurnType.SPEECH,
        confidence: float = 1.0,
        entropy_cost: float = 0.0,
    ) -> Turn[ContentT]:
        """A turn of this moment, with a new id and without a commit."""
        return cls(
            id=str(uuid.uuid4()),
            content=content,
            timestamp=time.time(),
            source=source,
            turn_type=turn_type,
            confidence=confidence,
            entropy_cost=entropy_cost,
        )

    @property
    def turns(self) -> tuple[Turn[ContentT], ...]:
        """Itself, as a chain of one."""
        return (self,)

    def __rshift__(self: Turn, after: object) -> Turn | TurnChain:
        return _chained(self, after)

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON values."""
        return {**asdict(self), "turn_type": self.turn_type.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Turn:
        """The inverse of `to_dict`. Raises `InvalidMessage`."""
        if set(data) != {each.name for each in fields(cls)}:
            raise InvalidMessage("A turn has all of its fields, and no others.")
        for name, value in data.items():
            if not isinstance(value, (int, float) if name in _NUMBERS else str) or isinstance(value, bool):
                raise InvalidMessage(f"{name} is of the wrong kind.")
        return Turn(**data)


_NUMBERS = ("timestamp", "confidence", "entropy_cost")


@frozen
class TurnChain:
    """Turns in sequence."""

    turns: tuple[Turn, ...] = field(default=())

    def __rshift__(self, after: object) -> Turn | TurnChain:
        return _chained(self, after)


IDENTITY = TurnChain()
"""The empty chain."""

Chained: TypeAlias = Turn | TurnChain


def _chained(first: Chained, after: object) -> Chained:
    """The turns of both, in order. If one of them is empty, the other as it is."""
    if not isinstance(after, Turn | TurnChain):
        return cast("Chained", NotImplemented)
    second = cast("Chained", after)
    if first.turns and second.turns:
        return TurnChain(first.turns + second.turns)
    return first if first.turns else second


def speech_of(answer: Committed, before: Turn | None, now: float) -> Turn:
    """The one SPEECH of a completed dialogue. `before` is the speech of the previous dialogue."""
    return Turn(
        id=answer.turn_id,
        content=answer.text,
        timestamp=now,
        source=SOURCE if answer.template is None else TEMPLATE_SOURCE,
        turn_type=TurnType.SPEECH,
        state_hash_pre="" if before is None else before.state_hash_post,
        state_hash_post=answer.commit_digest,
        confidence=CONFIDENCE,
        entropy_cost=answer.entropy_cost,
    )


def thoughts_of(speech: Turn, chunks: Sequence[str]) -> list[Turn]:
    """A THOUGHT for each chunk of the speech that is not empty. They change no state and cost nothing."""
    thought = evolve(speech, turn_type=TurnType.THOUGHT, state_hash_post=speech.state_hash_pre, entropy_cost=0.0)
    return [
        evolve(thought, id=f"{speech.id}/{number}", content=chunk) for number, chunk in enumerate(chunks, 1) if chunk
    ]
