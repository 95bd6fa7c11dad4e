"""Commit stream: the commits that change a part of the world, as Server-Sent Events, each with its cursor as the `id`.

Nothing is queued: the feed reads the ledger only when the commit before was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from footlights.authority.world import plain_view
from footlights_transports.http.sse import SseResponse
from footlights_transports.views.native.protocol import told_json, write_feed_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.access.followed_commits import FollowedCommits


class CommitStream(SseResponse):
    """The response. `failed` is called with what ends it early."""

    def __init__(self, followed: FollowedCommits, failed: Callable[[BaseException], None], keep_alive: float) -> None:
        super().__init__(keep_alive)
        self._followed = followed
        self._failed = failed
        self._is_over = False

    @property
    def is_drained(self) -> bool:
        """Always: a client resumes from the ledger after the last commit that it has."""
        return True

    def opening(self) -> bytes:
        """The first id, so that a client whose connection is cut before the first commit can resume.

        With it comes what the user sees there, if the feed begins now.
        """
        cursor, shown = self._followed.cursor.encode(), self._followed.shown
        if shown is None:
            return b"id: %b\n\n" % cursor
        world = orjson.dumps({"world": shown[0]} if shown else {}, default=plain_view)
        return b"event: world\nid: %b\ndata: %b\n\n" % (cursor, world)

    async def next_text(self) -> bytes | None:
        if self._is_over:
            return None
        try:
            told = await anext(self._followed, None)
            if told is None:
                return None
            return b"id: %b\ndata: %b\n\n" % (told[0].encode(), orjson.dumps(told_json(told)))
        except Exception as error:  # noqa: BLE001 - a boundary: `visibility` is code of the host
            self._is_over = True
            self._failed(error)
            return b"event: detached\ndata: %b\n\n" % write_feed_end(error)
