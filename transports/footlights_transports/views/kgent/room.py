"""Where the dialogues of one user with one agent are heard: any number of observers, each at its own pace.

A dialogue is told once, and everybody reads the same events of it. Who is slow reads later and misses nothing; only
one who lags behind by too many dialogues is let go. Nobody who talks waits for anybody who listens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import Detached
from footlights.stream.outbox import DetachReason
from footlights_transports.views.kgent.pure import wire as kgent
from footlights_transports.views.kgent.pure.messages import InvalidMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights_transports.views.kgent.pure.messages import ChatEvent, ChatMessage, ErrorCode

MAX_KEPT = 64
"""Finished dialogues that a room remembers for observers who come back."""
MAX_KEPT_BYTES = 8_000_000
"""What they may take."""
MAX_BEHIND = 2 * MAX_KEPT
"""Finished dialogues that an observer may have waiting. Who comes back may have all that are remembered at once."""


@frozen
class Entry:
    """One event, and how it is sent."""

    event: ChatEvent
    data: bytes


class Dialogue:
    """All that was told of one message so far. `is_forgotten` says whether its session has ended."""

    def __init__(self, message: ChatMessage, is_forgotten: Callable[[], bool]) -> None:
        self.message = message
        self.is_forgotten = is_forgotten
        self.entries: list[Entry] = []
        self.size = 0
        """How many bytes its events take."""
        self.over = trio.Event()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be told."""
        return self.over.is_set()

    @property
    def correlation_id(self) -> str:
        return self.message.correlation_id

    @property
    def events(self) -> list[ChatEvent]:
        return [entry.event for entry in self.entries]

    @property
    def failure(self) -> list[bytes]:
        """Its `error` and what followed; nothing if it did not fail."""
        last = [entry.data for entry in self.entries[-2:]]
        return last if len(last) > 1 and self.entries[-2].event.event_type == "error" else []


class Room:
    """One user's dialogues with one agent."""

    def __init__(self) -> None:
        self._dialogues: dict[str, Dialogue] = {}
        """As they began."""
        self._finished: dict[Dialogue, None] = {}
        """Those of them that are over, as they ended."""
        self._observers: dict[Observer, None] = {}
        self._news = trio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether there is nobody in it and nothing to remember."""
        return not self._dialogues and not self._observers

    # -- for whoever tells

    def begin(self, message: ChatMessage, is_forgotten: Callable[[], bool]) -> Dialogue:
        """A new dialogue, which every observer will hear. Raises `InvalidMessage` if its correlation id is taken."""
        self.forget()
        if message.correlation_id in self._dialogues:
            raise InvalidMessage("correlation_id was used before: what is sent again takes a new one.")
        dialogue = self._dialogues[message.correlation_id] = Dialogue(message, is_forgotten)
        for observer in self._observers:
            observer.add(dialogue)
        return dialogue

    def tell(self, dialogue: Dialogue, events: Iterable[ChatEvent]) -> None:
        """What is new."""
        entries = [Entry(event, kgent.write_event(event)) for event in events]
        dialogue.entries += entries
        dialogue.size += sum(len(entry.data) for entry in entries)
        self.wake()

    def end(self, dialogue: Dialogue, code: ErrorCode, now: float, rest: Iterable[ChatEvent] = ()) -> None:
        """Nothing more will be told but the rest. If it has not ended by itself, it ends with this error."""
        self.tell(dialogue, rest)
        self.tell(dialogue, kgent.cut_off(dialogue.events, code, dialogue.correlation_id, now))
        dialogue.over.set()
        self._finished[dialogue] = None
        self.wake()
        self.forget()

    def forget(self) -> None:
        """Let go of dialogues whose session has ended, and if too many are over, of those that ended first."""
        for each in list(self._finished):
            if each.is_forgotten():
                self._let_go(each)
        left = sum(each.size for each in self._finished)
        for each in list(self._finished):
            if len(self._finished) <= MAX_KEPT and left <= MAX_KEPT_BYTES:
                break
            left -= each.size
            self._let_go(each)

    def _let_go(self, dialogue: Dialogue) -> None:
        del self._finished[dialogue]
        del self._dialogues[dialogue.correlation_id]

    # -- for observers

    def observe(self, after: Mapping[str, int]) -> Observer:
        """From now on. What is open is heard from its beginning.

        Who names dialogues in `after` goes on with them behind those sequences, and hears all that began after the
        first of them from its beginning. What is not remembered is said to be over, unless it knows that already.
        """
        self.forget()
        known = {name: seen for name, seen in after.items() if name in self._dialogues}
        unknown = {name: seen for name, seen in after.items() if name not in known and seen < kgent.HEARD_ALL}
        observer = Observer(self, unknown)
        is_after = False
        for dialogue in self._dialogues.values():
            is_after = is_after or dialogue.correlation_id in known
            if is_after or not dialogue.is_over:
                observer.add(dialogue, known.get(dialogue.correlation_id, 0))
        self._observers[observer] = None
        return observer

    def leave(self, observer: Observer) -> None:
        """It hears nothing more."""
        self._observers.pop(observer, None)

    async def wait_news(self) -> None:
        """Return when anything has changed."""
        await self._news.wait()

    def wake(self) -> None:
        """Something has changed."""
        self._news.set()
        self._news = trio.Event()


class Observer:
    """One who listens. `unknown` are the dialogues that it asked for and that nobody remembers, and how far it is in
    each of them."""

    def __init__(self, room: Room, unknown: Mapping[str, int]) -> None:
        self.unknown = unknown
        self._room = room
        self._reading: dict[Dialogue, int] = {}
        self._is_lost = False
        self._is_leaving = False

    def add(self, dialogue: Dialogue, seen: int = 0) -> None:
        """One more dialogue to hear, behind this sequence."""
        # Open ones do not count: nobody could have read them.
        if sum(each.is_over for each in self._reading) >= MAX_BEHIND:
            self._is_lost = True
            self._reading.clear()
        if not self._is_lost:
            self._reading[dialogue] = seen

    def leave(self) -> None:
        """It listens no longer."""
        self._room.leave(self)

    def end(self) -> None:
        """When it has heard what is open now to its end, that is all."""
        self._is_leaving = True
        self.leave()
        self._room.wake()

    async def next_batch(self) -> list[bytes]:
        """What is new, at least one event; nothing at the end. Raises `Detached` if it lags too far behind."""
        await trio.lowlevel.checkpoint()
        while True:
            # Nothing waits between taking and returning: what was taken would be lost.
            batch = self._take()
            if self._is_lost:
                raise Detached(DetachReason.OVERFLOW)
            if batch or (self._is_leaving and not self._reading):
                return batch
            await self._room.wait_news()

    def _take(self) -> list[bytes]:
        batch: list[bytes] = []
        for dialogue, seen in list(self._reading.items()):
            batch += (entry.data for entry in dialogue.entries[seen:])
            if dialogue.is_over:
                del self._reading[dialogue]
            else:
                self._reading[dialogue] = max(seen, len(dialogue.entries))
        return batch
