"""Commit feed: the commits that change the world, in their order, from the ledger and then live.

It shows whole commits, so it is for the host, and for those whom the host trusts with all of them. `UserFeed` is for
users from whom something is hidden.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.authority.patch import check_pointer

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights.authority.record import CommitRecord
    from footlights.stream.ledger_tail import LedgerTail


@frozen(kw_only=True)
class WorldCommit:
    """A commit, and how it changed the part of the world that is followed."""

    commit_id: str
    session_id: str
    """The session of its turn; `@host` for a commit of the host, `@operator` for a patch of an operator."""
    turn_id: str
    why: str | None
    """The host's own words, for a commit of the host."""
    changes: tuple[PatchOp, ...] | None
    """The changes, in order. None if one of them reaches into this part from outside: then read it anew."""


class CommitFeed:
    """Made by `stage.commits`, for one task. It ends when the stage has closed.

    Reading raises `LedgerUnavailable` if the ledger cannot be read now; nothing is lost, and it may be read again. It
    raises `InvalidCommand` if the ledger does not have the commit to begin after, or has forgotten what follows it.
    """

    def __init__(self, tail: LedgerTail, under: str) -> None:
        check_pointer(under)
        self.under = under
        self._tail = tail
        self._page: deque[CommitRecord] = deque()

    @property
    def cursor(self) -> str | None:
        """The id of the last commit that was read, for `after`; `genesis` before the first commit of the ledger."""
        return self._tail.cursor

    async def start(self) -> object:
        """Find the beginning, and return the world there, for a follower that begins now.

        Without this call, the feed begins when it is first read.
        """
        return (await self._tail.start()).view()

    async def begin(self) -> None:
        """Find the beginning, unless that is done. Raises what reading raises."""
        await self._tail.begin()

    def __aiter__(self) -> CommitFeed:
        return self

    async def __anext__(self) -> WorldCommit:
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._tail.begin()
        while True:
            while self._page:
                record = self._page.popleft()
                self._tail.passed(record)
                if (seen := seen_from(record, self.under)) is not None:
                    return seen
            self._page.extend(await self._tail.read())


def seen_from(record: CommitRecord, under: str) -> WorldCommit | None:
    """The commit as a follower of this part of the world sees it; None if it does not concern that part."""
    inside: list[PatchOp] = []
    is_known = True
    for change in record.changes:
        if change.op == "test":
            continue
        paths = [change.path] if change.from_ is None else [change.path, change.from_]
        if all(_contains(under, path) for path in paths):
            inside.append(change)
        elif any(_contains(under, path) or _contains(path, under) or _may_shift(path, under) for path in paths):
            is_known = False
    if is_known and not inside:
        return None
    return WorldCommit(
        commit_id=record.commit_id,
        session_id=record.session_id,
        turn_id=record.turn_id,
        why=record.why,
        changes=tuple(inside) if is_known else None,
    )


def _may_shift(path: str, under: str) -> bool:
    """Whether an item that is put in or taken out here may move this part to another index."""
    parent, _, token = path.rpartition("/")
    return (token == "-" or token.isdigit()) and under.startswith(f"{parent}/")


def _contains(pointer: str, path: str) -> bool:
    return path == pointer or path.startswith(f"{pointer}/")
