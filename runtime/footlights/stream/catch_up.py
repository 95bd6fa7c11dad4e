"""Catch-up from the ledger for a resuming subscriber.

A session keeps the events of its open turns and of the last few finished ones. A subscriber that resumes may need
turns that the session has dropped, or that ran before a restart: those that its cursor names, and those that began
after the newest turn of which it has seen anything. The ledger knows how each of them ended, so the subscriber gets
their terminal event and commit_final, rebuilt. Their text is in no ledger, so a rebuilt terminal event says that it is
forgotten. Rebuilt events have the seqs `RESTART_SEQ` and `ALL_SEEN`, and the first one declares the gap before it.
Their `mono_ts_ms` is the largest integer of the wire format, because the clock that stamped the turn may have ended
with its process and no other clock can be compared with it.

Why nothing is lost or repeated:

- Turns are delivered in the order in which they began. So a cursor needs to name only turns that were not taken whole,
  and the newest one: everything older was delivered, everything newer was not.
- Reading the ledger takes time, and meanwhile the session may drop a turn that was still there when the cursor was
  compared with it. The session counts the turns that it drops; if the count moved, the comparison is made again.
- A turn that begins during the read is left to the live stream. The page of commits is cut off at the turn that was
  newest before the read, because an older turn may still be open.
- At most `max_turns_per_subscriber` turns are rebuilt at once. If there are more, the subscriber gets this portion,
  is detached (`overflow`) and resumes from there, so a long absence costs bounded memory.

Rejected: attaching first and filling the gap later (live events would overtake older ones), and one query for
everything (memory grows with the absence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import evolve, frozen

from footlights.authority.digest import digest
from footlights.authority.interruptions import failed_by, interrupted_by
from footlights.authority.record import commit_final
from footlights.errors import Busy, InvalidCommand, LedgerUnavailable, UnknownTurn
from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    InterruptReason,
    Issue,
    Payload,
    SeqRange,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
)
from footlights.ids import in_order, is_before_all
from footlights.stream.cursor import ALL_SEEN, RESTART_SEQ, newest_seen
from footlights.wire import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.limits import Limits

REBUILT_MONO_MS = MAX_INTEGER


class SessionHistory(Protocol):
    """The part of a session that catching up needs."""

    session_id: str
    limits: Limits
    epoch: int
    turns_dropped: int
    """How many finished turns the session no longer retains."""

    @property
    def unwritten(self) -> Mapping[str, CommitFinal]:
        """Commits of dropped turns that the ledger could not write."""
        ...

    @property
    def latest(self) -> str: ...
    def retained(self) -> Iterable[str]: ...
    def retains(self, turn_id: str) -> bool: ...
    def has_dropped_after(self, turn_id: str) -> bool: ...
    def check_known(self, turn_id: str) -> None: ...
    async def find_commit(self, turn_id: str) -> CommitFinal | None: ...
    async def commits_after(self, turn_id: str, limit: int) -> Sequence[CommitRecord]: ...


@frozen
class CatchUp:
    """What a subscriber gets before the events that the session itself retains."""

    events: Sequence[StreamEvent]
    expected: Sequence[str]
    """Turns that the given cursor did not name and that are delivered now or later."""
    is_complete: bool
    """False if there is more, to be read when these events were taken."""


async def catch_up(session: SessionHistory, after: Mapping[str, int], terminal_seen: Collection[str]) -> CatchUp:
    """Read the turns that this cursor lacks and the session does not retain.

    Raises `UnknownTurn` for a turn that neither the session nor the ledger knows, `InvalidCommand` for a seq that
    cannot be, and `Busy` if the ledger cannot be read now.
    """
    try:
        return await _Reader(session, after, terminal_seen).read()
    except LedgerUnavailable as error:
        raise Busy("The ledger cannot be read now. Subscribe again later.") from error


class _Reader:
    def __init__(self, session: SessionHistory, after: Mapping[str, int], terminal_seen: Collection[str]) -> None:
        self._session = session
        self._given = after
        self._after = dict(after)
        """The given cursor, with every turn that it should have named: so none of them can be lost later."""
        self._newest: str | None = None
        self._terminal_seen = terminal_seen
        self._rebuilt: dict[str, list[StreamEvent]] = {}
        self._portion = session.limits.max_turns_per_subscriber

    async def read(self) -> CatchUp:
        for turn_id, seq in self._after.items():
            self._check(turn_id, seq)
        self._newest = newest_seen(self._given)
        while True:
            dropped_before = self._session.turns_dropped
            self._name_retained_turns()
            is_complete = await self._read_all()
            if not is_complete or self._session.turns_dropped == dropped_before:
                break
        in_their_order = sorted(self._rebuilt.items(), key=lambda rebuilt: in_order(rebuilt[0]))
        events = [event for _, events in in_their_order for event in events]
        expected = [turn_id for turn_id in (*self._after, *self._rebuilt) if turn_id not in self._given]
        return CatchUp(events, expected, is_complete)

    def _name_retained_turns(self) -> None:
        for turn_id in self._session.retained():
            self._after.setdefault(turn_id, -1)
        if self._newest is not None:
            for turn_id in self._session.unwritten:
                if in_order(turn_id) > in_order(self._newest):
                    self._after.setdefault(turn_id, -1)

    async def _read_all(self) -> bool:
        """In the order in which the turns began, as far as the cursor does not name them."""
        if self._newest is None:
            return await self._read_named(list(self._after))
        earlier = [turn_id for turn_id in self._after if in_order(turn_id) <= in_order(self._newest)]
        return (
            await self._read_named(earlier) and await self._read_newer() and await self._read_named(list(self._after))
        )

    async def _read_named(self, turn_ids: Sequence[str]) -> bool:
        for turn_id in turn_ids:
            if self._is_missing(turn_id):
                if self._is_full:
                    return False
                commit = await self._session.find_commit(turn_id)
                if commit is None and in_order(turn_id)[0] == self._session.epoch:
                    raise UnknownTurn(f"Neither the session nor the ledger has {turn_id}.")
                self._rebuild(turn_id, commit)
        return True

    async def _read_newer(self) -> bool:
        newest = self._newest
        while newest is not None and self._session.has_dropped_after(newest):
            self._name_retained_turns()
            latest = self._session.latest
            page = await self._session.commits_after(newest, self._portion)
            records = [record for record in page if in_order(record.turn_id) <= in_order(latest)]
            for record in records:
                if self._is_missing(record.turn_id):
                    if self._is_full:
                        return False
                    self._rebuild(record.turn_id, commit_final(record))
            newest = records[-1].turn_id if len(records) == self._portion else None
        return True

    def _check(self, turn_id: str, seq: int) -> None:
        if self._session.retains(turn_id):
            return
        if seq < -1:
            raise InvalidCommand(f"{turn_id[:64]} has no event with seq {seq!r}.")
        if seq >= ALL_SEEN and is_before_all(turn_id, self._session.epoch):
            return
        self._session.check_known(turn_id)

    def _is_missing(self, turn_id: str) -> bool:
        is_taken = turn_id in self._rebuilt or self._after.get(turn_id, -1) >= ALL_SEEN
        return not is_taken and not self._session.retains(turn_id)

    @property
    def _is_full(self) -> bool:
        return len(self._rebuilt) >= self._portion

    def _rebuild(self, turn_id: str, commit: CommitFinal | None) -> None:
        self._rebuilt[turn_id] = rebuilt_events(
            self._session.session_id,
            turn_id,
            commit,
            after=self._after.get(turn_id, -1),
            terminal_seen=turn_id in self._terminal_seen,
        )


def rebuilt_events(
    session_id: str, turn_id: str, commit: CommitFinal | None, *, after: int, terminal_seen: bool
) -> list[StreamEvent]:
    """The terminal event and the commit_final of a turn, as far as they come after that seq."""
    payloads: list[tuple[int, Payload]] = [] if terminal_seen else [(RESTART_SEQ, _terminal(commit))]
    payloads.append((ALL_SEEN, commit or never_committed(session_id, turn_id)))
    events: list[StreamEvent] = []
    for seq, payload in payloads:
        if seq > after:
            missing = (SeqRange(after + 1, seq - 1),) if seq > after + 1 else ()
            declared = evolve(payload, dropped_seq_ranges=missing)
            event_type = EVENT_TYPES[type(payload)]
            events.append(StreamEvent(SCHEMA_V, session_id, turn_id, seq, REBUILT_MONO_MS, event_type, declared))
            after = seq
    return events


def _terminal(commit: CommitFinal | None) -> Payload:
    if commit is None:
        return TurnInterrupted(InterruptReason.RUNTIME_RESTART, text_forgotten=True)
    reason = interrupted_by(commit.issues)
    if reason is None:
        return TurnFinal("", text_forgotten=True)
    return TurnInterrupted(reason, error=failed_by(commit.issues), text_forgotten=True)


def never_committed(session_id: str, turn_id: str) -> CommitFinal:
    """The commit_final of a turn that a restart cut short. It is in no ledger, and always the same."""
    facts = {"session_id": session_id, "turn_id": turn_id, "outcome": "fail_closed", "issue": "runtime_restart"}
    return CommitFinal(
        commit_digest=digest(facts),
        commit_outcome=CommitOutcome.FAIL_CLOSED,
        issues=(Issue("runtime_restart", "The runtime restarted before the turn was committed."),),
    )
