"""Errors of ledgers in databases."""

from __future__ import annotations

from footlights.errors import LedgerUnavailable


class LedgerFormat(LedgerUnavailable):
    """The file or database is not a ledger, or a later version of Footlights wrote it."""

    code = "ledger_format"


class LedgerUnreachable(LedgerUnavailable):
    """The database cannot be reached now. A commit waits for it."""


class LedgerDamaged(LedgerUnavailable):
    """It is a ledger, and its content is inconsistent. `footlights audit` finds the place."""

    code = "ledger_damaged"
