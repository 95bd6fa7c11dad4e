"""PolledFeed: a feed of commits that is read on the thread of the stage and polled on another.

At most `PAGE` commits wait between the threads; the rest stays in the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights.errors import FootlightsError
from footlights.stream.commit_feed import WorldCommit
from footlights.stream.ledger_tail import PAGE
from footlights_transports.embed.polled import Polled

if TYPE_CHECKING:
    import trio

    from footlights.stream.commit_feed import CommitFeed
    from footlights_transports.embed.trio_thread import TrioThread


class PolledFeed(Polled[WorldCommit]):
    """The commits that change the world, polled by one thread. Made by `StageThread.commits`.

    It ends when the stage closes; what was not polled then is in the ledger, after `cursor`. `poll` raises what reading
    a `CommitFeed` raises.
    """

    world: Any
    """A copy of the world where the feed begins, if it begins now; else None."""
    cursor: str | None
    """The id of the last commit that was polled, for `commits(after=...)`, or of the one before the first."""

    def __init__(self, thread: TrioThread[Any], feed: CommitFeed) -> None:
        super().__init__(thread, PAGE)
        self._feed = feed
        self._is_lifted = False
        self.world = None
        self.cursor = feed.cursor

    def _note(self, item: WorldCommit) -> None:
        self.cursor = item.commit_id

    def lift(self) -> None:
        """Wait for no room any more, because the stage is about to close."""
        self._is_lifted = True
        if self._room is not None:
            self._scope.cancel()

    async def _read(self, task_status: trio.TaskStatus[None]) -> None:
        if self._feed.cursor is None:
            self.world = await self._feed.start()
            self.cursor = self._feed.cursor
        await self._feed.begin()
        self._started(task_status)
        try:
            async for commit in self._feed:
                self._put((commit,))
                if self._is_full:
                    if self._is_lifted:
                        return
                    await self._wait_for_room()
        except FootlightsError as error:
            if self._is_lifted:  # the stage has closed, and its ledger: this is the end
                return
            caught = error
            self._error = lambda: caught
