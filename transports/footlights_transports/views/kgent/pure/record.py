"""What stays of a dialogue: turns, which are whole, never change, and can be put one after the other.

whole = first >> second >> third        # the same, wherever the brackets are
first >> IDENTITY == first
"""

from __future__ import annotations

import time
import uuid
from enum import StrEnum
from math import fsum, isfinite
from typing import TYPE_CHECKING, Generic, TypeAlias, cast

from attrs import asdict, field, fields, frozen

from footlights_transports.views.kgent.pure.messages import InvalidMessage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import TypeVar

    ContentT = TypeVar("ContentT", default=str)
else:
    from typing import TypeVar

    ContentT = TypeVar("ContentT")


class TurnType(StrEnum):
    """What a turn is."""

    SPEECH = "SPEECH"
    """An answer, said to its end."""
    ACTION = "ACTION"
    """Something was done."""
    THOUGHT = "THOUGHT"
    """A step on the way to an answer."""
    YIELD = "YIELD"
    """The word was given to somebody else."""
    SILENCE = "SILENCE"
    """Nothing was said, on purpose."""


def _as_turn_type(turn_type: TurnType | str) -> TurnType:
    if turn_type not in list(TurnType):
        raise InvalidMessage(f"turn_type must be one of {', '.join(TurnType)}.")
    return TurnType(turn_type)


@frozen(kw_only=True)
class Turn(Generic[ContentT]):
    """One turn of a dialogue. What is said is text, unless a program of yours makes turns of something else.

    Raises `InvalidMessage` for a number that cannot be one.
    """

    id: str
    """Unique in its trace."""
    content: ContentT
    """All that was said."""
    timestamp: float
    """Seconds since the epoch, for people and for an order among turns that depend on nothing."""
    source: str
    """Who said it."""
    turn_type: TurnType = field(converter=_as_turn_type)
    """What it is; its name will do."""
    state_hash_pre: str = ""
    """The digest of the commit of the speech before it; empty for the first. Turns of others in the session may lie
    between them."""
    state_hash_post: str = ""
    """The digest of its own commit."""
    confidence: float
    """0 to 1."""
    entropy_cost: float
    """What it took: a thousandth for each token."""

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
        """A turn of this moment, with an id of its own and no commit behind it."""
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
        """All of it, as JSON can say it."""
        return {**asdict(self), "turn_type": self.turn_type.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Turn:
        """The turn that `to_dict` was asked of. Raises `InvalidMessage` for anything else."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        if len(known) < len(fields(cls)) or len(data) > len(known):
            raise InvalidMessage("A turn has all of its fields, and no others.")
        for name, kinds in _KINDS.items():
            if not isinstance(known[name], kinds) or isinstance(known[name], bool):
                raise InvalidMessage(f"{name} is of the wrong kind.")
        return Turn(**known)


_NUMBER = (int, float)
_KINDS: Mapping[str, tuple[type, ...]] = {
    each.name: _NUMBER if each.name in ("timestamp", "confidence", "entropy_cost") else (str,) for each in fields(Turn)
}


@frozen
class TurnChain:
    """Turns, one after the other."""

    turns: tuple[Turn, ...] = field(default=())

    @property
    def content(self) -> str:
        """All that was said in them."""
        return "".join(turn.content for turn in self.turns)

    @property
    def entropy_cost(self) -> float:
        """What they took together."""
        return fsum(turn.entropy_cost for turn in self.turns)

    @property
    def confidence(self) -> float:
        """That of the least certain one."""
        return min((turn.confidence for turn in self.turns), default=1.0)

    def __rshift__(self, after: object) -> Turn | TurnChain:
        return _chained(self, after)


IDENTITY = TurnChain()
"""No turn: before or after another it changes nothing."""

Chained: TypeAlias = Turn | TurnChain


def chain(*parts: Chained) -> Chained:
    """The turns of all parts, in order. A part that is alone stays what it is."""
    said = [part for part in parts if part.turns]
    return said[0] if len(said) == 1 else TurnChain(tuple(turn for part in said for turn in part.turns))


def _chained(first: Chained, after: object) -> Chained:
    return chain(first, cast("Chained", after)) if isinstance(after, Turn | TurnChain) else NotImplemented
