"""Past worlds: some earlier worlds of a stage, from which those between them are made again.

A user who returns is shown what changed since, and for that the world as it was when he left. Feeds of users note the
worlds that they pass, so whoever was following a short time ago finds one a few commits before. Worlds share what did
not change, and of these at most `KEPT` are kept. Where nobody follows, nothing is kept.
"""

from __future__ import annotations

from bisect import bisect
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from footlights.authority.patch import PatchFailed
from footlights.errors import InvalidCommand, TooLarge
from footlights.stream.ledger_tail import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from footlights.authority.ledger.protocol import Ledger
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

_T = TypeVar("_T")

REACH = 4_096
"""The most commits that a user may be behind: so many are judged by his sight at once."""
KEPT = REACH // PAGE


class PastWorlds:
    def __init__(self, ledger: Ledger, genesis: World | None) -> None:
        self._ledger = ledger
        self._kept: list[tuple[int, World]] = [] if genesis is None else [(0, genesis)]
        self._limiter = trio.CapacityLimiter(1)

    def note(self, position: int, world: World) -> None:
        """This is the world after the commit at this position."""
        at = bisect(self._kept, position, key=_position)
        if at and position - self._kept[at - 1][0] < PAGE:
            return
        self._kept.insert(at, (position, world))
        if len(self._kept) > KEPT:
            del self._kept[0]

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Do what makes worlds or shows them, one at a time. A thread whose caller is cancelled is left alone."""
        return await trio.to_thread.run_sync(
            work, abandon_on_cancel=True, limiter=self._limiter, thread_name="footlights sight"
        )

    async def at(self, position: int) -> World:
        """The world after the commit at this position. Raises `InvalidCommand` if it is not known any more."""
        before = bisect(self._kept, position, key=_position)
        made, world = self._kept[before - 1] if before else (-REACH, None)
        if world is None or position - made > REACH:
            raise too_far_behind()
        while made < position:
            records = await self._ledger.commits_from(made, min(PAGE, position - made))
            if not records:
                raise too_far_behind()
            world = await self.in_thread(partial(_after, world, records))
            made += len(records)
        return world


def after(world: World, record: CommitRecord) -> World:
    """The world after this commit. Raises `InvalidCommand` if it was not made in this one."""
    if not record.changes:
        return world
    with suppress(PatchFailed, TooLarge):
        world = world.changed(record.changes)
        if world.digest() == record.world_after:
            return world
    raise too_far_behind()  # the ledger began anew in between


def _after(world: World, records: Iterable[CommitRecord]) -> World:
    for record in records:
        world = after(world, record)
    return world


def _position(noted: tuple[int, World]) -> int:
    return noted[0]


def too_far_behind() -> InvalidCommand:
    return InvalidCommand("That is too long ago. Begin anew, with the world as it is.")
