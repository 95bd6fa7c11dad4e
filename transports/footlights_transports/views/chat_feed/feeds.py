"""The chat feeds of a server: one for each session whose chat somebody reads, and no more than there is room for.

A feed begins when it is first read, with the turns that are open then; there is no history to make again. It follows
the session as an observer, in a task of its own. It ends with the session, when it is dropped, when nobody has read it
for a while, when there are too many, or when anything about it fails. That is never told to anybody, and harms nothing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from footlights.authority.pending import owner_of
from footlights.errors import FootlightsError, LedgerUnavailable
from footlights.events import CommitFinal
from footlights.fair_share import first_of_the_heaviest
from footlights_transports.server.incidents import Incidents
from footlights_transports.views.chat_feed.pure.feed import ChatFeed, player_said, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession, Ledger, StreamEvent
    from footlights.authority import Artifact, CommitRecord
    from footlights_transports.views.chat_feed.pure.feed import ChatMessage

MAX_FEEDS = 100
"""Of the user who has most, the one that was not read for longest goes."""
UNREAD_SECONDS = 600.0
"""A feed that nobody has read for so long is gone."""
LOOK_UP_SECONDS = 5.0
"""How long a feed waits for the ledger to say what a commit left behind; then it tells the rest."""
MAX_WORDS = 50
"""Of how many turns that are not told of yet it keeps what players said."""
MAX_WORD_CHARS = 200_000
"""Of them together."""


class OpenFeed:
    """A feed, and the task that fills it."""

    def __init__(self, session: InteractionSession) -> None:
        self.session = session
        self.feed = ChatFeed()
        self.caught_up = trio.Event()
        self.scope = trio.CancelScope()
        self._words: OrderedDict[str, ChatMessage] = OrderedDict()
        self.read()

    def read(self) -> None:
        """Somebody reads it now."""
        self.scope.deadline = trio.current_time() + UNREAD_SECONDS

    def keep_words(self, turn_id: str, words: ChatMessage) -> None:
        """What a player said, until the turn that it began is told of."""
        self._words[turn_id] = words
        while len(self._words) > MAX_WORDS or sum(len(each.content) for each in self._words.values()) > MAX_WORD_CHARS:
            self._words.popitem(last=False)

    def words_of(self, turn_id: str) -> list[ChatMessage]:
        words = self._words.pop(turn_id, None)
        return [] if words is None else [words]

    def end(self, reason: str) -> None:
        """Forget everything, and fill it no more."""
        self.feed.drop()
        self._words.clear()
        self.scope.cancel(reason=reason)


class ChatFeeds:
    """The feeds of one stage. `keep` runs as long as there are any."""

    def __init__(
        self,
        ledger: Ledger,
        incidents: Incidents | None = None,
        *,
        max_feeds: int = MAX_FEEDS,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._incidents = incidents or Incidents()
        self._max_feeds = max_feeds
        self._wall_clock = wall_clock
        self._open: OrderedDict[str, OpenFeed] = OrderedDict()
        """By session, the one that was read last at the end."""
        self._nursery: trio.Nursery | None = None

    async def keep(self) -> None:
        """Fill feeds until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # before it is closed: nobody may find one that takes no task

    async def read(self, session: InteractionSession, own_limit: int = MAX_FEEDS) -> tuple[ChatMessage, ...]:
        """The chat of this session, from when it was first read on. Its user may have so many at once."""
        opened = self._opened(session, own_limit)
        if opened is None:
            await trio.lowlevel.checkpoint()
            return ()
        await opened.caught_up.wait()
        return opened.feed.messages

    def drop(self, session_id: str) -> None:
        """Forget the chat of this session, and end its feed."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.end("it was dropped")

    def feed(self, session_id: str) -> ChatFeed | None:
        """The feed of this session, if there is one."""
        return self._open[session_id].feed if session_id in self._open else None

    def player_said(self, session_id: str, turn_id: str, words: str) -> None:
        """For a access: somebody began this turn with these words, just now."""
        if session_id in self._open:
            self._open[session_id].keep_words(turn_id, player_said(words, self._wall_clock()))

    # -- inside

    def _opened(self, session: InteractionSession, own_limit: int) -> OpenFeed | None:
        """Its feed, begun if it was not; None if the server is closing."""
        session_id = session.session_id
        opened = self._open.get(session_id)
        if opened is not None and opened.session != session:
            # Another session had the name before: its chat is not this one's.
            self.drop(session_id)
            opened = None
        if opened is None:
            if self._nursery is None:
                return None
            self._open[session_id] = opened = OpenFeed(session)
            self._nursery.start_soon(self._fill, opened, name=f"chat of {session_id}")
            self._make_room(owner_of(session_id), own_limit)
        self._open.move_to_end(session_id)
        opened.read()
        return opened

    def _make_room(self, owner: str, own_limit: int) -> None:
        own = [each for each in self._open if owner_of(each) == owner]
        for each in own[:-own_limit]:
            self._open.pop(each).end("its user has too many feeds")
        while len(self._open) > self._max_feeds:
            going = first_of_the_heaviest(dict.fromkeys(self._open, 1), owner_of)
            self._open.pop(going).end("there are too many feeds")

    async def _fill(self, opened: OpenFeed) -> None:
        """The supervision boundary of a feed."""
        try:
            with opened.scope:
                await self._follow(opened)
        except FootlightsError:  # no place for it, or let go
            pass
        except Exception as error:  # noqa: BLE001 - whatever fails here is a feed, and nobody needs it
            self._incidents.failed("chat_feed", error)
        finally:
            opened.caught_up.set()
            if self._open.get(opened.session.session_id) is opened:
                del self._open[opened.session.session_id]

    async def _follow(self, opened: OpenFeed) -> None:
        async with opened.session.subscribe(observer=True) as stream:
            while True:
                if stream.is_empty:
                    opened.caught_up.set()
                batch = await stream.receive_batch()
                if not batch:
                    return
                for event in batch:
                    opened.feed.append(opened.words_of(event.turn_id))
                    opened.feed.append(told(event, self._wall_clock(), await self._artifacts(event)))

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        """What a commit left behind, as far as the ledger can be read, and soon."""
        if not isinstance(event.payload, CommitFinal) or not event.payload.artifact_refs:
            return ()
        record: CommitRecord | None = None
        with suppress(LedgerUnavailable), trio.move_on_after(LOOK_UP_SECONDS):
            record = await self._ledger.find(event.session_id, event.turn_id)
        return () if record is None else record.artifacts
