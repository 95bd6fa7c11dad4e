"""Run: one narrated turn and its append-only log of sent events, for any number of readers.

    id: 4
    event: tool_start
    data: {"type":"tool_start",...}

The `id` of an event is its place in the log, so a client that reconnects with it continues after it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import orjson
import trio
from attrs import frozen

from footlights_transports.views.dexi.pure.events import Done, Heartbeat, OutputDelta, to_json
from footlights_transports.views.dexi.pure.narration import broken_end

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import JsonValue
    from footlights.stream.follow import Follower
    from footlights_transports.access.policy import User
    from footlights_transports.views.dexi.pure.events import DexiEvent
    from footlights_transports.views.dexi.pure.narration import Narrator

_ENTRY_BYTES = 500
"""Estimated size of an event besides its text."""


@frozen
class Entry:
    """One event of a run, and its bytes in a stream."""

    event: DexiEvent
    text: bytes

    @property
    def is_heartbeat(self) -> bool:
        return isinstance(self.event, Heartbeat)


class Run:
    """A run: its user, its session and turn, and its log.

    Timestamps begin with the wall clock at the start of the run, and then follow a clock that never goes back.
    """

    def __init__(self, user: User, session_id: str, turn_id: str, narrator: Narrator, wall_time: float) -> None:
        self.user = user
        self.session_id = session_id
        self.turn_id = turn_id
        self.entries: list[Entry] = []
        """The log. Only this class appends to it."""
        self._narrator = narrator
        self._clock_offset = wall_time - trio.current_time()
        self._news = trio.Event()
        self._append(narrator.begin(self._now()))

    # -- reading

    @property
    def run_id(self) -> str:
        return self._narrator.run_id

    @property
    def is_over(self) -> bool:
        """Whether the log is complete."""
        return isinstance(self.entries[-1].event, Done)

    @property
    def size(self) -> int:
        """Estimated size in bytes."""
        return sum(_ENTRY_BYTES + len(each.text) for each in self.entries)

    def answer(self) -> dict[str, JsonValue]:
        """The whole run as one JSON object."""
        message = "".join(each.event.content for each in self.entries if isinstance(each.event, OutputDelta))
        return {
            "mode": self._narrator.decision.mode.value,
            "run_id": self.run_id,
            "message": message,
            "events": [to_json(each.event) for each in self.entries],
        }

    def description(self) -> dict[str, JsonValue]:
        """The session and turn of the run, and the record of its mode decision."""
        return {
            "run_id": self.run_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "is_over": self.is_over,
            "decision": self._narrator.decision.document,
        }

    async def wait_beyond(self, entries: int) -> None:
        """Return when the log has more entries than this, or is complete."""
        while len(self.entries) <= entries and not self.is_over:
            await self._news.wait()

    async def wait_over(self) -> None:
        while not self.is_over:
            await self._news.wait()

    # -- writing, by the task of the run

    async def narrate(self, stream: Follower) -> None:
        """Append what the turn's events add, and heartbeats, until the run is over."""
        while not self.is_over:
            due = self._narrator.heartbeat_at
            batch = await stream.receive_batch_until(inf if due is None else due - self._clock_offset)
            now = self._now()
            if batch is None:
                self._append(self._narrator.silence(max(now, due or 0)))  # rounding may make `now` a little less
            elif not batch:
                self.lose_sight()
            else:
                of_turn = (event for event in batch if event.turn_id == self.turn_id)
                self._append(each for event in of_turn for each in self._narrator.take(event, now))

    def lose_sight(self) -> None:
        """End the run, unless it has ended: the server closes before the outcome is known."""
        if not self.is_over:
            self._append(self._narrator.lose_sight(self._now()))

    def break_off(self) -> None:
        """End the run, which has not ended, because its narration failed."""
        self._append(broken_end(self.run_id, [each.event for each in self.entries], self._now()))

    def _now(self) -> float:
        return self._clock_offset + trio.current_time()

    def _append(self, events: Iterable[DexiEvent]) -> None:
        for event in events:
            data = orjson.dumps(to_json(event))
            text = b"id: %d\nevent: %b\ndata: %b\n\n" % (len(self.entries), event.type.encode(), data)
            self.entries.append(Entry(event, text))
        self._news.set()
        self._news = trio.Event()
