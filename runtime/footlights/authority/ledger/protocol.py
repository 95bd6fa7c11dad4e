"""Ledger protocol: what a stage needs of the place where commits are kept.

A ledger stores commits in order, exactly one for each turn, the state of every tool that was begun, and the request ids
of turns. It judges nothing.

A ledger has one owner: the stage that opened it last. Every method that writes raises `LedgerFenced` for an earlier
owner, and then wrote nothing. A stage that gets it closes, and reports no commit that it does not know.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World


class ToolState(StrEnum):
    """State of a tool key."""

    STARTED = "started"
    """The tool was begun and has not ended: it is unknown whether it had its effect."""
    OK = "ok"
    """The tool succeeded."""
    ERROR = "error"
    """The tool failed."""


@frozen
class ToolRecord:
    """The ledger's record of a tool that claimed a key."""

    key: str
    state: ToolState


@frozen
class TurnRequest:
    """The request id with which a turn was begun. It is stored beside the record, and enters no digest."""

    session_id: str
    request_id: str
    turn_id: str


@frozen
class Opening:
    """The state of a ledger when a stage opens on it."""

    epoch: int
    """The number of this opening of the ledger, from 1. Ids contain it, so they are never used again."""
    world: World
    """The last committed world."""
    initial_digest: str | None = None
    """The digest of the initial world that the ledger took in last: the one that it began with, or an edited one that
    an operator committed. None if it does not know."""


class Ledger(Protocol):
    """Interface of a ledger. A call that is cancelled before it begins to write has no effect."""

    async def begin_epoch(self, genesis: World) -> Opening:
        """Called once by each stage that opens on this ledger. `genesis` is the initial world of a new ledger.

        Raises `LedgerInUse` if another stage owns the ledger now, and `RegistrationError` for a world with a malformed
        digest.
        """
        ...

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """The last commit_digest of each session, to which its next commit must be chained. New sessions are omitted.

        Called once for a whole batch, because a ledger on disk may have to read. Raises `LedgerUnavailable`.
        """
        ...

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        """Append all of `records`, in this order, or none. Durable when it returns.

        `world` is the world after the last record, for ledgers that store it for the next epoch. `requests` are those
        of the turns in `records` that have one, stored with them. One that is stored already changes nothing.

        Raises `LedgerUnavailable` when certainly none was appended, and `InvalidCommand` if a turn would be committed
        twice, a record is not chained to its session's last, or a request id of the session belongs to another turn.
        """
        ...

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        """The commit of this turn, or None."""
        ...

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        """The first `limit` commits of this session's turns that began after this one, in the order of the turns."""
        ...

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session, at most `limit`, oldest first. Raises `LedgerUnavailable`."""
        ...

    async def position_of(self, commit_id: str | None) -> int | None:
        """The position of this commit among all commits of the ledger, from 1; None if the ledger does not have it.

        For None, that of the last commit, or 0 before the first. Raises `LedgerUnavailable`.
        """
        ...

    async def commits_from(self, position: int, limit: int) -> Sequence[CommitRecord]:
        """The first `limit` commits after this position, of all sessions, in the order in which they were appended.

        Raises `InvalidCommand` if the ledger does not keep them any more, and `LedgerUnavailable`.
        """
        ...

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        """The id of the turn that this request began, or None. Raises `LedgerUnavailable`."""
        ...

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        """Claim `key` before the tool has any effect. None means that the claim is durable and the tool may run.

        `request` is that of the tool's turn, stored together with the claim: it may be the turn's first durable row.

        Otherwise the result is the record of an earlier claim, nothing is written, and the tool must not run again.
        Raises `LedgerUnavailable` if the claim could not be written, `InvalidCommand` if the request id belongs to
        another turn, and, like the other two methods, `InvalidCommand` for a key that is not a plain string of valid
        Unicode.
        """
        ...

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        """Record the outcome of the tool. Repeating the same outcome changes nothing.

        Raises `InvalidCommand` if the key was never begun or has another outcome, and `LedgerUnavailable`.
        """
        ...

    async def release_tool(self, key: str) -> None:
        """Release the key of a tool that was stopped before it had any effect. Raises `LedgerUnavailable`."""
        ...


@runtime_checkable
class LeasedLedger(Protocol):
    """A ledger whose owner has to say that it lives: if it does not, another stage may take the ledger over.

    The lease only decides when. Whose writes count is decided at each write, by `LedgerFenced`.
    """

    async def hold(self, doubtful: Callable[[bool], None]) -> None:
        """Renew the lease until cancelled. The stage that opened the ledger runs this as a task.

        `doubtful(True)` is called when the lease may have run out by the owner's own clock: the stage then begins no
        turn, and goes on with those that run. `doubtful(False)` is called when the lease is renewed after all. Raises
        `LedgerFenced` when another stage owns the ledger.
        """
        ...
