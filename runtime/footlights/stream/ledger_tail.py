"""Ledger tail: all commits in their order, first from the ledger and then live, in pages.

The idea: a follower is a position in the ledger, and nothing else. Each page is read from the ledger; at its end the
follower waits until something is committed, and reads again. So nothing can be missing or repeated between what is
stored and what is live, a slow follower needs no queue and delays nobody, and a follower of many commits holds one page
of them.

Rejected: a queue of live commits for each follower, which must be bounded, can overflow, and has to be joined with what
the ledger has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World
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


class LedgerTail:
    """Where one follower is in the ledger. Raises `InvalidCommand` for what cannot be the id of a commit."""

    def __init__(self, supervisor: Supervisor, settling: Bell, after: str | None) -> None:
        if after is not None and type(after) is not str:
            raise InvalidCommand("after must be the id of a commit.")
        self.cursor = after
        """The id of the last commit that was passed; `GENESIS` before the first."""
        self.position: int | None = None
        """Its position; None before the beginning is found."""
        self._ledger = supervisor.ledger
        self._supervisor = supervisor
        self._settling = settling

    async def start(self) -> World:
        """Begin now, and return the world of now."""
        while True:
            rung, world = self._settling.next, self._supervisor.committed_world
            position = await self._ledger.position_of(None)
            assert position is not None
            last = await self._ledger.commits_from(position - 1, 1) if position else ()
            is_settled = not rung.is_set() and self._supervisor.commits_waiting == 0
            if is_settled or (last and last[0].world_after == world.digest()):
                # Else a commit is durable and not announced yet, or was announced meanwhile.
                self.position, self.cursor = position, last[0].commit_id if last else GENESIS
                return world
            await rung.wait()

    async def begin(self) -> World | None:
        """Find the beginning, unless that is done. The world of now if it is now."""
        if self.position is not None:
            return None
        if self.cursor is None:
            return await self.start()
        self.position = 0 if self.cursor == GENESIS else await self._ledger.position_of(self.cursor)
        if self.position is None:
            raise InvalidCommand("The ledger has no commit with that id. Begin anew, with the world as it is.")
        return None

    async def read(self) -> Sequence[CommitRecord]:
        """The next commits, waiting for them if necessary. Raises `StopAsyncIteration` when the stage has closed."""
        assert self.position is not None
        while True:
            if self._supervisor.closed.is_set():
                raise StopAsyncIteration
            rung = self._settling.next
            if page := await self._ledger.commits_from(self.position, PAGE):
                return page
            await rung.wait()

    async def behind(self) -> int:
        """How many commits follow the last one that was passed."""
        assert self.position is not None
        return (await self._ledger.position_of(None) or 0) - self.position

    @property
    def world(self) -> World:
        """The world as it was committed last."""
        return self._supervisor.committed_world

    def passed(self, record: CommitRecord) -> None:
        """The follower has taken the next commit, which is this one."""
        assert self.position is not None
        self.position += 1
        self.cursor = record.commit_id
