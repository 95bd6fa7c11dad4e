"""One run, and what was said of it so far, for any number of readers.

    id: 4
    event: tool_start
    data: {"type":"tool_start",...}

The `id` of an event is its place in the run, so a client that comes back with it goes on after it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import orjson
import trio
from attrs import frozen

from footlights_transports.views.dexi.pure.events import Heartbeat, OutputDelta, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import JsonValue, StreamEvent
    from footlights_transports.access.policy import User
    from footlights_transports.views.dexi.pure.events import DexiEvent
    from footlights_transports.views.dexi.pure.narration import DexiRun

_ENTRY_BYTES = 500
"""About what an event takes besides its text."""


@frozen
class Entry:
    """One event of a run, as it is sent."""

    event: DexiEvent
    text: bytes

    @property
    def is_heartbeat(self) -> bool:
        return isinstance(self.event, Heartbeat)


class Run:
    """Timestamps are those of the wall clock when the run began, and from then on of the clock that never goes back."""

    def __init__(self, user: User, session_id: str, turn_id: str, dexi: DexiRun, wall_time: float) -> None:
        self.user = user
        self.session_id = session_id
        self.turn_id = turn_id
        self.entries: list[Entry] = []
        self.is_over = False
        """Whether nothing more will be said."""
        self._dexi = dexi
        self._ahead = wall_time - trio.current_time()
        self._news = trio.Event()

    # -- for readers

    @property
    def run_id(self) -> str:
        return self._dexi.run_id

    @property
    def message(self) -> str:
        """The answer so far."""
        return "".join(each.event.content for each in self.entries if isinstance(each.event, OutputDelta))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(_ENTRY_BYTES + len(each.text) for each in self.entries)

    def answer(self) -> dict[str, JsonValue]:
        """All of it, for one who does not want a stream."""
        return {
            "mode": self._dexi.decision.mode.value,
            "run_id": self.run_id,
            "message": self.message,
            "events": [to_json(each.event) for each in self.entries],
        }

    def description(self) -> dict[str, JsonValue]:
        """Where it is, and why it is in its mode."""
        return {
            "run_id": self.run_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "is_over": self.is_over,
            "decision": self._dexi.decision.document,
        }

    async def wait_beyond(self, entries: int) -> None:
        """Return when there are more entries than these, or will never be."""
        while len(self.entries) <= entries and not self.is_over:
            await self._news.wait()

    async def wait_over(self) -> None:
        while not self.is_over:
            await self._news.wait()

    # -- for the task that makes it

    @property
    def patience(self) -> float:
        """How many seconds of silence there may be from now on."""
        due = self._dexi.heartbeat_at
        return inf if due is None else max(due - self._now(), 0)

    def begin(self) -> None:
        self._add(self._dexi.begin(self._now()))

    def take(self, events: Iterable[StreamEvent]) -> None:
        now = self._now()
        self._add(each for event in events for each in self._dexi.take(event, now))

    def fill_silence(self) -> None:
        # Half a microsecond may be missing, as numbers are rounded.
        self._add(self._dexi.silent(max(self._now(), self._dexi.heartbeat_at or 0)))

    def lose_sight(self) -> None:
        self._add(self._dexi.lose_sight(self._now()))

    def break_off(self) -> None:
        self._add(self._dexi.break_off(self._now()))

    def end(self) -> None:
        """Nothing more will be said."""
        self.is_over = True
        self._news.set()

    def _now(self) -> float:
        return self._ahead + trio.current_time()

    def _add(self, events: Iterable[DexiEvent]) -> None:
        for event in events:
            data = orjson.dumps(to_json(event))
            self.entries.append(
                Entry(event, b"id: %d\nevent: %b\ndata: %b\n\n" % (len(self.entries), event.type.encode(), data))
            )
        self.is_over = self.is_over or self._dexi.is_done
        self._news.set()
        if not self.is_over:
            self._news = trio.Event()
