"""What one who comes back to a session is told first: how the turns ended that nobody here remembers.

Those are the turns that its cursor names, and those that began after all that it names. The ledger knows them, and
gives them out in order and in portions: whoever has been away for long comes back several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen

from footlights.errors import InvalidCommand, UnknownTurn
from footlights.ids import in_order, is_before_all
from footlights.recall import ALL_SEEN, recalled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.events import StreamEvent
    from footlights.limits import Limits


class Forgetful(Protocol):
    """What is needed of a session."""

    session_id: str
    limits: Limits
    epoch: int
    turns_forgotten: int
    """How often it has forgotten a turn."""

    def remembers(self, turn_id: str) -> bool: ...
    def check_known(self, turn_id: str) -> None: ...
    async def find_record(self, turn_id: str) -> CommitRecord | None: ...
    async def commits_after(self, turn_id: str, limit: int) -> Sequence[CommitRecord]: ...


@frozen
class Recollection:
    """What the ledger told."""

    events: Sequence[StreamEvent]
    is_all: bool
    """False if there is more to tell, to be asked for when this was taken."""


async def recollect(session: Forgetful, after: Mapping[str, int], terminal_seen: Collection[str]) -> Recollection:
    """What the ledger knows of the turns that this cursor lacks and the session does not remember.

    Raises `UnknownTurn` for a turn that neither knows, and `InvalidCommand` for a seq that cannot be.
    """
    return await _Asking(session, after, terminal_seen).ask()


class _Asking:
    def __init__(self, session: Forgetful, after: Mapping[str, int], terminal_seen: Collection[str]) -> None:
        self._session = session
        self._after = after
        self._terminal_seen = terminal_seen
        self._told: dict[str, list[StreamEvent]] = {}
        self._portion = session.limits.max_turns_per_subscriber

    async def ask(self) -> Recollection:
        for named, seq in self._after.items():
            self._check(named, seq)
        while True:
            # Again and again, because a turn may be forgotten while the ledger is asked for others.
            forgotten_before = self._session.turns_forgotten
            is_all = await self._ask_for_all()
            if not is_all or self._session.turns_forgotten == forgotten_before:
                return Recollection([event for events in self._told.values() for event in events], is_all)

    async def _ask_for_all(self) -> bool:
        """What began last is told last, so that a cursor names no turn before all that began earlier are told."""
        newest = newest_seen(self._after)
        if newest is None:
            return await self._ask_for(self._after)
        earlier = [named for named in self._after if in_order(named) <= in_order(newest)]
        return await self._ask_for(earlier) and await self._ask_for_later(newest) and await self._ask_for(self._after)

    async def _ask_for(self, named: Iterable[str]) -> bool:
        for each in named:
            if self._is_missing(each):
                if self._is_full:
                    return False
                record = await self._session.find_record(each)
                if record is None and in_order(each)[0] == self._session.epoch:
                    raise UnknownTurn(f"Neither the session nor the ledger remembers {each}.")
                self._tell(each, record)
        return True

    async def _ask_for_later(self, newest: str | None) -> bool:
        while newest is not None:
            page = await self._session.commits_after(newest, self._portion)
            for record in page:
                if self._is_missing(record.turn_id):
                    if self._is_full:
                        return False
                    self._tell(record.turn_id, record)
            newest = page[-1].turn_id if len(page) == self._portion else None
        return True

    def _check(self, named: str, seq: int) -> None:
        if self._session.remembers(named):
            return
        if not is_seq(seq) or seq < -1:
            raise InvalidCommand(f"{named[:64]} has no event with seq {seq!r}.")
        if seq >= ALL_SEEN and is_before_all(named, self._session.epoch):
            return
        self._session.check_known(named)

    def _is_missing(self, turn_id: str) -> bool:
        told = turn_id in self._told or self._after.get(turn_id, -1) >= ALL_SEEN
        return not told and not self._session.remembers(turn_id)

    @property
    def _is_full(self) -> bool:
        return len(self._told) >= self._portion

    def _tell(self, turn_id: str, record: CommitRecord | None) -> None:
        self._told[turn_id] = recalled(
            self._session.session_id,
            turn_id,
            record,
            after=self._after.get(turn_id, -1),
            terminal_seen=turn_id in self._terminal_seen,
            now_ms=int(trio.current_time() * 1000),
        )


def newest_seen(cursor: Mapping[str, int]) -> str | None:
    """Of the turns that it names, the last of which something was seen: all that began before it were told."""
    return max((turn_id for turn_id, seq in cursor.items() if seq >= 0), key=in_order, default=None)


def is_seq(value: object) -> bool:
    return type(value) is int
