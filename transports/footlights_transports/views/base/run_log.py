"""Run log: one turn as a projection shows it, appended to by one task and read by any number of clients.

Entries are never changed, so a client that reconnects continues after the last one that it has.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

import trio
from attrs import frozen

from footlights.events import EventType
from footlights_transports.http.sse import SseResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import StreamEvent
    from footlights.stream.follow import Follower
    from footlights_transports.access.policy import User
    from footlights_transports.views.base.projection import Projection

_ENTRY_BYTES = 500
"""Estimated size of an entry besides its text."""

E = TypeVar("E")


@frozen
class Entry(Generic[E]):
    """One event of a run, and its bytes in a stream."""

    event: E
    text: bytes
    is_heartbeat: bool


class RunLog(Generic[E]):
    """A run: its user, its session and turn, and its log.

    Timestamps begin with the wall clock at the start of the run, and then follow a clock that never goes back.
    """

    def __init__(self, user: User, session_id: str, turn_id: str, projection: Projection[E], wall_time: float) -> None:
        self.user = user
        self.session_id = session_id
        self.turn_id = turn_id
        self.entries: list[Entry[E]] = []
        """The log. Only this class appends to it."""
        self.is_over = False
        """Whether the log is complete."""
        self.is_broken = False
        """Whether the log ended although the turn may have gone on, so that it is worth nothing later."""
        self._projection = projection
        self._clock_offset = wall_time - trio.current_time()
        self._news = trio.Event()
        self._append(projection.begin(self._now()))

    # -- reading

    @property
    def run_id(self) -> str:
        return self._projection.run_id

    @property
    def key(self) -> str:
        """Identifies the run among those of its user."""
        return self.run_id

    @property
    def size(self) -> int:
        """Estimated size in bytes."""
        return sum(_ENTRY_BYTES + len(each.text) for each in self.entries)

    async def wait_beyond(self, entries: int) -> None:
        """Return when the log has more entries than this, or is complete."""
        while len(self.entries) <= entries and not self.is_over:
            await self._news.wait()

    async def wait_over(self) -> None:
        while not self.is_over:
            await self._news.wait()

    # -- writing, by the task of the run

    async def fill(self, stream: Follower) -> None:
        """Append what the turn's events add, and heartbeats, until the turn is committed.

        The run is over then, also if a client that resumed has seen its end already and nothing is added.
        """
        while not self.is_over:
            due = self._projection.heartbeat_at
            batch = await stream.receive_batch_until(inf if due is None else due - self._clock_offset)
            now = self._now()
            if batch is None:
                # Rounding may make `now` a little less than it was due.
                self._append(self._projection.silence(max(now, due or 0)))
            elif not batch:
                self.lose_sight()
            else:
                for event in batch:
                    if event.turn_id == self.turn_id:
                        self.before(event)
                        self._append(self._projection.take(event, now))
                        if event.event_type is EventType.COMMIT_FINAL:
                            self._finish()

    def before(self, event: StreamEvent) -> None:
        """Tell the projection what it needs to know beside the event."""

    def lose_sight(self) -> None:
        """End the run, unless it has ended: the server closes before the outcome is known."""
        if not self.is_over:
            self._append(self._projection.lose_sight(self._now()))
            self._finish()

    def break_off(self) -> None:
        """End the run, unless it has ended, because it cannot be shown any further."""
        if not self.is_over:
            self.is_broken = True
            self._append(self._projection.break_off([each.event for each in self.entries], self._now()))
            self._finish()

    def _finish(self) -> None:
        self.is_over = True
        self._news.set()

    def _now(self) -> float:
        return self._clock_offset + trio.current_time()

    def _append(self, events: Iterable[E]) -> None:
        for event in events:
            self.is_over = self.is_over or self._projection.is_end(event)
            text = self._projection.write(len(self.entries), event)
            self.entries.append(Entry(event, text, self._projection.is_heartbeat(event)))
        self._news.set()
        self._news = trio.Event()


class RunStream(SseResponse, Generic[E]):
    """A run as Server-Sent Events for one client, from a place in its log on, until the run is over."""

    def __init__(self, run: RunLog[E], place: int, keep_alive: float, *, skips_within: float = 0.0) -> None:
        """A heartbeat within `skips_within` seconds after any other event is not sent to this client."""
        super().__init__(keep_alive)
        self._run = run
        self._place = place
        self._live_from = len(run.entries)
        self._skips_within = skips_within
        self._sent_at = -inf

    async def next_text(self) -> bytes | None:
        text = self._unread()
        if not text:
            if self._run.is_over:
                return None
            await self._run.wait_beyond(self._place)
        return text

    def _unread(self) -> bytes:
        """What the client was not sent yet, without the heartbeats that would fill no silence of this client.

        Those are the heartbeats that were made before it came, and one that comes right after other events.
        """
        entries, begin = self._run.entries, self._place
        missed = [each for each in entries[begin : self._live_from] if not each.is_heartbeat]
        unread = [*missed, *entries[max(begin, self._live_from) :]]
        self._place = len(entries)
        now = trio.current_time()
        if all(each.is_heartbeat for each in unread) and now - self._sent_at < self._skips_within:
            return b""
        if unread:
            self._sent_at = now
        return b"".join(each.text for each in unread)
