"""Projection: a pure function of one turn, in steps. Each call returns what a view shows next.

The same events give the same output, so a projection needs no task, no clock and no socket, and its tests need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights.events import StreamEvent

E = TypeVar("E")


class Projection(Protocol[E]):
    """`now` is in seconds since the epoch and never goes back."""

    @property
    def run_id(self) -> str: ...

    @property
    def heartbeat_at(self) -> float | None:
        """When `silence` is due if nothing is shown before; None if never."""
        ...

    def begin(self, now: float) -> Iterable[E]:
        """The beginning, before any event of the turn."""
        ...

    def take(self, event: StreamEvent, now: float) -> Iterable[E]:
        """What this event of the turn adds, which may be nothing."""
        ...

    def silence(self, now: float) -> Iterable[E]:
        """A sign of life, and what the silence itself means."""
        ...

    def lose_sight(self, now: float) -> Iterable[E]:
        """The end, if the server closes before the outcome is known."""
        ...

    def break_off(self, shown: Sequence[E], now: float) -> Iterable[E]:
        """The end after all that was shown, if the projection itself failed. It relies on nothing that may be wrong."""
        ...

    def is_end(self, event: E) -> bool: ...

    def is_heartbeat(self, event: E) -> bool:
        """Whether the event only fills a silence, so that a client which had none need not get it."""
        ...

    def write(self, place: int, event: E) -> bytes:
        """The event as a Server-Sent Event. Its `id` must say its place in the log."""
        ...
