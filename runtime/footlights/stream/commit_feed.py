"""Commit feed: the commits that change the world, in their order, from the ledger and then live.

The idea: a follower is a position in the ledger, and nothing else. Each page is read from the ledger; at its end the
follower waits until something is committed, and reads again. So nothing can be missing or repeated between what is
stored and what is live, a slow follower needs no queue and delays nobody, and a follower of many commits holds one page
of them.

Rejected: a queue of live commits for each follower, which must be bounded, can overflow, and has to be joined with what
the ledger has.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.authority.patch import check_pointer
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights.authority.record import CommitRecord
    from footlights.stage.supervisor import Supervisor

PAGE = 64
GENESIS = "genesis"
"""Stands for the id of the commit before the first."""


class Bell:
    """Wakes all who wait for it."""

    def __init__(self) -> None:
        self._event = trio.Event()

    @property
    def next(self) -> trio.Event:
        """Set when it rings next."""
        return self._event

    def ring(self) -> None:
        self._event.set()
        self._event = trio.Event()


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

    def __init__(self, supervisor: Supervisor, settling: Bell, after: str | None, under: str) -> None:
        check_pointer(under)
        if after is not None and type(after) is not str:
            raise InvalidCommand("after must be the id of a commit.")
        self.cursor = after
        """The id of the last commit that was read, for `after`; `genesis` before the first commit of the ledger."""
        self.under = under
        self._supervisor = supervisor
        self._settling = settling
        self._position: int | None = None
        self._page: deque[CommitRecord] = deque()

    async def start(self) -> object:
        """Find the beginning, and return the world there, for a follower that begins now.

        Without this call, the feed begins when it is first read.
        """
        ledger = self._supervisor.ledger
        while True:
            rung, world = self._settling.next, self._supervisor.committed_world
            position = await ledger.position_of(None)
            assert position is not None
            last = await ledger.commits_from(position - 1, 1) if position else ()
            is_settled = not rung.is_set() and self._supervisor.commits_waiting == 0
            if is_settled or (last and last[0].world_after == world.digest()):
                # Else a commit is durable and not announced yet, or was announced meanwhile.
                self._position, self.cursor = position, last[0].commit_id if last else GENESIS
                return world.view()
            await rung.wait()

    def __aiter__(self) -> CommitFeed:
        return self

    async def __anext__(self) -> WorldCommit:
        await trio.lowlevel.checkpoint_if_cancelled()
        await self.begin()
        while True:
            while self._page:
                record = self._page.popleft()
                assert self._position is not None
                self._position += 1
                self.cursor = record.commit_id
                if (seen := seen_from(record, self.under)) is not None:
                    return seen
            await self._read()

    async def begin(self) -> None:
        """Find the beginning, unless that is done. Raises what reading raises."""
        if self._position is not None:
            return
        if self.cursor is None:
            await self.start()
            return
        is_first = self.cursor == GENESIS
        self._position = 0 if is_first else await self._supervisor.ledger.position_of(self.cursor)
        if self._position is None:
            raise InvalidCommand("The ledger has no commit with that id. Begin anew, with the world as it is.")

    async def _read(self) -> None:
        assert self._position is not None
        while True:
            if self._supervisor.closed.is_set():
                raise StopAsyncIteration
            rung = self._settling.next
            self._page.extend(await self._supervisor.ledger.commits_from(self._position, PAGE))
            if self._page:
                return
            await rung.wait()


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
