"""Ledger in memory, for tests and for games that need no file. It is bounded, and ends with the process."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

import orjson
import trio

from footlights.authority.ledger.protocol import Opening, ToolRecord, ToolState
from footlights.authority.record import record_from_json
from footlights.authority.tool_steps import check_key
from footlights.authority.world import checked_digest
from footlights.errors import InvalidCommand, LedgerUnavailable
from footlights.ids import in_order

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

_K = TypeVar("_K")
_V = TypeVar("_V")


class MemoryLedger:
    """A ledger for tests and for games without persistence. It ends with the process, and its memory is bounded.

    - It stores the latest `max_records` commits, and of those only as many as fit into `max_bytes`.
    - Within an epoch, chains outlive their commits: the last digests of the `max_sessions` sessions that committed
      last are stored. An older session begins a new chain.
    - It stores `max_records` tool keys, and evicts ended ones, the oldest first. A key that names its turn is never
      used again. A key from a tool's `idempotency_key` can be, and the tool would then run again. A key that has not
      ended is never evicted; with `max_records` of them open, no other tool may begin.
    - It stores the latest `max_records` request ids. A request that was evicted can begin a turn again.
    """

    def __init__(self, *, max_records: int = 10_000, max_sessions: int = 100_000, max_bytes: int = 64_000_000) -> None:
        self._max_records = max_records
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._epoch = 0
        self._bytes = 0
        self._position = 0
        """The position of the last commit, also if it was evicted."""
        self._records: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        """As canonical JSON, which is immutable and has a known size."""
        self._heads: OrderedDict[str, str] = OrderedDict()
        self._open_tools: set[str] = set()
        self._ended_tools: OrderedDict[str, ToolState] = OrderedDict()
        self._requests: OrderedDict[tuple[str, str], str] = OrderedDict()

    # In each method the only checkpoint comes first: a call that is cancelled has no effect, and a call that had an
    # effect cannot be cancelled.

    async def begin_epoch(self, genesis: World) -> Opening:
        await trio.lowlevel.checkpoint()
        checked_digest(genesis)
        self._epoch += 1
        self._heads.clear()  # it stores no world, so each epoch begins anew, and so do its chains
        return Opening(self._epoch, genesis)

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        await trio.lowlevel.checkpoint()
        return {each: self._heads[each] for each in session_ids if each in self._heads}

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await trio.lowlevel.checkpoint()
        self._check_batch(records)
        if requests:
            self._keep_requests(requests)
        for record in records:
            self._records[record.session_id, record.turn_id] = record.written
            self._bytes += len(record.written)
            self._position += 1
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
        """The newest stored commits of this session, at most `limit`, in their order."""
        await trio.lowlevel.checkpoint()
        newest_first = (data for (session, _), data in reversed(self._records.items()) if session == session_id)
        return [record_from_json(orjson.loads(data)) for data in islice(newest_first, limit)][::-1]

    async def position_of(self, commit_id: str | None) -> int | None:
        await trio.lowlevel.checkpoint()
        if commit_id is None:
            return self._position
        for back, written in enumerate(reversed(self._records.values())):
            if orjson.loads(written)["commit_id"] == commit_id:
                return self._position - back
        return None

    async def commits_from(self, position: int, limit: int) -> Sequence[CommitRecord]:
        await trio.lowlevel.checkpoint()
        after = self._position - position
        if after > len(self._records):
            raise InvalidCommand("The ledger has forgotten the commits after this one.")
        newest_first = list(islice(reversed(self._records.values()), max(after, 0)))
        return [record_from_json(orjson.loads(written)) for written in newest_first[::-1][:limit]]

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._requests.get((session_id, request_id))

    def _keep_requests(self, requests: Sequence[TurnRequest]) -> None:
        turns: dict[tuple[str, str], str] = {}
        for each in requests:
            name = (each.session_id, each.request_id)
            if turns.setdefault(name, self._requests.get(name, each.turn_id)) != each.turn_id:
                raise InvalidCommand(f"The request id of {each.turn_id} belongs to another turn of {each.session_id}.")
        self._requests.update(turns)
        _forget_oldest(self._requests, self._max_records)

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        await trio.lowlevel.checkpoint()
        check_key(key)
        known = self._tool(key)
        if known is not None:
            return known
        if len(self._open_tools) >= self._max_records:
            raise LedgerUnavailable("Too many tools have begun and not ended.")
        if request is not None:
            self._keep_requests((request,))
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
