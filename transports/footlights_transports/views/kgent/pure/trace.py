"""Trace of a conversation: its turns, and the turns that each depends on.

Turns that do not depend on each other commute: the trace is the same whichever is appended first. Its linear order is
the same in every process: causes come first; among turns that could be next, the earliest, then the smallest id.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import InvalidCommand, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from footlights_transports.views.kgent.pure.record import Turn


class UnlawfulTrace(InvalidCommand):
    """A turn cannot be in this trace: its id is taken, or a turn that it depends on is missing."""

    code = "unlawful_trace"


@frozen
class _Place:
    turn: Turn
    depends_on: frozenset[str]


class TraceMonoid:
    """Completed turns only. With `max_turns`, the oldest is dropped when there are more.

    Raises `RegistrationError` if `max_turns` is less than 1.
    """

    def __init__(self, max_turns: int | None = None) -> None:
        if max_turns is not None and max_turns < 1:
            raise RegistrationError("max_turns must be at least 1.")
        self._max_turns = max_turns
        self._places: dict[str, _Place] = {}

    def append_mut(self, turn: Turn, depends_on: Collection[str] = ()) -> None:
        """Add a turn that depends on the turns with these ids. Raises `UnlawfulTrace`, and then changes nothing."""
        if turn.id in self._places:
            raise UnlawfulTrace("A turn with that id is in the trace.")
        causes = frozenset(depends_on)
        if not causes <= self._places.keys():
            raise UnlawfulTrace("A turn depends on one that is not in the trace.")
        self._places[turn.id] = _Place(turn, causes)
        if self._max_turns is not None and len(self._places) > self._max_turns:
            # Its followers still name it, which `depends_on` hides: to search for them would take too long.
            del self._places[next(iter(self._places))]

    @property
    def events(self) -> tuple[Turn, ...]:
        """Every turn, in the linear order."""
        return tuple(self._linear())

    def depends_on(self, turn_id: str) -> frozenset[str]:
        """The turns that a turn depends on directly. Raises `UnlawfulTrace` if it is not in the trace."""
        if turn_id not in self._places:
            raise UnlawfulTrace("There is no such turn in the trace.")
        return self._places[turn_id].depends_on & self._places.keys()

    def __len__(self) -> int:
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceMonoid) and self._graph() == other._graph()

    __hash__ = None  # type: ignore[assignment]

    def _graph(self) -> dict[str, tuple[Turn, frozenset[str]]]:
        return {turn_id: (place.turn, self.depends_on(turn_id)) for turn_id, place in self._places.items()}

    def _linear(self) -> Iterator[Turn]:
        graph = self._graph()
        waits_for = {turn_id: len(causes) for turn_id, (_, causes) in graph.items()}
        followers: dict[str, list[str]] = {}
        for turn_id, (_, causes) in graph.items():
            for cause in causes:
                followers.setdefault(cause, []).append(turn_id)
        ready = [self._key(turn_id) for turn_id, waits in waits_for.items() if not waits]
        heapify(ready)
        while ready:
            _, turn_id = heappop(ready)
            yield self._places[turn_id].turn
            for follower in followers.get(turn_id, ()):
                waits_for[follower] -= 1
                if not waits_for[follower]:
                    heappush(ready, self._key(follower))

    def _key(self, turn_id: str) -> tuple[float, str]:
        return self._places[turn_id].turn.timestamp, turn_id
