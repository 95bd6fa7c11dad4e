"""What the harness asks of whatever it measures: a stage of this process, a server elsewhere, or a fake in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights.events import StreamEvent


@frozen
class Depths:
    """What waits inside, where that can be seen, and what was dropped since the start."""

    events_waiting: int
    commits_waiting: int
    dropped: int


class Client(Protocol):
    """One who follows a session."""

    async def receive_batch(self) -> Sequence[StreamEvent]:
        """What comes next, at least one event. Called by one task; comes back by itself after a loss."""
        ...

    async def cut(self) -> None:
        """Lose the connection."""
        ...


class Player(Client, Protocol):
    """One who follows a session and speaks in it."""

    async def begin_turn(self, said: str) -> str:
        """The turn's id. Raises `FootlightsError` if it is refused."""
        ...

    async def cancel(self, turn_id: str) -> None: ...

    def open_audience(self) -> AbstractAsyncContextManager[Client]:
        """Somebody else who follows the same session."""
        ...


class System(Protocol):
    """What is measured."""

    name: str

    def open_player(self) -> AbstractAsyncContextManager[Player]: ...

    def depths(self) -> Depths | None:
        """None where they cannot be seen."""
        ...
