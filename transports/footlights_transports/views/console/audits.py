"""Audits that a console begins: one at a time, in a thread, of the ledger's file, which goes on being written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.errors import Busy, InvalidCommand
from footlights_transports.server.measured_ledger import FileLedger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from footlights import Ledger
    from footlights.authority.audit.reader import Entry, LedgerReader


class _CountingReader:
    """A reader that counts the commits that were read. Satisfies `LedgerReader`."""

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader
        self.total = reader.count()
        self.done = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def entries(self, after: int = -1) -> Iterator[Entry]:
        entries = self._reader.entries() if after < 0 else self._reader.entries(after)
        for self.done, entry in enumerate(entries, 1):
            yield entry


class Audits:
    """The audits of one server."""

    def __init__(self, ledger: Ledger) -> None:
        self._path: Path | None = ledger.path if isinstance(ledger, FileLedger) else None
        self._begin, self._begun = trio.open_memory_channel[None](1)
        self._reader: _CountingReader | None = None
        self._report: dict[str, Any] | None = None
        self._is_running = False

    @property
    def is_possible(self) -> bool:
        """Whether the ledger is a file."""
        return self._path is not None

    def begin(self) -> None:
        """Begin an audit. Raises `InvalidCommand` without a file, and `Busy` while another one runs."""
        if self._path is None:
            raise InvalidCommand("This ledger is no file that could be audited.")
        if self._is_running:
            raise Busy("An audit is running.")
        self._is_running, self._reader, self._report = True, None, None
        self._begin.send_nowait(None)

    def progress(self) -> dict[str, Any]:
        """How far it is, and what it found."""
        reader = self._reader
        counted = {"done": 0, "total": 0} if reader is None else {"done": reader.done, "total": reader.total}
        return {"possible": self.is_possible, "running": self._is_running, **counted, "report": self._report}

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run each audit that is begun, until cancelled. A thread is left alone then: it only reads."""
        task_status.started()
        async for _ in self._begun:
            self._report = await trio.to_thread.run_sync(self._audit, abandon_on_cancel=True)
            self._is_running = False

    def _audit(self) -> dict[str, Any]:
        from footlights.authority.audit.audit import audit  # a server that nobody audits needs no auditor

        assert self._path is not None
        try:
            with SqliteReader(self._path) as reader:
                self._reader = _CountingReader(reader)
                report = audit(cast("LedgerReader", self._reader))
        except LedgerUnreadable as error:
            return {"ok": False, "flaw": _shown(error)}
        return {**attrs.asdict(report), "ok": report.ok, "flaw": None if report.flaw is None else _shown(report.flaw)}


def _shown(flaw: object) -> str:
    """A flaw as text that JSON can hold: what was altered may be no text."""
    return str(flaw).encode(errors="backslashreplace").decode()
