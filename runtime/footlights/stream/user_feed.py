"""User feed: what one user sees change, commit by commit, from the ledger and then live.

The idea: the cast's `visibility` is asked about the world before and after each commit, and the user gets the
difference between its two answers. So a removal is told only if he saw what was removed, and an addition only if he
sees what was added, at that commit and not by the rules of today. A commit that changes nothing for him is passed in
silence. One that changes his sight, because he went through a door, shows what he sees now. Applied in order to what he
saw where the feed began, the changes give what he sees where it ends, by construction.

Rejected: to filter the changes of a commit by their paths. A path does not say what the user may see of the value, a
move joins two places of which he may see one, and sight itself changes by commits.

Worlds are made, shown and compared in a thread, one page at a time and one feed at a time, because `visibility` is code
of the game. When the feed is cancelled, such a thread is left alone; what it finds is not used.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import frozen

from footlights.authority import patch
from footlights.authority.difference import difference
from footlights.authority.world import find_in
from footlights.authority.world_part import MAX_PART_BYTES, check_size
from footlights.ids import owner_of
from footlights.stream.ledger_tail import PAGE
from footlights.stream.past_worlds import REACH, after, too_far_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from footlights.authority.patch import PatchOp
    from footlights.authority.record import CommitRecord
    from footlights.authority.visibility import User
    from footlights.authority.world import World
    from footlights.stream.ledger_tail import LedgerTail
    from footlights.stream.past_worlds import PastWorlds


@frozen(kw_only=True)
class SeenChanges:
    """What one commit changed for the user."""

    session_id: str | None
    """The session of its turn, if it is the user's own; of other commits he sees only what they changed."""
    turn_id: str | None
    changes: tuple[PatchOp, ...]


@frozen
class _Sight:
    """The world, and the part of it that is followed as the user sees it: one item, or none."""

    world: World
    shown: tuple[Any, ...]


class UserFeed:
    """Made by `stage.commits_for`, for one task. It ends when the stage has closed.

    Reading raises what `CommitFeed` raises; `InvalidCommand` also for a user who is more than 4,096 commits behind, and
    `TooLarge` if he sees more than 1,000,000 bytes there. What `visibility` raises, it raises too.
    """

    def __init__(
        self, tail: LedgerTail, past: PastWorlds, visibility: Callable[[Any, User], Any], user: User, under: str
    ) -> None:
        patch.check_pointer(under)
        self._tail = tail
        self._past = past
        self._visibility = visibility
        self._user = user
        self._under = under
        self._sight: _Sight | None = None
        self._page: deque[CommitRecord] = deque()
        self._told: deque[tuple[CommitRecord, SeenChanges | None]] = deque()
        """Of the commits before the page, those that the host has not read yet."""

    @property
    def cursor(self) -> str | None:
        """The id of the last commit that was passed, for `after`. The user must not get it: it tells of commits that
        he does not see, and is made from all that they contain.
        """
        return self._tail.cursor

    async def start(self) -> tuple[Any, ...]:
        """Find the beginning, and return what the user sees there, as the only item; empty if that is nothing.

        Without this call, the feed begins when it is first read. Call it before that, or not at all.
        """
        return (await self._begin()).shown

    async def _begin(self) -> _Sight:
        if self._sight is None:
            world = await self._tail.begin()
            position = self._tail.position
            assert position is not None
            if world is None:
                world = await self._past.at(position)
            self._past.note(position, world)
            self._sight = await self._past.in_thread(partial(self._look, world))
        return self._sight

    def __aiter__(self) -> UserFeed:
        return self

    async def __anext__(self) -> SeenChanges:
        await trio.lowlevel.checkpoint_if_cancelled()
        sight = await self._begin()
        while True:
            while self._told:
                record, seen = self._told.popleft()
                self._tail.passed(record)
                if seen is not None:
                    return seen
            position = self._tail.position
            assert position is not None
            if not self._page:
                self._page.extend(await self._read())
            told, sight = await self._past.in_thread(partial(self._compare, sight, tuple(self._page), self._tail.world))
            for each in told:
                self._page.popleft()
                self._told.append(each)
            self._sight = sight
            self._past.note(position + len(told), sight.world)

    async def _read(self) -> Sequence[CommitRecord]:
        page = await self._tail.read()
        if len(page) == PAGE and await self._tail.behind() > REACH:
            raise too_far_behind()
        return page

    # -- in the thread: pure

    def _look(self, world: World) -> _Sight:
        shown = find_in(self._visibility(world.view(), self._user), self._under)
        for part in shown:
            check_size(part)
        return _Sight(world, shown)

    def _compare(
        self, sight: _Sight, records: Iterable[CommitRecord], latest: World
    ) -> tuple[list[tuple[CommitRecord, SeenChanges | None]], _Sight]:
        """What these commits changed for the user; of the first ones, if it is much."""
        told: list[tuple[CommitRecord, SeenChanges | None]] = []
        size, digest = 0, latest.digest()
        for record in records:
            before = sight
            if record.changes:
                # Who is up to date shares the world with all others, and need not make it.
                sight = self._look(latest if record.world_after == digest else after(sight.world, record))
            changes = self._changes(before.shown, sight.shown)
            told.append((record, self._seen(record, changes) if changes else None))
            size += sum(len(orjson.dumps(each.value)) for each in changes)
            if size > MAX_PART_BYTES:
                break
        return told, sight

    def _changes(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[PatchOp, ...]:
        if before is now:
            return ()
        if before and now:
            return tuple(difference(before[0], now[0], self._under))
        if now:
            return (patch.add(self._under, now[0]),)
        return (patch.remove(self._under),) if before else ()

    def _seen(self, record: CommitRecord, changes: tuple[PatchOp, ...]) -> SeenChanges:
        is_own = owner_of(record.session_id) == self._user.name
        return SeenChanges(
            session_id=record.session_id if is_own else None,
            turn_id=record.turn_id if is_own else None,
            changes=changes,
        )
