"""System protocols: what the harness needs of a stage in this process, a remote server, or a fake in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights.events import StreamEvent


@frozen
class Depths:
    """Lengths of the queues of a system, and the number of events that it has dropped since its start."""

    events_waiting: int
    commits_waiting: int
    dropped: int


class Client(Protocol):
    """A client that follows a session."""

    async def receive_batch(self) -> Sequence[StreamEvent]:
        """The next events, at least one. Called by one task. The client reconnects by itself."""
        ...

    async def cut(self) -> None:
        """Lose the connection."""
        ...


class Player(Client, Protocol):
    """A client that follows a session and begins turns in it."""

    async def begin_turn(self, said: str) -> str:
        """The turn's id. Raises `FootlightsError` if the system refuses the turn."""
        ...

    async def cancel(self, turn_id: str) -> None: ...

    def open_audience(self) -> AbstractAsyncContextManager[Client]:
        """Another client of the same session."""
        ...


class Probe(Protocol):
    """A way to the system and back that only the network and the system's loop can delay."""

    async def ping(self) -> None:
        """Return when the answer is here. Raises `FootlightsError`."""
        ...


class System(Protocol):
    """The system that is measured."""

    name: str
    shares_loop: bool
    """Whether it runs in the event loop of the harness."""

    def open_player(self) -> AbstractAsyncContextManager[Player]: ...

    def open_probe(self) -> AbstractAsyncContextManager[Probe | None]:
        """Without a probe, the network and the loop cannot be told apart from the rest."""
        ...

    def depths(self) -> Depths | None:
        """None if the system cannot be seen from inside."""
        ...
