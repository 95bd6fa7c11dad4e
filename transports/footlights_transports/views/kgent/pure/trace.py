"""Trace of a conversation: its turns, and the turns that each depends on.

Turns that do not depend on each other commute: they may be appended in any order. The linear order of a trace is the
same in every process: causes come first; among turns that could be next, the earliest, then the smallest id.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from footlights_transports.views.kgent.pure.record import Turn


class UnlawfulTrace(InvalidCommand):
    """A turn cannot be in this trace: its id is taken, or a turn that it depends on is missing."""

    code = "unlawful_trace"


class TraceMonoid:
    """The completed turns of a conversation. The K-gent protocol calls them a trace monoid.

    With `max_turns`, the oldest is dropped when there are more.

    Raises `RegistrationError` if `max_turns` is less than 1.
    """

    def __init__(self, max_turns: int | None = None) -> None:
        if max_turns is not None and max_turns < 1:
            raise RegistrationError("max_turns must be at least 1.")
        self._max_turns = max_turns
        self._graph: dict[str, tuple[Turn, frozenset[str]]] = {}
        """Each turn and its dependencies, by id."""

    def append_mut(self, turn: Turn, depends_on: Collection[str] = ()) -> None:
        """Add a turn that depends on the turns with these ids. Raises `UnlawfulTrace`, and then changes nothing."""
        if turn.id in self._graph:
            raise UnlawfulTrace("A turn with that id is in the trace.")
        causes = frozenset(depends_on)
        if not causes <= self._graph.keys():
            raise UnlawfulTrace("A turn depends on one that is not in the trace.")
        self._graph[turn.id] = turn, causes
        if self._max_turns is not None and len(self._graph) > self._max_turns:
            # Its followers still name it, which `depends_on` hides: to search for them would take too long.
            del self._graph[next(iter(self._graph))]

    @property
    def events(self) -> tuple[Turn, ...]:
        """Every turn, in the linear order."""
        return tuple(self._linear())

    def depends_on(self, turn_id: str) -> frozenset[str]:
        """The turns that a turn depends on directly. Raises `UnlawfulTrace` if it is not in the trace."""
        if turn_id not in self._graph:
            raise UnlawfulTrace("There is no such turn in the trace.")
        return self._graph[turn_id][1] & self._graph.keys()

    def cone(self, turn_id: str) -> frozenset[str]:
        """The causal cone of a turn: all turns that it depends on. Raises `UnlawfulTrace`."""
        found, unseen = frozenset[str](), self.depends_on(turn_id)
        while unseen:
            found |= unseen
            unseen = frozenset[str]().union(*map(self.depends_on, unseen)) - found
        return found

    def __contains__(self, turn_id: str) -> bool:
        return turn_id in self._graph

    def __len__(self) -> int:
        return len(self._graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceMonoid) and self._seen() == other._seen()

    __hash__ = None  # type: ignore[assignment]

    def _seen(self) -> dict[str, tuple[Turn, frozenset[str]]]:
        return {turn_id: (turn, self.depends_on(turn_id)) for turn_id, (turn, _) in self._graph.items()}

    def _linear(self) -> Iterator[Turn]:
        order = TopologicalSorter({turn_id: self.depends_on(turn_id) for turn_id in self._graph})
        order.prepare()
        ready: list[tuple[float, str]] = []
        while order.is_active():
            for turn_id in order.get_ready():
                heappush(ready, (self._graph[turn_id][0].timestamp, turn_id))
            _, turn_id = heappop(ready)
            yield self._graph[turn_id][0]
            order.done(turn_id)
