"""What somebody who examines a ledger sees of it: its rows as they stand, none of them believed yet.

A reader promises that everything it hands out belongs to one moment, also while a stage is writing, and that it
changes nothing. Whether the rows are true is for `footlights.authority.audit.audit` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Iterator


class LedgerUnreadable(FootlightsError):
    """The file is not there, is no ledger, or is one that this version cannot read."""

    code = "ledger_unreadable"


@frozen
class Flaw:
    """Something in a ledger that is not as it was written."""

    place: str
    """Which commit, which epoch, which step of a tool; the genesis, the world; the ledger or the tools as a whole, or
    what is kept of their ends; the schema or the file that holds all of it."""
    what: str
    """What is wrong with it: a sentence."""
    position: int | None = None
    """Of the commit, if it is one."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Altered(FootlightsError):
    """Something in a ledger is not as it was written."""

    code = "ledger_altered"

    def __init__(self, place: str, what: str, position: int | None = None) -> None:
        self.flaw = Flaw(place, what, position)
        super().__init__(str(self.flaw))


@frozen
class Entry:
    """One row of the ledger: a commit, and its place in the chain over all commits."""

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
    """Where its first commit is, or would have been."""
    digest: str


@frozen
class GenesisRow:
    """What the ledger began from."""

    format: int
    digest: str
    document: bytes | None
    """The world in canonical JSON; None if it is of the host's own kind."""


@frozen
class WorldRow:
    """The newest world, kept so that a stage need not make it again from the beginning."""

    position: int
    """The last commit that it contains; 0 if there is none yet."""
    document: bytes | None
    """In canonical JSON; None if it is of the host's own kind."""


@frozen
class ToolRow:
    """One step of a tool, and its place in the chain of all such steps."""

    position: int
    epoch: int
    """The one in which the step was taken."""
    key: str
    step: str
    digest: str


@frozen
class EndsRow:
    """The last digest of each chain, as it was written with what it ends."""

    entry_digest: str
    """Of the last epoch or commit."""
    tool_digest: str
    """Of the last step of a tool."""


class LedgerReader(Protocol):
    """Raises `Altered` for a row that is not even of the right shape, and `LedgerUnreadable`."""

    def check_schema(self) -> None:
        """Raises `Altered` if there is anything else than what holds the rows, or that is not made as it should be."""
        ...

    def genesis(self) -> GenesisRow: ...

    def epochs(self) -> Iterator[EpochRow]:
        """In order."""
        ...

    def entries(self) -> Iterator[Entry]:
        """In order."""
        ...

    def world(self) -> WorldRow: ...

    def tools(self) -> Iterator[ToolRow]:
        """In order."""
        ...

    def ends(self) -> EndsRow: ...

    def check_file(self) -> None:
        """Raises `Altered` if a stage that looks for one of the rows might not find it, or find another."""
        ...
