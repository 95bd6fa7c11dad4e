"""Where commits are kept: the protocol, and a ledger that lives in memory.

A ledger keeps the order of commits, exactly one for each turn, and what became of every tool that was ever
begun. It judges nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import orjson
import trio
from attrs import frozen

from footlights.authority.record import record_from_json
from footlights.authority.tool_steps import check_key
from footlights.authority.world import checked_digest
from footlights.errors import InvalidCommand, LedgerUnavailable
from footlights.ids import in_order

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

_K = TypeVar("_K")
_V = TypeVar("_V")


class ToolState(StrEnum):
    """How far a tool got."""

    STARTED = "started"
    """Begun, and nothing more was heard of it: whether it had its effect is unknown."""
    OK = "ok"
    """It ended well."""
    ERROR = "error"
    """It ended, and failed."""


@frozen
class ToolRecord:
    """What the ledger knows of a tool that claimed a key."""

    key: str
    state: ToolState


@frozen
class Opening:
    """What a stage is told when it opens on a ledger."""

    epoch: int
    """Which opening of this ledger it is, counting from 1. Ids carry it, so none comes back."""
    world: World
    """The world as it was committed last."""


class Ledger(Protocol):
    """What a ledger promises. A cancelled call that has not begun to write has no effect."""

    async def begin_epoch(self, genesis: World) -> Opening:
        """Called once by each stage that opens on this ledger, with the world to begin from if it has none yet.

        Raises `RegistrationError` for a world that has no proper digest.
        """
        ...

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """The commit_digest to which each session's next commit must be chained. Those without any are left out.

        Asked once for a whole batch, because a ledger on disk may have to look. Raises `LedgerUnavailable`.
        """
        ...

    async def append(self, records: Sequence[CommitRecord], world: World) -> None:
        """Keep all of `records`, in this order and after all others, or none. Durable when it returns.

        `world` is what the last of them leaves behind, for ledgers that hand it to the next epoch.

        Raises `LedgerUnavailable` when it is certain that none was kept, and `InvalidCommand` if a turn
        would be committed twice or a record is not chained to its session's last.
        """
        ...

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        """The commit of this turn, if it is here."""
        ...

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        """The commits of this session's turns that began after this one, the first `limit` of them, in the order in
        which the turns began."""
        ...

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session, at most `limit`, oldest first. Raises `LedgerUnavailable`."""
        ...

    async def begin_tool(self, key: str) -> ToolRecord | None:
        """Claim `key` before the tool has any effect. None: it is yours, durably, so go ahead.

        Otherwise what is known of whoever claimed it before; the tool must not run again. Raises
        `LedgerUnavailable` if the claim could not be kept, and `InvalidCommand` for a key that is no plain string of
        valid Unicode, as the other two do.
        """
        ...

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        """Say how the tool ended. Saying the same again changes nothing.

        Raises `InvalidCommand` if the key was never begun or has ended otherwise, and `LedgerUnavailable`.
        """
        ...

    async def release_tool(self, key: str) -> None:
        """The tool was stopped before it had any effect: give the key back. Raises `LedgerUnavailable`."""
        ...


class MemoryLedger:
    """A ledger for tests and for games that may forget. It ends with the process, and its memory is bounded.

    - Of the commits, the latest `max_records` can be found, and of those only as many as fit into `max_bytes`.
    - Within an epoch, chains outlive them: a chain's end takes little room, so those of the `max_sessions`
      sessions that committed last are kept. A session that has been silent for longer than that begins a new chain.
    - Of the tools, `max_records` keys are kept, and those that ended are forgotten oldest first. A key that
      names its turn can never come back. One from a tool's `idempotency_key` can, and its tool would then run
      again. One that has not ended is never forgotten; with `max_records` of them open, no other may begin.
    """

    def __init__(self, *, max_records: int = 10_000, max_sessions: int = 100_000, max_bytes: int = 64_000_000) -> None:
        self._max_records = max_records
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._epoch = 0
        self._bytes = 0
        self._records: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        """As they are written: then their size is known, and nobody can change them."""
        self._heads: OrderedDict[str, str] = OrderedDict()
        self._open_tools: set[str] = set()
        self._ended_tools: OrderedDict[str, ToolState] = OrderedDict()

    # In each method the checkpoint comes first and is the only one: a call that is cancelled has done
    # nothing, and one that has done something cannot be cancelled any more.

    async def begin_epoch(self, genesis: World) -> Opening:
        await trio.lowlevel.checkpoint()
        checked_digest(genesis)
        self._epoch += 1
        self._heads.clear()  # it keeps no world, so each epoch begins anew, and its chains do
        return Opening(self._epoch, genesis)

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        await trio.lowlevel.checkpoint()
        return {each: self._heads[each] for each in session_ids if each in self._heads}

    async def append(self, records: Sequence[CommitRecord], world: World) -> None:
        await trio.lowlevel.checkpoint()
        self._check_batch(records)
        for record in records:
            self._records[record.session_id, record.turn_id] = record.written
            self._bytes += len(record.written)
            self._heads[record.session_id] = record.commit_digest
            self._heads.move_to_end(record.session_id)
        while len(self._records) > self._max_records or self._bytes > self._max_bytes:
            self._bytes -= len(self._records.popitem(last=False)[1])
        _forget_oldest(self._heads, self._max_sessions)

    def _check_batch(self, records: Sequence[CommitRecord]) -> None:
        heads: dict[str, str] = {}
        turns: set[tuple[str, str]] = set()
        for record in records:
            turn = (record.session_id, record.turn_id)
            if turn in self._records or turn in turns:
                raise InvalidCommand(f"The turn {record.turn_id} of {record.session_id} is already committed.")
            if record.previous != heads.get(record.session_id, self._heads.get(record.session_id)):
                raise InvalidCommand(f"The commit {record.commit_id} is not chained to its session's last.")
            turns.add(turn)
            heads[record.session_id] = record.commit_digest

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        written = self._records.get((session_id, turn_id))
        return None if written is None else record_from_json(orjson.loads(written))

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        await trio.lowlevel.checkpoint()
        turns = (
            turn for session, turn in self._records if session == session_id and in_order(turn) > in_order(turn_id)
        )
        first = sorted(turns, key=in_order)[:limit]
        return [record_from_json(orjson.loads(self._records[session_id, turn])) for turn in first]

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session that can be found, no more than `limit`, in their order."""
        await trio.lowlevel.checkpoint()
        newest_first = (data for (session, _), data in reversed(self._records.items()) if session == session_id)
        return [record_from_json(orjson.loads(data)) for data in islice(newest_first, limit)][::-1]

    async def begin_tool(self, key: str) -> ToolRecord | None:
        await trio.lowlevel.checkpoint()
        check_key(key)
        known = self._tool(key)
        if known is not None:
            return known
        if len(self._open_tools) >= self._max_records:
            raise LedgerUnavailable("Too many tools have begun and not ended.")
        self._open_tools.add(key)
        _forget_oldest(self._ended_tools, self._max_records - len(self._open_tools))
        return None

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        await trio.lowlevel.checkpoint()
        check_key(key)
        state = ToolState(outcome)
        known = self._tool(key)
        if known is None or known.state not in (ToolState.STARTED, state):
            raise InvalidCommand("That tool was never begun, or it has ended otherwise.")
        if known.state is ToolState.STARTED:
            self._open_tools.remove(key)
            self._ended_tools[key] = state

    async def release_tool(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        check_key(key)
        self._open_tools.discard(key)

    def _tool(self, key: str) -> ToolRecord | None:
        if key in self._open_tools:
            return ToolRecord(key, ToolState.STARTED)
        state = self._ended_tools.get(key)
        return None if state is None else ToolRecord(key, state)


def _forget_oldest(entries: OrderedDict[_K, _V], limit: int) -> None:
    while len(entries) > limit:
        entries.popitem(last=False)
