"""A custom ledger: an append-only journal of JSON lines. The contract of all ledgers is run against it.

    .venv/bin/python docs/examples/custom_ledger.py

One line is one write: an epoch, a whole batch of commits, or a step of a tool, each with the requests of its turns. A
write is complete if its line ends with a newline, so a batch is kept whole or not at all, also if the power fails.

It takes no writer lock: open the file in one stage at a time. A ledger that several processes can open takes one in
`begin_epoch`, and raises `LedgerInUse`.
"""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import orjson
import trio

from footlights.authority import CommitRecord, JsonWorld, Opening, ToolRecord, ToolState, TurnRequest, World
from footlights.authority.record import record_from_json
from footlights.authority.tool_steps import check_key
from footlights.authority.world import checked_digest
from footlights.errors import InvalidCommand, LedgerUnavailable
from footlights.ids import in_order
from footlights.testing import check_ledger


class JournalLedger:
    """Satisfies `footlights.Ledger` for JSON worlds. All of it is in memory too: it is for small games."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._lock = trio.Lock()
        self._epoch = 0
        self._world = JsonWorld({})
        self._commits: dict[tuple[str, str], CommitRecord] = {}
        self._heads: dict[str, str] = {}
        self._tools: dict[str, ToolState] = {}
        self._requests: dict[tuple[str, str], str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    # -- writing: check, write the line, then change what is in memory

    async def begin_epoch(self, genesis: World) -> Opening:
        checked_digest(genesis)
        async with self._lock:
            if self._file is None:
                await trio.to_thread.run_sync(self._read_journal)
            # The world is its first document and the changes of all commits: none of them writes the whole world.
            first = {"genesis": genesis.view().copy()} if self._epoch == 0 else {}
            await self._write({"epoch": self._epoch + 1, **first})
            return Opening(self._epoch, self._world)

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        async with self._lock:
            heads = dict(self._heads)
            for record in records:
                if record.previous != heads.get(record.session_id):
                    raise InvalidCommand(f"The commit {record.commit_id} is not chained to its session's last.")
                heads[record.session_id] = record.commit_digest
            turns = [(record.session_id, record.turn_id) for record in records]
            if len(set(turns)) < len(turns) or any(turn in self._commits for turn in turns):
                raise InvalidCommand("One of these turns is already committed.")
            begun = self._checked(requests)
            commits = [orjson.loads(each.written) for each in records]
            await self._write({"commits": commits, "requests": begun})

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        check_key(key)
        async with self._lock:
            if key in self._tools:
                await trio.lowlevel.checkpoint()
                return ToolRecord(key, self._tools[key])
            begun = self._checked(() if request is None else (request,))
            await self._write({"tool": key, "state": "started", "requests": begun})
            return None

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        check_key(key)
        async with self._lock:
            if self._tools.get(key) not in (ToolState.STARTED, ToolState(outcome)):
                raise InvalidCommand("That tool was never begun, or it has ended otherwise.")
            await self._write({"tool": key, "state": outcome})

    async def release_tool(self, key: str) -> None:
        check_key(key)
        async with self._lock:
            if self._tools.get(key) is ToolState.STARTED:
                await self._write({"tool": key, "state": "released"})
            else:
                await trio.lowlevel.checkpoint()

    def _checked(self, requests: Sequence[TurnRequest]) -> list[tuple[str, str, str]]:
        begun = dict(self._requests)
        for each in requests:
            if begun.setdefault((each.session_id, each.request_id), each.turn_id) != each.turn_id:
                raise InvalidCommand("A request id belongs to another turn.")
        return [(each.session_id, each.request_id, each.turn_id) for each in requests]

    # -- reading

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        await trio.lowlevel.checkpoint()
        return {each: self._heads[each] for each in session_ids if each in self._heads}

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        return self._commits.get((session_id, turn_id))

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._requests.get((session_id, request_id))

    async def position_of(self, commit_id: str | None) -> int | None:
        await trio.lowlevel.checkpoint()
        ids = [each.commit_id for each in self._commits.values()]
        if commit_id is None:
            return len(ids)
        return ids.index(commit_id) + 1 if commit_id in ids else None

    async def commits_from(self, position: int, limit: int) -> Sequence[CommitRecord]:
        await trio.lowlevel.checkpoint()
        return list(self._commits.values())[position : position + limit]

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        await trio.lowlevel.checkpoint()
        after = [each for each in self._commits_of(session_id) if in_order(each.turn_id) > in_order(turn_id)]
        return sorted(after, key=lambda each: in_order(each.turn_id))[:limit]

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        await trio.lowlevel.checkpoint()
        commits = self._commits_of(session_id)
        return commits[max(0, len(commits) - limit) :]

    def _commits_of(self, session_id: str) -> list[CommitRecord]:
        return [record for (session, _), record in self._commits.items() if session == session_id]

    # -- the file

    async def _write(self, entry: dict[str, Any]) -> None:
        # A thread that has begun to write is waited for, so a cancelled call has written all of its line or nothing.
        await trio.to_thread.run_sync(self._write_line, orjson.dumps(entry) + b"\n")
        self._apply(entry)

    def _write_line(self, line: bytes) -> None:
        if self._file is None:
            raise LedgerUnavailable("The journal is not open.")
        end = self._file.tell()
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            self._file.seek(end)
            raise LedgerUnavailable("The journal could not be written. Nothing was kept.") from error

    def _read_journal(self) -> None:
        self._file = self._path.open("a+b")
        self._file.seek(0)
        whole, newline, _torn = self._file.read().rpartition(b"\n")
        for line in whole.splitlines():
            self._apply(orjson.loads(line))
        self._file.truncate(len(whole + newline))
        self._file.seek(0, os.SEEK_END)

    def _apply(self, entry: dict[str, Any]) -> None:
        self._epoch = entry.get("epoch", self._epoch)
        if "genesis" in entry:
            self._world = JsonWorld(entry["genesis"])
        for document in entry.get("commits", ()):
            record = record_from_json(document)
            self._commits[record.session_id, record.turn_id] = record
            self._heads[record.session_id] = record.commit_digest
            self._world = self._world.changed(record.changes)
        for session_id, request_id, turn_id in entry.get("requests", ()):
            self._requests[session_id, request_id] = turn_id
        if entry.get("state") == "released":
            del self._tools[entry["tool"]]
        elif "tool" in entry:
            self._tools[entry["tool"]] = ToolState(entry["state"])


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await check_ledger(lambda name: JournalLedger(Path(folder, name)))
    print("The journal keeps the contract.")


if __name__ == "__main__":
    trio.run(main)
