"""Followed commits: the feed of commits of one user of a server, with the positions that he may know.

Operators, game servers and, where there are no tokens, everybody get whole commits, each with its id; before each, they
must still see that part of the world. All others get what they see change, and sealed cursors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.stream.commit_feed import CommitFeed, WorldCommit
    from footlights.stream.user_feed import SeenChanges, UserFeed

Told: TypeAlias = "tuple[str, WorldCommit | SeenChanges]"


class FollowedCommits:
    """A feed that has begun. Iterating gives each commit with the cursor after it, until the stage has closed."""

    def __init__(
        self,
        feed: CommitFeed | UserFeed,
        shown: tuple[Any, ...] | None,
        *,
        check: Callable[[], None] = lambda: None,
        seal: Callable[[str], str] = str,
    ) -> None:
        self.shown = shown
        """What the user sees where the feed begins: one item, or none. None if it goes on after a cursor."""
        self._feed = feed
        self._check = check
        self._seal = seal

    @property
    def cursor(self) -> str:
        """The position after the last commit that was read."""
        return self._seal(self._feed.cursor or "")

    def __aiter__(self) -> FollowedCommits:
        return self

    async def __anext__(self) -> Told:
        commit: WorldCommit | SeenChanges = await anext(self._feed)
        self._check()
        return self.cursor, commit
