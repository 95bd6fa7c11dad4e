"""Chat feeds of a server: at most one for each session, and a limited number.

A feed begins with the first turn of its session, or when it is read before. Until somebody reads it, it is only the
player's words: then a task of its own follows the session as an observer, from the turns on that the stage has still in
memory. The feed ends with its session, when it is dropped, when it is not read any more, when there are too many feeds,
or when it fails. Its end is silent and harms nothing. A feed that begins anew has no earlier history.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.ids import in_order, owner_of
from footlights.session.core import SessionState
from footlights_transports.commit_artifacts import commit_artifacts
from footlights_transports.server.incidents import Incidents
from footlights_transports.views.chat_feed.pure.feed import ChatFeed, player_said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from footlights import InteractionSession, Ledger, StreamEvent
    from footlights.authority import Artifact
    from footlights_transports.views.chat_feed.pure.feed import ChatMessage

    ArtifactsOf = Callable[[StreamEvent], Awaitable[tuple[Artifact, ...]]]

MAX_FEEDS = 100
"""At the limit the user with the most feeds loses the least recently begun or read one."""
UNREAD_SECONDS = 600.0
"""A feed that was read ends when it was not read again for so long."""
SWEEP = 5.0
"""Seconds between two sweeps, which drop feeds of ended sessions that nobody has read."""
LOOK_UP_SECONDS = 5.0
"""Timeout of a feed's wait for the artifacts of a commit from the ledger."""
MAX_WORDS = 50
"""Turns for which a feed keeps the player's words until their first event."""
MAX_WORD_CHARS = 200_000
"""Of all these words together."""


class OpenFeed:
    """A feed, and the scope of the task that fills it. It begins with the turn `since`, or with those that are open."""

    def __init__(self, session: InteractionSession, feed_id: int = 0, since: str | None = None) -> None:
        self.session = session
        self.feed_id = feed_id
        """Another for each feed of a session."""
        self.feed = ChatFeed()
        self.caught_up = trio.Event()
        self.scope = trio.CancelScope()
        self.is_read = False
        """Whether a task fills it."""
        self.is_over = False
        self._since = since
        self._words: OrderedDict[str, ChatMessage] = OrderedDict()
        self._news = trio.Event()

    async def fill(self, wall_clock: Callable[[], float], artifacts_of: ArtifactsOf) -> None:
        """Follow the session until it ends."""
        after = None if self._since is None else dict[str, int]()
        async with self.session.subscribe(after, observer=True) as stream:
            history: list[StreamEvent] = []
            while not stream.is_empty and (batch := await stream.receive_batch()):
                history += batch
            # Of turns that are kept, each is in order, and they are not in order of each other.
            history.sort(key=lambda event: (event.mono_ts_ms, in_order(event.turn_id)))
            await self._take(history, wall_clock, artifacts_of)
            self.caught_up.set()
            while batch := await stream.receive_batch():
                await self._take(batch, wall_clock, artifacts_of)

    async def _take(
        self, events: Iterable[StreamEvent], wall_clock: Callable[[], float], artifacts_of: ArtifactsOf
    ) -> None:
        for event in events:
            if self._since is None or in_order(event.turn_id) >= in_order(self._since):
                self.feed.append(self.words_of(event.turn_id))
                self.feed.take(event, wall_clock(), await artifacts_of(event))
                self._tell()

    async def wait_beyond(self, count: int) -> None:
        """Return when the feed has had more messages than this, or is over."""
        while self.feed.count <= count and not self.is_over:
            await self._news.wait()

    def finish(self) -> None:
        """No more messages come."""
        self.is_over = True
        self.caught_up.set()
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

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
        self.finish()


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
        """By session id, the most recently begun or read at the end."""
        self._begun = int(wall_clock() * 1_000)
        """The id of the newest feed: greater than any of an earlier process."""
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fill feeds until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                while True:
                    await trio.sleep(SWEEP)
                    self._sweep()
            finally:
                self._nursery = None  # before it is closed: a closed nursery takes no task
                for session_id in list(self._open):
                    self.drop(session_id)

    async def read(self, session: InteractionSession, own_limit: int = MAX_FEEDS) -> tuple[ChatMessage, ...]:
        """The messages of this session since its feed began. `own_limit` is the number of feeds of its user."""
        opened = self.open(session, own_limit)
        if opened is None:
            await trio.lowlevel.checkpoint()
            return ()
        await opened.caught_up.wait()
        return opened.feed.messages

    def attend(self, opened: OpenFeed) -> None:
        """A reader is there: the feed goes on."""
        opened.scope.deadline = trio.current_time() + UNREAD_SECONDS
        if self._open.get(opened.session.session_id) is opened:
            self._open.move_to_end(opened.session.session_id)

    def drop(self, session_id: str) -> None:
        """Forget the messages of this session, and end its feed."""
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.end("it was dropped")

    def feed(self, session_id: str) -> ChatFeed | None:
        """The feed of this session, if there is one."""
        return self._open[session_id].feed if session_id in self._open else None

    def player_said(self, session: InteractionSession, turn_id: str, words: str) -> None:
        """A listener for begun turns: keeps the player's words for the feed of the session, which begins here."""
        opened = self._open.get(session.session_id)
        if opened is None or opened.session != session:
            if self._nursery is None:
                return
            opened = self._begin(session, since=turn_id)
            self._make_room()
        opened.keep_words(turn_id, player_said(words, self._wall_clock()))

    def open(self, session: InteractionSession, own_limit: int = MAX_FEEDS) -> OpenFeed | None:
        """The feed of a session, which is filled from now on; None if the server shuts down."""
        opened = self._open.get(session.session_id)
        if opened is None or opened.session != session:
            # An earlier session may have had the same id.
            opened = None if self._nursery is None else self._begin(session)
        if opened is None or self._nursery is None:
            return opened
        if not opened.is_read:
            opened.is_read, opened.session = True, session  # as its reader may see it
            self._nursery.start_soon(self._fill, opened, name=f"chat of {session.session_id}")
        self.attend(opened)
        own = [each for each in self._open if owner_of(each) == owner_of(session.session_id)]
        for each in own[:-own_limit]:
            self._open.pop(each).end("its user has too many feeds")
        self._make_room()
        return opened

    def _begin(self, session: InteractionSession, since: str | None = None) -> OpenFeed:
        self.drop(session.session_id)
        self._begun += 1
        opened = self._open[session.session_id] = OpenFeed(session, self._begun, since)
        return opened

    def _sweep(self) -> None:
        for session_id, opened in list(self._open.items()):
            if not opened.is_read and opened.session.state is not SessionState.OPEN:
                self.drop(session_id)

    def _make_room(self) -> None:
        while len(self._open) > self._max_feeds:
            oldest = eviction_candidate(dict.fromkeys(self._open, 1), owner_of)
            self._open.pop(oldest).end("there are too many feeds")

    async def _fill(self, opened: OpenFeed) -> None:
        """The supervision boundary of a feed."""
        try:
            with contained(self._fail), opened.scope:
                await opened.fill(self._wall_clock, self._artifacts)
        finally:
            opened.finish()
            if self._open.get(opened.session.session_id) is opened:
                del self._open[opened.session.session_id]

    def _fail(self, error: BaseException) -> None:
        """Count a failure of a feed, unless the session only has no place for it or detached it."""
        if not isinstance(error, FootlightsError):
            self._incidents.failed("chat_feed", error)

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        return await commit_artifacts(event, self._ledger, LOOK_UP_SECONDS)
