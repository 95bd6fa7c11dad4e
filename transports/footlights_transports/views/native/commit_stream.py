"""Commit stream: the commits that change a part of the world, as Server-Sent Events, each with its id as the `id`.

Before each commit is sent, its user must still see that part of the world. Nothing is queued: the feed reads the
ledger only when the commit before was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from footlights.errors import FootlightsError
from footlights_transports.http.sse import SseResponse
from footlights_transports.views.native.protocol import world_commit_json, write_notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.stream.commit_feed import CommitFeed


class CommitStream(SseResponse):
    """The response. Its feed has begun; `check` raises when the user may not go on."""

    def __init__(self, feed: CommitFeed, check: Callable[[], None], keep_alive: float) -> None:
        super().__init__(keep_alive)
        self._feed = feed
        self._check = check
        self._is_over = False

    @property
    def is_drained(self) -> bool:
        """Always: a client resumes from the ledger after the last commit that it has."""
        return True

    def opening(self) -> bytes:
        """An id without an event, so that a client whose connection is cut before the first commit can resume."""
        return b"id: %b\n\n" % (self._feed.cursor or "").encode()

    async def next_text(self) -> bytes | None:
        if self._is_over:
            return None
        try:
            commit = await anext(self._feed, None)
            if commit is None:
                return None
            self._check()
        except FootlightsError as error:
            self._is_over = True
            return b"event: detached\ndata: %b\n\n" % write_notice("detached", None, error.code)
        return b"id: %b\ndata: %b\n\n" % (commit.commit_id.encode(), orjson.dumps(world_commit_json(commit)))
