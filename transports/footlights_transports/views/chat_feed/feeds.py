"""Chat feeds of a server: at most one for each session, and a limited number.

A feed begins when it is first read, with the turns that are open then; it has no earlier history. A task of its own
follows the session as an observer. The feed ends with its session, when it is dropped, when it was not read for a
while, when there are too many feeds, or when it fails. Its end is silent and harms nothing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.ids import owner_of
from footlights_transports.commit_artifacts import commit_artifacts
from footlights_transports.server.incidents import Incidents
from footlights_transports.views.chat_feed.pure.feed import ChatFeed, messages_of, player_said

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession, Ledger, StreamEvent
    from footlights.authority import Artifact
    from footlights_transports.views.chat_feed.pure.feed import ChatMessage

MAX_FEEDS = 100
"""At the limit the user with the most feeds loses the least recently read one."""
UNREAD_SECONDS = 600.0
"""A feed ends when it was not read for so long."""
LOOK_UP_SECONDS = 5.0
"""Timeout of a feed's wait for the artifacts of a commit from the ledger."""
MAX_WORDS = 50
"""Turns for which a feed keeps the player's words until their first event."""
MAX_WORD_CHARS = 200_000
"""Of all these words together."""


class OpenFeed:
    """A feed, and the scope of the task that fills it."""

    def __init__(self, session: InteractionSession) -> None:
        self.session = session
        self.feed = ChatFeed()
        self.caught_up = trio.Event()
        self.scope = trio.CancelScope()
        self._words: OrderedDict[str, ChatMessage] = OrderedDict()

    def keep_words(self, turn_id: str, words: ChatMessage) -> None:
        """Keep the player's words until the first event of the turn."""
        self._words[turn_id] = words
        while len(self._words) > MAX_WORDS or sum(len(each.content) for each in self._words.values()) > MAX_WORD_CHARS:
            self._words.popitem(last=False)

    def words_of(self, turn_id: str) -> list[ChatMessage]:
        words = self._words.pop(turn_id, None)
        return [] if words is None else [words]

    def end(self, reason: str) -> None:
        """Forget everything, and stop the task."""
        self.feed.drop()
        self._words.clear()
        self.scope.cancel(reason=reason)


class ChatFeeds:
    """The feeds of one server. Needs the task `keep`."""

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
        """By session id, the most recently read at the end."""
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fill feeds until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None  # before it is closed: a closed nursery takes no task

    async def read(self, session: InteractionSession, own_limit: int = MAX_FEEDS) -> tuple[ChatMessage, ...]:
        """The messages of this session since its feed began. `own_limit` is the number of feeds of its user."""
        opened = self._opened(session, own_limit)
        if opened is None:
            await trio.lowlevel.checkpoint()
            return ()
        await opened.caught_up.wait()
        return opened.feed.messages

    def drop(self, session_id: str) -> None:
        """Forget the messages of this session, and end its feed."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.end("it was dropped")

    def feed(self, session_id: str) -> ChatFeed | None:
        """The feed of this session, if there is one."""
        return self._open[session_id].feed if session_id in self._open else None

    def player_said(self, session_id: str, turn_id: str, words: str) -> None:
        """A listener for begun turns: keeps the player's words for the feed of the session."""
        if session_id in self._open:
            self._open[session_id].keep_words(turn_id, player_said(words, self._wall_clock()))

    def _opened(self, session: InteractionSession, own_limit: int) -> OpenFeed | None:
        """The feed of a session, a new one if there is none; None if the server shuts down."""
        session_id = session.session_id
        opened = self._open.get(session_id)
        if opened is not None and opened.session != session:
            # An earlier session had the same id.
            self.drop(session_id)
            opened = None
        if opened is None:
            if self._nursery is None:
                return None
            self._open[session_id] = opened = OpenFeed(session)
            self._nursery.start_soon(self._fill, opened, name=f"chat of {session_id}")
            self._make_room(owner_of(session_id), own_limit)
        self._open.move_to_end(session_id)
        opened.scope.deadline = trio.current_time() + UNREAD_SECONDS
        return opened

    def _make_room(self, owner: str, own_limit: int) -> None:
        own = [each for each in self._open if owner_of(each) == owner]
        for each in own[:-own_limit]:
            self._open.pop(each).end("its user has too many feeds")
        while len(self._open) > self._max_feeds:
            oldest = eviction_candidate(dict.fromkeys(self._open, 1), owner_of)
            self._open.pop(oldest).end("there are too many feeds")

    async def _fill(self, opened: OpenFeed) -> None:
        """The supervision boundary of a feed."""
        try:
            with contained(self._fail), opened.scope:
                await self._follow(opened)
        finally:
            opened.caught_up.set()
            if self._open.get(opened.session.session_id) is opened:
                del self._open[opened.session.session_id]

    def _fail(self, error: BaseException) -> None:
        """Count a failure of a feed, unless the session only has no place for it or detached it."""
        if not isinstance(error, FootlightsError):
            self._incidents.failed("chat_feed", error)

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
                    opened.feed.append(messages_of(event, self._wall_clock(), await self._artifacts(event)))

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        return await commit_artifacts(event, self._ledger, LOOK_UP_SECONDS)
