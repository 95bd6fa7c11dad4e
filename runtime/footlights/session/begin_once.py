"""Begin a turn once: a call that is repeated with the same request id finds the turn that an earlier call began.

A request id is the caller's own, within one session. The turn that it began is open, retained, or only in the ledger,
which stores the id with the turn's first durable row: the claim of a tool, or the commit.

Why one id never begins two turns in one process:

- Searching the open and retained turns and beginning a turn happen without a checkpoint between them.
- A turn is dropped only after its commit, so the ledger has its id by then. Reading the ledger takes time, and
  meanwhile another call may begin the turn, and the session may even drop it. The session counts the turns that it
  drops; if the count moved, the search is made again.
- Nothing is reserved for a call. One that is cancelled or refused leaves nothing behind, and another with the same id
  goes on.

A turn that left no row may begin again, because none of its effects is durable: the process was killed before its first
tool and its commit, or the ledger could not write its commit and the session has dropped it.

While the turn is retained, its input and parameters are compared. Afterwards the id alone decides: no digest of what a
player said enters the ledger.

Rejected: a lock for each id, which has to be taken over from a call that fails; and asking the ledger always, because
most ids are new and a read waits for the commit that is being written. So a session remembers which ids it dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve

from footlights.authority.digest import digest_bytes
from footlights.errors import Busy, InvalidCommand, LedgerUnavailable

if TYPE_CHECKING:
    from footlights.params import TurnParams
    from footlights.turn.turn import Turn

MAX_REQUEST_CHARS = 128
MAX_REMEMBERED = 256
"""Dropped request ids that a session remembers. A session with more of them asks the ledger about every id."""
NONE_DROPPED: frozenset[int] = frozenset()
"""One object for all sessions that have dropped no request id."""
LEDGER_PATIENCE = 1.0
"""Seconds to wait for the ledger. One that does not know whether a write took effect answers when it knows, and until
then a caller must not wait: its next command may be a cancel."""


class RequestHistory(Protocol):
    """The part of a session that the search needs."""

    turns_dropped: int
    dropped_requests: frozenset[int] | None
    """The hashes of the ids that only the ledger has; None if there may be others."""

    def find_request(self, request_id: str) -> Turn | None:
        """The open or retained turn with this request id."""
        ...

    async def read_request(self, request_id: str) -> str | None:
        """The turn with this request id, from the ledger."""
        ...


async def find_begun(session: RequestHistory, request_id: str, said: str, params: TurnParams) -> str | None:
    """The turn that this request has begun; None if there is none now, which holds until the next checkpoint.

    Raises `InvalidCommand` if the turn has another input or other parameters, and `Busy` if the ledger cannot be read.
    """
    await trio.lowlevel.checkpoint()
    dropped_before_read: int | None = None
    while (turn := session.find_request(request_id)) is None:
        if session.turns_dropped == dropped_before_read or not _may_be_dropped(session, request_id):
            return None
        dropped_before_read = session.turns_dropped
        turn_id = await _read(session, request_id)
        if turn_id is not None:
            return turn_id
    _check_same(turn, said, params)
    return turn.turn_id


def check_request_id(request_id: object) -> None:
    """Raises `InvalidCommand` unless it is a plain string of 1 to 128 printable characters."""
    if type(request_id) is not str or not request_id.isprintable() or not 1 <= len(request_id) <= MAX_REQUEST_CHARS:
        raise InvalidCommand(f"A request id must be a string of 1 to {MAX_REQUEST_CHARS} printable characters.")


def with_dropped(hashes: frozenset[int] | None, request_id: str) -> frozenset[int] | None:
    """The hashes after one more turn was dropped; None if they become too many."""
    return None if hashes is None or len(hashes) >= MAX_REMEMBERED else hashes | {hash(request_id)}


async def _read(session: RequestHistory, request_id: str) -> str | None:
    cause: LedgerUnavailable | None = None
    try:
        with trio.move_on_after(LEDGER_PATIENCE):
            return await session.read_request(request_id)
    except LedgerUnavailable as error:
        cause = error
    raise Busy("The ledger cannot be read now. Ask again.") from cause


def _may_be_dropped(session: RequestHistory, request_id: str) -> bool:
    return session.dropped_requests is None or hash(request_id) in session.dropped_requests


def _check_same(turn: Turn, said: str, params: TurnParams) -> None:
    if turn.mode_decision is not None:  # a classifier need not decide the same again
        params = evolve(params, mode=turn.params.mode)
    if (turn.input_digest, turn.params) != (digest_bytes(said.encode()), params):
        raise InvalidCommand("That request id began a turn with another input or other parameters.")
