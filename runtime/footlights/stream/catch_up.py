"""What one who comes back to a session is told first: how the turns ended that nobody here remembers.

Those are the turns that its cursor names, and those that began after all that it names. The ledger knows them, and
gives them out in order and in portions: whoever has been away for long comes back several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from footlights.authority.record import commit_final
from footlights.errors import Busy, InvalidCommand, LedgerUnavailable, UnknownTurn
from footlights.ids import in_order, is_before_all
from footlights.stream.recall import ALL_SEEN, recalled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.events import CommitFinal, StreamEvent
    from footlights.limits import Limits


class Forgetful(Protocol):
    """What is needed of a session."""

    session_id: str
    limits: Limits
    epoch: int
    turns_forgotten: int
    """How often it has forgotten a turn."""

    @property
    def unwritten(self) -> Mapping[str, CommitFinal]:
        """Turns that it has forgotten and of which the ledger has nothing."""
        ...

    @property
    def latest(self) -> str: ...
    def remembered(self) -> Iterable[str]: ...
    def remembers(self, turn_id: str) -> bool: ...
    def has_forgotten_after(self, turn_id: str) -> bool: ...
    def check_known(self, turn_id: str) -> None: ...
    async def find_commit(self, turn_id: str) -> CommitFinal | None: ...
    async def commits_after(self, turn_id: str, limit: int) -> Sequence[CommitRecord]: ...


@frozen
class Recollection:
    """What the ledger told."""

    events: Sequence[StreamEvent]
    to_come: Sequence[str]
    """Turns that the cursor did not name and of which more is to be told, by these events or later."""
    is_all: bool
    """False if there is more to tell, to be asked for when this was taken."""


async def recollect(session: Forgetful, after: Mapping[str, int], terminal_seen: Collection[str]) -> Recollection:
    """What the ledger knows of the turns that this cursor lacks and the session does not remember.

    Raises `UnknownTurn` for a turn that neither knows, `InvalidCommand` for a seq that cannot be, and `Busy` if the
    ledger cannot be read now.
    """
    try:
        return await _Asking(session, after, terminal_seen).ask()
    except LedgerUnavailable as error:
        raise Busy("The ledger cannot be read now. Come back.") from error


class _Asking:
    def __init__(self, session: Forgetful, after: Mapping[str, int], terminal_seen: Collection[str]) -> None:
        self._session = session
        self._given = after
        self._after = dict(after)
        """With every turn that it should have named: whatever is told first, none of them can be lost."""
        self._newest: str | None = None
        self._terminal_seen = terminal_seen
        self._told: dict[str, list[StreamEvent]] = {}
        self._portion = session.limits.max_turns_per_subscriber

    async def ask(self) -> Recollection:
        for named, seq in self._after.items():
            self._check(named, seq)
        self._newest = newest_seen(self._given)
        while True:
            # Again and again, because a turn may be forgotten while the ledger is asked for others.
            forgotten_before = self._session.turns_forgotten
            self._name_what_is_here()
            is_all = await self._ask_for_all()
            if not is_all or self._session.turns_forgotten == forgotten_before:
                break
        in_their_order = sorted(self._told.items(), key=lambda told: in_order(told[0]))
        events = [event for _, events in in_their_order for event in events]
        to_come = [turn_id for turn_id in (*self._after, *self._told) if turn_id not in self._given]
        return Recollection(events, to_come, is_all)

    def _name_what_is_here(self) -> None:
        for turn_id in self._session.remembered():
            self._after.setdefault(turn_id, -1)
        if self._newest is not None:
            for turn_id in self._session.unwritten:
                if in_order(turn_id) > in_order(self._newest):
                    self._after.setdefault(turn_id, -1)

    async def _ask_for_all(self) -> bool:
        """In an order in which none is told before all that the cursor does not name and that began earlier."""
        if self._newest is None:
            return await self._ask_for(list(self._after))
        earlier = [named for named in self._after if in_order(named) <= in_order(self._newest)]
        return (
            await self._ask_for(earlier) and await self._ask_for_later_ones() and await self._ask_for(list(self._after))
        )

    async def _ask_for(self, named: Sequence[str]) -> bool:
        for each in named:
            if self._is_missing(each):
                if self._is_full:
                    return False
                commit = await self._session.find_commit(each)
                if commit is None and in_order(each)[0] == self._session.epoch:
                    raise UnknownTurn(f"Neither the session nor the ledger remembers {each}.")
                self._tell(each, commit)
        return True

    async def _ask_for_later_ones(self) -> bool:
        newest = self._newest
        while newest is not None and self._session.has_forgotten_after(newest):
            # What begins while the ledger is asked is not told yet: one that began before it may still be open.
            self._name_what_is_here()
            latest = self._session.latest
            page = await self._session.commits_after(newest, self._portion)
            told = [record for record in page if in_order(record.turn_id) <= in_order(latest)]
            for record in told:
                if self._is_missing(record.turn_id):
                    if self._is_full:
                        return False
                    self._tell(record.turn_id, commit_final(record))
            newest = told[-1].turn_id if len(told) == self._portion else None
        return True

    def _check(self, named: str, seq: int) -> None:
        if self._session.remembers(named):
            return
        if seq < -1:
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

    def _tell(self, turn_id: str, commit: CommitFinal | None) -> None:
        self._told[turn_id] = recalled(
            self._session.session_id,
            turn_id,
            commit,
            after=self._after.get(turn_id, -1),
            terminal_seen=turn_id in self._terminal_seen,
        )


def newest_seen(cursor: Mapping[str, int]) -> str | None:
    """Of the turns that it names, the last of which something was seen: all that began before it were told."""
    return max((turn_id for turn_id, seq in cursor.items() if seq >= 0), key=in_order, default=None)


def is_seq(value: object) -> bool:
    return type(value) is int
