"""Retention: the finished turns that the sessions of a stage keep, so that a subscriber that resumes gets their words.

A turn is kept for `replay_time`. It is dropped earlier if its session keeps more than `replay_turns` turns or
`replay_bytes_per_session`, or if the stage keeps more than `replay_bytes`; the oldest turns go first.

If several owners share the stage, an owner keeps no more bytes than are free: the rule of `footlights.fair_share`. So
an owner whose turns take much makes room by dropping its own, and never those of others.

No timer drops turns. It is done when a turn of the stage is settled: for its owner, and for the owner that has been
silent for longest. So the turns of owners that have left are found without a search.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from attrs import Factory, define, frozen

from footlights.ids import owner_of

if TYPE_CHECKING:
    from footlights.stage.supervisor import Supervisor
    from footlights.turn.turn import Clock, Turn


class Keeper(Protocol):
    """The part of a session that retention uses."""

    session_id: str

    def drop_turn(self, turn: Turn) -> None:
        """Keep this turn no longer, and call `Retention.remove`."""
        ...


@frozen
class _Kept:
    keeper: Keeper
    owner: str
    size: int
    until: float


@define(eq=False)
class _Owner:
    turns: OrderedDict[Turn, _Kept] = Factory(OrderedDict)  # pyright: ignore[reportUnknownVariableType] - as declared
    bytes: int = 0


class Retention:
    """The kept turns of one stage."""

    def __init__(self, supervisor: Supervisor, clock: Clock) -> None:
        self._supervisor = supervisor
        self._limits = supervisor.limits
        self._clock = clock
        self._kept: dict[Turn, _Kept] = {}
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        """Those that keep turns. The one whose turn was settled last comes last."""
        self.bytes = 0
        """About the memory that all kept turns take."""

    def add(self, keeper: Keeper, turn: Turn) -> int:
        """Keep this turn, drop what the limits do not allow, this one perhaps, and return the bytes it counts for."""
        now, is_divided = self._clock(), self._supervisor.is_divided
        name = owner_of(keeper.session_id) if is_divided else ""
        kept = _Kept(keeper, name, turn.replay.kept_bytes, now + self._limits.replay_time)
        owner = self._owners.get(name)
        if owner is None:
            owner = self._owners[name] = _Owner()
        self._owners.move_to_end(name)
        self._kept[turn] = owner.turns[turn] = kept
        owner.bytes += kept.size
        self.bytes += kept.size
        self._drop_expired(owner, now)
        while owner.turns and (owner.bytes if is_divided else 0) > self._limits.replay_bytes - self.bytes:
            _drop_first(owner)
        while (silent := next(iter(self._owners.values()), owner)) is not owner:
            self._drop_expired(silent, now)
            if silent.turns:
                break
        return kept.size

    def remove(self, turn: Turn) -> int:
        """Count this turn no longer, and return the bytes it counted for."""
        kept = self._kept.pop(turn)
        owner = self._owners[kept.owner]
        del owner.turns[turn]
        owner.bytes -= kept.size
        self.bytes -= kept.size
        if not owner.turns:
            del self._owners[kept.owner]
        return kept.size

    @staticmethod
    def _drop_expired(owner: _Owner, now: float) -> None:
        while owner.turns and next(iter(owner.turns.values())).until <= now:
            _drop_first(owner)


def _drop_first(owner: _Owner) -> None:
    turn, kept = next(iter(owner.turns.items()))
    kept.keeper.drop_turn(turn)
