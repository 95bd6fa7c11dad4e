"""Copy of a ledger as a new one, in a file or a database: every row as it is, so every digest stays.

The source is read as of one moment, also while a stage writes it, and audited first. The copy exists when all of it is
written, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import Altered
from footlights.authority.ledger.address import LedgerUrl
from footlights.authority.ledger.names import ledger_name, reader_at

if TYPE_CHECKING:
    import os

    from footlights.authority.audit.audit import AuditReport


def copy_ledger(source: str | os.PathLike[str] | LedgerUrl, target: str | os.PathLike[str] | LedgerUrl) -> AuditReport:
    """Copy a ledger, and audit both. The report is that of the copy.

    Raises `Altered` if the source is, `InvalidCommand` if the target exists, `LedgerUnreadable` and
    `LedgerUnavailable`. Then there is no copy.
    """
    place = ledger_name(target)
    with reader_at(source) as reader:
        before = audit(reader)
        if before.flaw is not None:
            raise Altered(before.flaw.place, before.flaw.what, before.flaw.position)
        if isinstance(place, LedgerUrl):
            from footlights.authority.ledger.postgres.loading import load_world

            load_world(place, reader)
        else:
            from footlights.authority.ledger.sqlite.loading import load_file

            load_file(place, reader)
    with reader_at(place) as reader:
        after = audit(reader, before.head, tools_head=before.tools_head)
    if after.flaw is not None:
        raise Altered(after.flaw.place, after.flaw.what, after.flaw.position)
    return after
