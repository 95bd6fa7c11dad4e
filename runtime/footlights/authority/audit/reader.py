"""Ledger reader: the protocol by which an audit reads the rows of a ledger, and the rows.

A reader returns data of a single moment, even while a stage writes, and changes nothing. It checks the shape of rows;
`footlights.authority.audit.audit` checks their content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights.authority.world.checkpoint import NodeRow


class LedgerUnreadable(FootlightsError):
    """The file does not exist, is not a ledger, or has a format that this version cannot read."""

    code = "ledger_unreadable"


@frozen
class Flaw:
    """An altered part of a ledger."""

    place: str
    """The part: a commit, an epoch, a tool step, a request, the genesis, a world, a node, the ledger or the tools as a
    whole, their ends, the schema or the file."""
    what: str
    """The flaw, as a sentence."""
    position: int | None = None
    """The position of the commit, if it is one."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Altered(FootlightsError):
    """A part of a ledger was altered."""

    code = "ledger_altered"

    def __init__(self, place: str, what: str, position: int | None = None) -> None:
        self.flaw = Flaw(place, what, position)
        super().__init__(str(self.flaw))


@frozen
class Entry:
    """A commit, with its link in the chain of all commits."""

    position: int
    epoch: int
    session_id: str
    turn_id: str
    record_json: bytes
    commit_digest: str
    entry_digest: str


@frozen
class EpochRow:
    """One opening of the ledger by a stage."""

    epoch: int
    first_position: int
    """The position of its first commit, or where that would have been."""
    digest: str


@frozen
class GenesisRow:
    """The genesis of the ledger."""

    format: int
    digest: str
    is_json: bool
    """Whether its world is JSON, and kept as the first checkpoint. Otherwise it is of the host's own kind."""


@frozen
class WorldRow:
    """A checkpoint: a world that is kept as nodes, so that a stage need not rebuild it."""

    position: int
    """The position of the last commit that it contains; 0 before the first."""
    root: int
    """The number of its root."""
    first: int
    """The number of the first node of its generation: none of its nodes has a lower one."""
    digest: str
    """The digest of the world."""


@frozen
class ToolRow:
    """One tool step, with its link in the chain of all tool steps."""

    position: int
    epoch: int
    """The epoch of the step."""
    key: str
    step: str
    digest: str


@frozen
class RequestRow:
    """The request of a turn, which is in no chain. Its id is not read."""

    position: int
    session_id: str
    turn_id: str
    tool_position: int | None
    """The tool step with which it was written; None if it was written with the commit."""


@frozen
class EndsRow:
    """The last digest of each chain, as every transaction writes it."""

    entry_digest: str
    """The digest of the last epoch or commit."""
    tool_digest: str
    """The digest of the last tool step."""


class LedgerReader(Protocol):
    """Reads a ledger. Raises `Altered` for a malformed row, and `LedgerUnreadable`."""

    def check_schema(self) -> None:
        """Raises `Altered` if the tables and indexes are not exactly the expected ones."""
        ...

    def genesis(self) -> GenesisRow: ...

    def epochs(self) -> Iterator[EpochRow]:
        """In order."""
        ...

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Those after this position, in order."""
        ...

    def worlds(self) -> Sequence[WorldRow]:
        """In order, the genesis first. None for a world of the host's own kind."""
        ...

    def nodes(self, first: int, last: int) -> Iterator[NodeRow]:
        """Those with these numbers and all between, in order."""
        ...

    def tools(self) -> Iterator[ToolRow]:
        """In order."""
        ...

    def requests(self) -> Iterator[RequestRow]:
        """In order."""
        ...

    def ends(self) -> EndsRow: ...

    def check_file(self) -> None:
        """Raises `Altered` if the storage is damaged, so that a lookup could miss a row or find a wrong one."""
        ...
