"""Follower: a session's events across detachments.

    async with follow(session, observer=True) as stream:
        while batch := await stream.receive_batch():
            ...

A subscriber that falls behind is detached. A follower then subscribes again from its cursor, so that its reader gets
every event once, with the gaps declared, until the session is closed.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Protocol

import trio

from footlights.errors import Detached
from footlights.stream.outbox import DetachReason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from footlights.events import StreamEvent
    from footlights.stream.subscription import Subscription


class Followable(Protocol):
    """The part of a session that a follower uses."""

    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = (), *, observer: bool = False
    ) -> Subscription: ...


def follow(session: Followable, *, observer: bool = False) -> Follower:
    """A follower that begins with the turns that are open now, to be entered with `async with`."""
    return Follower(session, observer=observer)


class Follower:
    """Made by `follow`; read by one task."""

    def __init__(self, session: Followable, *, observer: bool) -> None:
        self._session = session
        self._observer = observer
        self._stream = session.subscribe(observer=observer)
        self._is_ended = False

    async def __aenter__(self) -> Follower:
        await self._stream.__aenter__()
        if self._is_ended:
            self._stream.end()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, error, traceback)

    async def include(self, turn_id: str) -> None:
        """Have the stream bring this turn from its beginning, also if it was settled before. Before the first read.

        Raises what `subscribe` raises. No checkpoint if the stream brings the turn anyway.
        """
        if not self._stream.will_bring(turn_id):
            await self._subscribe_again({turn_id: -1})

    def end(self) -> None:
        """Stop: the reader gets what waits in the outbox, then the end."""
        self._is_ended = True
        if self._stream.is_entered:
            self._stream.end()

    async def receive_batch(self) -> list[StreamEvent]:
        """At least one event; an empty list at the end.

        The end comes when the session is closed, or when the stage closes before it knows whether the last commits
        are durable. Raises what `subscribe` raises when it subscribes again.
        """
        batch = await self.receive_batch_until(inf)
        assert batch is not None
        return batch

    async def receive_batch_until(self, deadline: float) -> list[StreamEvent] | None:
        """The same; None if no event comes until `deadline`.

        The deadline does not interrupt subscribing again: with short deadlines that would never end.
        """
        while True:
            try:
                with trio.move_on_at(deadline):
                    return await self._stream.receive_batch()
            except Detached as detached:
                if detached.reason == DetachReason.COMMIT_UNKNOWN:
                    return []
            else:
                return None
            await self._subscribe_again(self._stream.cursor, self._stream.terminal_seen)

    async def _subscribe_again(self, after: Mapping[str, int], terminal_seen: Collection[str] = ()) -> None:
        await self._stream.__aexit__(None, None, None)
        again = self._session.subscribe(after, terminal_seen, observer=self._observer)
        # Until it is entered the old one stays: if this is cancelled, the next read comes here again.
        await again.__aenter__()
        self._stream = again
        if self._is_ended:
            again.end()
