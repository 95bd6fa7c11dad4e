"""Audit: proof that a ledger is unaltered, without trust in any of its data.

An audit reads the ledger once, from its genesis. It recomputes every digest, follows every chain and rebuilds the
world, and stops at the first row that is wrong. Its reader checks the tables and indexes. It is pure: no clock, no
rules, no stage. It cannot detect that the end was removed consistently, or that the whole ledger was rewritten; for
that, pass heads of an earlier audit that were stored elsewhere.
"""

from __future__ import annotations

import re
from heapq import merge
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority import chain
from footlights.authority.audit.reader import Altered, Entry
from footlights.authority.audit.rebuild import altered, apply, check_kept, kept_worlds, read_record
from footlights.authority.audit.tools import ToolsWalk
from footlights.authority.digest import NotCanonical, canonical
from footlights.authority.record import recompute_digest, record_to_json
from footlights.errors import TooLarge
from footlights.events import CommitOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority.audit.reader import EpochRow, Flaw, GenesisRow, LedgerReader, RequestRow
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

_TURN_ID = re.compile(r"t([1-9][0-9]{0,14})-[0-9]{6,}")


@frozen(kw_only=True)
class AuditReport:
    """The result of an audit. The numbers count the valid rows before the flaw, if there is one."""

    flaw: Flaw | None
    """The first flaw; None if the ledger is unaltered."""
    commits: int
    sessions: int
    epochs: int
    world_digest: str
    """The digest of the world after the last valid commit."""
    world_rebuilt: bool
    """Whether the world was rebuilt. A world of the host's own kind needs its genesis."""
    head: str
    """The head of the chain of epochs and commits. Store it elsewhere, and pass it to a later audit."""
    head_position: int | None
    """The position at which the head of an earlier audit was found."""
    tool_steps: int
    """The number of tool steps: started, ended, released."""
    tools_head: str
    """The head of the chain of tool steps, to be stored like `head`."""
    tools_head_position: int | None
    """The step after which the tools head of an earlier audit was found."""

    @property
    def ok(self) -> bool:
        return self.flaw is None


def audit(
    reader: LedgerReader, head: str | None = None, *, tools_head: str | None = None, genesis: World | None = None
) -> AuditReport:
    """Examine a whole ledger.

    `head` and `tools_head` are those of an earlier report: if they are not found, the ledger was cut or rewritten.
    `genesis` is the first world, for a ledger with a world of the host's own kind.
    """
    walk, tools = _Walk(head, genesis), ToolsWalk(tools_head)
    try:
        reader.check_schema()
        genesis_row = reader.genesis()
        walk.begin(genesis_row, reader)
        tools.begin(genesis_row.digest)
        for row in _in_order(reader):
            if isinstance(row, Entry):
                walk.take_commit(row)
            else:
                walk.take_epoch(row)
        ends = reader.ends()
        walk.end(ends.entry_digest)
        for step in reader.tools():
            tools.take(step, walk.epoch)
        tools.end(ends.tool_digest)
        for request in reader.requests():
            walk.take_request(request, tools.position)
        reader.check_file()  # last, because it names no row
    except Altered as error:
        return walk.report(error.flaw, tools)
    return walk.report(None, tools)


def _in_order(reader: LedgerReader) -> Iterator[Entry | EpochRow]:
    epochs: Iterator[Entry | EpochRow] = reader.epochs()
    return merge(epochs, reader.entries(), key=_place)


def _place(row: Entry | EpochRow) -> tuple[int, bool]:
    """Sort key of a row: an epoch comes before its first commit."""
    return (row.position, True) if isinstance(row, Entry) else (row.first_position, False)


class _Walk:
    """The state of an audit: the ends of all chains, and the world."""

    def __init__(self, kept_head: str | None, genesis: World | None) -> None:
        self._kept_head = kept_head
        self._head_position: int | None = None
        self._world: World | None = genesis
        self._kept: dict[int, str] = {}
        """The digests of the checkpoints that are not checked yet, by their positions."""
        self._world_digest: str = ""
        self._head = ""
        self._position = 0
        self._session_heads: dict[str, str] = {}
        self._turns: set[tuple[str, str]] = set()
        self.epoch = 0

    def begin(self, row: GenesisRow, reader: LedgerReader) -> None:
        if row.format != chain.FORMAT:
            raise Altered("genesis", f"Its format is said to be {row.format}.")
        kept = reader.worlds()
        check_kept(kept, is_json=row.is_json)
        self._world = next(iter(kept_worlds(kept, reader)), self._world)
        if self._world is not None and self._world.digest() != row.digest:
            raise Altered("genesis", "The world that was given is not the one that the ledger began from.")
        self._kept = {each.position: each.digest for each in kept}
        self._world_digest = row.digest
        self._advance(0, chain.seed(row.digest))

    def take_epoch(self, row: EpochRow) -> None:
        place = f"epoch {row.epoch}"
        self._check_none_missing(row.first_position)
        if (row.epoch, row.first_position) != (self.epoch + 1, self._position + 1):
            raise Altered(place, f"It is not in its place, after epoch {self.epoch} and commit {self._position}.")
        digest = chain.link_epoch(self._head, row.epoch, row.first_position)
        if row.digest != digest:
            raise Altered(place, "It is not chained to what is before it in the ledger.")
        self.epoch = row.epoch
        self._advance(self._position, digest)

    def take_commit(self, entry: Entry) -> None:
        self._check_none_missing(entry.position)
        if entry.position != self._position + 1:
            raise altered(entry, "There are two commits in its place.")
        if entry.epoch != self.epoch:
            raise altered(entry, f"It is said to be of epoch {entry.epoch}, and the epoch here is {self.epoch}.")
        record = read_record(entry)
        _check_row(entry, record)
        _check_outcome(entry, record)
        self._check_turn(entry)
        self._check_session_chain(entry, record)
        self._check_world(entry, record)
        self._check_entry_chain(entry)

    def take_request(self, row: RequestRow, last_tool_step: int) -> None:
        step = row.tool_position
        if (row.session_id, row.turn_id) not in self._turns and (step is None or not 1 <= step <= last_tool_step):
            raise Altered(f"request {row.position}", "Its turn has neither a commit nor the step of a tool.")

    def _check_none_missing(self, position: int) -> None:
        expected = self._position + 1
        if position > expected:
            raise Altered(f"commit {expected}", "It is missing.", expected)

    def _check_turn(self, entry: Entry) -> None:
        turn_id = _TURN_ID.fullmatch(entry.turn_id)
        if turn_id is None or int(turn_id[1]) != entry.epoch:
            raise altered(entry, f"Its turn is not one of epoch {entry.epoch}, in which it is said to be committed.")
        turn = (entry.session_id, entry.turn_id)
        if turn in self._turns:
            raise altered(entry, "Its turn was committed before.")
        self._turns.add(turn)

    def _check_session_chain(self, entry: Entry, record: CommitRecord) -> None:
        if record.previous != self._session_heads.get(entry.session_id):
            raise altered(entry, "It is not chained to the commit before it of its session.")
        self._session_heads[entry.session_id] = entry.commit_digest

    def _check_world(self, entry: Entry, record: CommitRecord) -> None:
        if record.world_before != self._world_digest:
            raise altered(entry, "It was not judged in the world that the commit before it left.")
        if self._world is not None:
            self._world = apply(self._world, entry, record)
            if self._world.digest() != record.world_after:
                raise altered(entry, "Its changes do not lead to the world that it names.")
        self._world_digest = record.world_after

    def _check_entry_chain(self, entry: Entry) -> None:
        digest = chain.link(self._head, entry.position, entry.epoch, entry.commit_digest)
        if entry.entry_digest != digest:
            raise altered(entry, "It is not chained to what is before it in the ledger.")
        self._advance(entry.position, digest)

    def _advance(self, position: int, head: str) -> None:
        self._position = position
        self._head = head
        if self._kept.pop(position, self._world_digest) != self._world_digest:
            raise Altered(f"world after commit {position}", "It is not the one that the commits made.")
        if head == self._kept_head:
            self._head_position = position

    def end(self, last_digest: str) -> None:
        for position in self._kept:
            raise Altered(f"world after commit {position}", f"The last commit is {self._position}.")
        if last_digest != self._head:
            raise Altered(
                "ledger",
                f"Epoch {self.epoch} and commit {self._position} are not the last that were written: "
                "some were taken out or put in at the end.",
            )
        if self._kept_head is not None and self._head_position is None:
            raise Altered(
                f"after commit {self._position}",
                "The head that was kept elsewhere is not in this ledger: it was cut before that, or written anew.",
            )

    def report(self, flaw: Flaw | None, tools: ToolsWalk) -> AuditReport:
        return AuditReport(
            flaw=flaw,
            commits=self._position,
            sessions=len(self._session_heads),
            epochs=self.epoch,
            world_digest=self._world_digest,
            world_rebuilt=self._world is not None,
            head=self._head,
            head_position=self._head_position,
            tool_steps=tools.position,
            tools_head=tools.head,
            tools_head_position=tools.head_position,
        )


def _check_row(entry: Entry, record: CommitRecord) -> None:
    """Check that the record has its digest and canonical form, and that the row's columns repeat it."""
    try:
        commit_digest = recompute_digest(record)
        record_json = canonical(record_to_json(record))
    except (NotCanonical, TooLarge):
        raise altered(entry, "Its record holds what no record can hold.") from None
    if (record.commit_digest, record.commit_id) != (commit_digest, f"c-{commit_digest[:16]}"):
        raise altered(entry, "Its record does not have the digest that it claims.")
    if record_json != entry.record_json:
        raise altered(entry, "Its record is not written in canonical form.")
    if (record.session_id, record.turn_id, commit_digest) != (entry.session_id, entry.turn_id, entry.commit_digest):
        raise altered(entry, "Its row does not say the same as its record.")


def _check_outcome(entry: Entry, record: CommitRecord) -> None:
    failed = record.outcome is CommitOutcome.FAIL_CLOSED
    if failed != bool(record.issues):
        raise altered(entry, "It failed closed without a reason." if failed else "It is ok and has issues.")
    if failed and (record.changes or record.artifacts):
        raise altered(entry, "It failed closed and has changes or artifacts.")
    if not record.changes and record.world_after != record.world_before:
        raise altered(entry, "It has no changes, and the world is another one after it.")
