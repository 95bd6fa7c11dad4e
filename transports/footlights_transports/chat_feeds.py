"""The chat feeds of a server: one for each session whose chat somebody reads, and no more than there is room for.

A feed begins when it is first read, with the turns that are open then; there is no history to make again. It follows
the session as any subscriber does, in a task of its own. It ends with the session, when nobody has read it for a while,
when there are too many, or when anything about it fails. That is never told to anybody, and harms nothing.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError, LedgerUnavailable
from footlights.events import CommitFinal
from footlights.failures import describe
from footlights_transports.dialects.chat_feed import ChatFeed, player_said, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession, Ledger, StreamEvent
    from footlights.authority import Artifact
    from footlights_transports.dialects.chat_feed import ChatMessage

MAX_FEEDS = 100
"""The one that was not read for longest goes."""
UNREAD_SECONDS = 600.0
"""A feed that nobody has read for so long is gone. So a feed keeps no session open that nobody uses."""

log = logging.getLogger("footlights.chat")


class _Open:
    """A feed, and the task that fills it."""

    def __init__(self) -> None:
        self.feed = ChatFeed()
        self.words: dict[str, ChatMessage] = {}
        """What players said, until the turn that it began is told of."""
        self.read_at = trio.current_time()
        self.caught_up = trio.Event()
        self.scope = trio.CancelScope()


class ChatFeeds:
    """The feeds of one stage. `keep` runs as long as there are any."""

    def __init__(
        self, ledger: Ledger, *, max_feeds: int = MAX_FEEDS, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._ledger = ledger
        self._max_feeds = max_feeds
        self._wall_clock = wall_clock
        self._open: OrderedDict[str, _Open] = OrderedDict()
        """By session, the one that was read last at the end."""
        self._nursery: trio.Nursery | None = None

    async def keep(self) -> None:
        """Fill feeds until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # before it is closed: nobody may find one that takes no task

    async def read(self, session: InteractionSession) -> tuple[ChatMessage, ...]:
        """The chat of this session, from when it was first read on."""
        opened = self._opened(session)
        if opened is None:
            await trio.lowlevel.checkpoint()
            return ()
        await opened.caught_up.wait()
        return opened.feed.messages

    def drop(self, session_id: str) -> None:
        """Forget the chat of this session, as far as it has come."""
        if session_id in self._open:
            self._open[session_id].feed.drop()

    def feed(self, session_id: str) -> ChatFeed | None:
        """The feed of this session, if there is one."""
        return self._open[session_id].feed if session_id in self._open else None

    def player_said(self, session_id: str, turn_id: str, words: str) -> None:
        """For a desk: somebody began this turn with these words, just now."""
        if session_id in self._open:
            self._open[session_id].words[turn_id] = player_said(words, self._wall_clock())

    # -- inside

    def _opened(self, session: InteractionSession) -> _Open | None:
        """Its feed, begun if it was not; None if the server is closing."""
        session_id = session.session_id
        if session_id not in self._open:
            if self._nursery is None:
                return None
            self._open[session_id] = opened = _Open()
            self._nursery.start_soon(self._fill, session, opened, name=f"chat of {session_id}")
            while len(self._open) > self._max_feeds:
                _, oldest = self._open.popitem(last=False)
                oldest.scope.cancel(reason="there are too many feeds")
        self._open.move_to_end(session_id)
        self._open[session_id].read_at = trio.current_time()
        return self._open[session_id]

    async def _fill(self, session: InteractionSession, opened: _Open) -> None:
        """The supervision boundary of a feed."""
        try:
            with opened.scope:
                await self._follow(session, opened)
        except FootlightsError:  # no place for it, or let go
            pass
        except Exception as error:  # noqa: BLE001 - whatever fails here is a feed, and nobody needs it
            log.error("a chat feed failed: %s", describe(error))
        finally:
            opened.caught_up.set()
            if self._open.get(session.session_id) is opened:
                del self._open[session.session_id]

    async def _follow(self, session: InteractionSession, opened: _Open) -> None:
        async with session.subscribe() as stream:
            while (patience := opened.read_at + UNREAD_SECONDS) > trio.current_time():
                if stream.is_empty:
                    opened.caught_up.set()
                batch: list[StreamEvent] | None = None
                with trio.move_on_at(patience):
                    batch = await stream.receive_batch()
                if batch == []:
                    return
                for event in batch or ():
                    words = opened.words.pop(event.turn_id, None)
                    opened.feed.append([] if words is None else [words])
                    opened.feed.append(told(event, self._wall_clock(), await self._artifacts(event)))

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        """What a commit left behind, as far as the ledger can be read."""
        if not isinstance(event.payload, CommitFinal) or not event.payload.artifact_refs:
            return ()
        try:
            record = await self._ledger.find(event.session_id, event.turn_id)
        except LedgerUnavailable:
            return ()
        return () if record is None else record.artifacts
