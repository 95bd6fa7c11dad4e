"""Head of a ledger in a database: the ends of both chains, to which the next epoch, commit or tool step is linked.

The idea: the last row of each chain, together with the row before it, determines the head. `read_head` recomputes the
digest of the last row from the digest of its predecessor, so it takes the same time in a long ledger as in a short one.

Why it is correct: each digest covers all earlier rows. A row that does not follow from its predecessor was altered.
Removing rows at the end would leave a shorter, valid chain, so every transaction also writes both digests into the
table `ends`, and a head that differs from it is refused as damaged. Going on from a shortened chain would reuse ids of
a missing epoch, or run a tool again whose last step is missing. Damage further back is found by an audit, or by
`rows`, which recomputes the digest of each row that it returns.

Rejected: a full check on opening, whose time grows with the ledger; trusting the table `ends` alone, which would not
notice an altered last row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, frozen

from footlights.authority import chain
from footlights.authority.digest import NotCanonical
from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.ledger.sql.rows import TOOL_STEPS, first, genesis_digest, proven_step, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority.ledger.sql.rows import Connection
    from footlights.authority.record import CommitRecord
    from footlights.authority.tool_steps import ToolStep

    CommitRow: TypeAlias = tuple[int, int, str, str, bytes, str, str]


@frozen
class Head:
    """The end of a ledger."""

    epoch: int
    """The last epoch; 0 before the first."""
    position: int
    """The position of the last commit; 0 before the first."""
    entry_digest: str
    """The end of the chain of epochs and commits."""
    world_digest: str
    tool_position: int
    """The position of the last tool step; 0 before the first."""
    tool_digest: str
    """The end of the chain of tool steps."""

    def is_in(self, connection: Connection) -> bool:
        return read_head(connection) == self

    def in_epoch(self, epoch: int) -> Head:
        """The head after `epoch` has begun."""
        digest = chain.link_epoch(self.entry_digest, epoch, self.position + 1)
        return evolve(self, epoch=epoch, entry_digest=digest)

    def after_step(self, key: str, step: ToolStep) -> Head:
        """The head after this tool step."""
        position = self.tool_position + 1
        digest = chain.link_tool(self.tool_digest, position, self.epoch, key, step.value)
        return evolve(self, tool_position=position, tool_digest=digest)


def link_all(head: Head, records: Iterable[CommitRecord]) -> tuple[Head, list[CommitRow]]:
    """The head after `records`, and their rows."""
    position, digest, world, rows = head.position, head.entry_digest, head.world_digest, list["CommitRow"]()
    for record in records:
        position += 1
        digest = chain.link(digest, position, head.epoch, record.commit_digest)
        world = record.world_after
        names = (record.session_id, record.turn_id)
        rows.append((position, head.epoch, *names, record.written, record.commit_digest, digest))
    return evolve(head, position=position, entry_digest=digest, world_digest=world), rows


def read_head(connection: Connection) -> Head:
    """The head of the ledger. Raises `LedgerDamaged` if the last rows are missing or altered."""
    ends = first(connection.execute("SELECT entry_digest, tool_digest FROM ends"))
    try:
        head = _found_head(connection)
    except (TypeError, ValueError, NotCanonical) as error:
        # A column of SQLite accepts a value of any type.
        raise LedgerDamaged("A row of the ledger is missing, or is not what was written.") from error
    if ends != (head.entry_digest, head.tool_digest):
        raise LedgerDamaged("The last epoch, commit or step of a tool in the ledger is not the last that was written.")
    return head


def _found_head(connection: Connection) -> Head:
    genesis = genesis_digest(connection)
    seed = chain.seed(genesis)
    epoch, first_position, epoch_digest = first(
        connection.execute("SELECT epoch, first_position, entry_digest FROM epochs ORDER BY epoch DESC LIMIT 1")
    ) or (0, 1, seed)
    position, data = first(
        connection.execute("SELECT position, record FROM commits ORDER BY position DESC LIMIT 1")
    ) or (0, None)
    record = None if data is None else read_record(data)
    if record is not None and position >= first_position:
        before = epoch_digest if position == first_position else _entry_digest(connection, position - 1)
        entry_digest = chain.link(before, position, epoch, record.commit_digest)
    else:
        entry_digest = _linked_epoch(connection, epoch, first_position, seed)
    world_digest = genesis if record is None else record.world_after
    return Head(epoch, position, entry_digest, world_digest, *_found_tool_end(connection, seed))


def _linked_epoch(connection: Connection, epoch: int, first_position: int, seed: str) -> str:
    """The digest of the last epoch, which has no commit yet; the seed before the first epoch."""
    if epoch == 0:
        return seed
    query = "SELECT first_position, entry_digest FROM epochs WHERE epoch = ?"
    before_it, digest = first(connection.execute(query, (epoch - 1,))) or (1, seed)
    if before_it != first_position:
        digest = _entry_digest(connection, first_position - 1)
    return chain.link_epoch(digest, epoch, first_position)


def _entry_digest(connection: Connection, position: int) -> str:
    """The digest of the commit at this position. Raises `ValueError` if there is none."""
    digest: str
    ((digest,),) = connection.execute("SELECT entry_digest FROM commits WHERE position = ?", (position,))
    return digest


def _found_tool_end(connection: Connection, seed: str) -> tuple[int, str]:
    row = first(connection.execute(f"{TOOL_STEPS} ORDER BY it.position DESC LIMIT 1"))
    if row is None:
        return 0, seed
    step = proven_step(connection, row[0].decode(), *row[1:])
    return step.position, step.digest
