"""Room: the dialogues of one user with one agent, and any number of observers, each at its own pace.

Every observer reads the same encoded events. A slow observer reads later and misses nothing; one that has too many
finished dialogues waiting is detached. A dialogue never waits for an observer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import trio

from footlights.errors import Detached
from footlights.stream.outbox import DetachReason
from footlights_transports.views.kgent.pure.messages import InvalidMessage
from footlights_transports.views.kgent.pure.mirror import HolographicBuffer
from footlights_transports.views.kgent.pure.wire import AFTER_DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights_transports.views.kgent.pure.messages import ChatEvent, ChatMessage
    from footlights_transports.views.kgent.pure.record import Turn

MAX_KEPT = 64
"""Finished dialogues that a room keeps for observers that come back."""
MAX_KEPT_BYTES = 8_000_000
"""The size of their events."""
MAX_BEHIND = 2 * MAX_KEPT
"""Finished dialogues that may wait for one observer. One that comes back may get all that are kept at once."""


class Dialogue:
    """The events of one message so far. `is_forgotten` returns whether its session has ended."""

    def __init__(self, message: ChatMessage, is_forgotten: Callable[[], bool]) -> None:
        self.message = message
        self.is_forgotten = is_forgotten
        self.events: list[ChatEvent] = []
        self.encoded: list[bytes] = []
        """The same events as they are sent."""
        self.size = 0
        """Of the encoded events, in bytes."""
        self.over = trio.Event()

    @property
    def is_over(self) -> bool:
        """Whether no more events will come."""
        return self.over.is_set()

    @property
    def failure(self) -> list[bytes]:
        """`error` and `done` of a dialogue that failed; empty for any other."""
        return self.encoded[-2:] if [each.event_type for each in self.events[-2:-1]] == ["error"] else []


class Room:
    """One user's dialogues with one agent."""

    def __init__(self) -> None:
        self._dialogues: dict[str, Dialogue] = {}
        """By correlation id, in the order in which they began."""
        self._finished: dict[Dialogue, None] = {}
        """Those of them that are over, in the order in which they ended."""
        self.mirror = HolographicBuffer()
        self._observers: dict[Observer, None] = {}
        self._news = trio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether the room has neither dialogues nor observers."""
        return not self._dialogues and not self._observers

    # -- for dialogues

    def begin(self, message: ChatMessage, is_forgotten: Callable[[], bool]) -> Dialogue:
        """A new dialogue for every observer. Raises `InvalidMessage` if its correlation id is taken."""
        self.forget()
        if message.correlation_id in self._dialogues:
            raise InvalidMessage("correlation_id was used before: what is sent again takes a new one.")
        dialogue = self._dialogues[message.correlation_id] = Dialogue(message, is_forgotten)
        for observer in self._observers:
            observer.add(dialogue)
        return dialogue

    def add(self, dialogue: Dialogue, *events: ChatEvent) -> None:
        """Publish events."""
        encoded = [event.encode() for event in events]
        dialogue.events += events
        dialogue.encoded += encoded
        dialogue.size += sum(map(len, encoded))
        self.wake()

    def end(self, dialogue: Dialogue, events: Iterable[ChatEvent] = ()) -> None:
        """Publish the last events."""
        self.add(dialogue, *events)
        dialogue.over.set()
        self._finished[dialogue] = None
        self.forget()

    def reflect(self, turn: Turn) -> None:
        """Publish a turn in the mirror."""
        self.mirror.reflect(turn)
        self.wake()

    def forget(self) -> None:
        """Drop dialogues whose session has ended; if there are still too many, those that ended first."""
        for each in list(self._finished):
            if each.is_forgotten():
                self._drop(each)
        left = sum(each.size for each in self._finished)
        for each in list(self._finished):
            if len(self._finished) <= MAX_KEPT and left <= MAX_KEPT_BYTES:
                break
            left -= each.size
            self._drop(each)

    def _drop(self, dialogue: Dialogue) -> None:
        del self._finished[dialogue]
        del self._dialogues[dialogue.message.correlation_id]

    # -- for observers

    def observe(self, after: Mapping[str, int]) -> Observer:
        """An observer of all new dialogues, and of the open ones from their beginning.

        If `after` names dialogues, it continues them behind these sequences, and gets every dialogue that began after
        the first of them from its beginning. Those that the room does not have are its `unknown`, unless it has their
        `done`.
        """
        self.forget()
        known = {name: seen for name, seen in after.items() if name in self._dialogues}
        unknown = {name: seen for name, seen in after.items() if name not in known and seen < AFTER_DONE}
        observer = Observer(self, unknown)
        is_after = False
        for name, dialogue in self._dialogues.items():
            is_after = is_after or name in known
            if is_after or not dialogue.is_over:
                observer.add(dialogue, known.get(name, 0))
        self._observers[observer] = None
        return observer

    def watch(self) -> MirrorObserver:
        """An observer of the mirror, from the oldest turn that it keeps."""
        observer = MirrorObserver(self)
        self._observers[observer] = None
        return observer

    def leave(self, observer: Observer) -> None:
        """Send it no new dialogues."""
        self._observers.pop(observer, None)

    async def wait_news(self) -> None:
        """Wait until anything changes."""
        await self._news.wait()

    def wake(self) -> None:
        """Wake every observer that waits."""
        self._news.set()
        self._news = trio.Event()


class Observer:
    """One observer's positions. `unknown` are dialogues that it asked for and that the room has forgotten, with the
    last sequence that it has of each."""

    def __init__(self, room: Room, unknown: Mapping[str, int]) -> None:
        self.unknown = unknown
        self._room = room
        self._positions: dict[Dialogue, int] = {}
        self._is_detached = False
        self._is_ending = False

    def add(self, dialogue: Dialogue, seen: int = 0) -> None:
        """One more dialogue to read, behind this sequence."""
        # Open dialogues do not count: no reader could have finished them.
        if sum(each.is_over for each in self._positions) >= MAX_BEHIND:
            self._is_detached = True
            self._positions.clear()
        if not self._is_detached:
            self._positions[dialogue] = seen

    def leave(self) -> None:
        """Stop observing. Idempotent."""
        self._room.leave(self)

    def end(self) -> None:
        """Stop when the dialogues that are open now are read to their end."""
        self._is_ending = True
        self.leave()
        self._room.wake()

    async def next_batch(self) -> list[bytes]:
        """New events, at least one; none at the end. Raises `Detached` if the observer is too far behind."""
        await trio.lowlevel.checkpoint()
        while True:
            # No await between taking and returning: a cancellation would lose what was taken.
            batch = self._take()
            if self._is_detached:
                raise Detached(DetachReason.OVERFLOW)
            if batch or (self._is_ending and not self._positions):
                return batch
            await self._room.wait_news()

    def _take(self) -> list[bytes]:
        batch: list[bytes] = []
        for dialogue, seen in list(self._positions.items()):
            batch += dialogue.encoded[seen:]
            if dialogue.is_over:
                del self._positions[dialogue]
            else:
                self._positions[dialogue] = max(seen, len(dialogue.encoded))
        return batch


class MirrorObserver(Observer):
    """Reads the mirror in place of the dialogues. It misses what the mirror drops before it is taken."""

    def __init__(self, room: Room) -> None:
        super().__init__(room, {})
        self._watcher = room.mirror.join()

    def add(self, dialogue: Dialogue, seen: int = 0) -> None:
        """Its content is not for this observer."""

    def _take(self) -> list[bytes]:
        return [orjson.dumps(each) for each in self._watcher.take()]
