"""Readiness of a server: whether new work should be sent to it, and if not, why.

A ledger that can check itself (those in a file or a database can) is asked to write, so that an idle server notices a
full disk, and becomes ready again by itself when there is room. Any number of requests cause one such write in two
seconds.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

import trio

from footlights.errors import LedgerFenced, LedgerUnavailable

if TYPE_CHECKING:
    from footlights_transports.access.session_access import SessionAccess

Reason: TypeAlias = Literal["draining", "ledger", "rule", "worker"]

CHECK_SECONDS = 2.0
"""Validity of a check's result, and timeout of a check."""


@runtime_checkable
class SelfCheckingLedger(Protocol):
    """A ledger that can say whether it could keep a commit now."""

    async def check_writable(self) -> None:
        """Raises `LedgerUnavailable`."""
        ...


class Readiness:
    """Readiness of one world, for which `keep_checking` runs as a task: a slow write cannot be cancelled."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._asked = trio.Event()
        self._answered = trio.Event()
        self._writable = True
        self._known_until = -inf

    async def keep_checking(self) -> None:
        """Check the ledger on demand, until cancelled."""
        while True:
            await self._asked.wait()
            self._writable = await _check(self._access.stage.ledger)
            self._known_until = trio.current_time() + CHECK_SECONDS
            self._asked = trio.Event()
            answered, self._answered = self._answered, trio.Event()
            answered.set()

    async def reasons(self) -> list[Reason]:
        """Why the server is not ready; empty if it is. A ledger that cannot check itself counts as writable."""
        if self._access.admission.is_closing:
            await trio.lowlevel.checkpoint()
            return ["draining"]
        found: list[Reason] = [] if await self._can_write() else ["ledger"]
        return found if self.overdue_rule is None else [*found, "rule"]

    @property
    def overdue_rule(self) -> str | None:
        """The rule for which every commit waits, because it has not returned."""
        return self._access.stage.overdue_rule

    async def _can_write(self) -> bool:
        if trio.current_time() < self._known_until:
            await trio.lowlevel.checkpoint()
            return self._writable
        self._asked.set()
        with trio.move_on_after(CHECK_SECONDS):
            await self._answered.wait()
            return self._writable
        return False


async def _check(ledger: object) -> bool:
    if isinstance(ledger, SelfCheckingLedger):
        try:
            await ledger.check_writable()
        except (LedgerUnavailable, LedgerFenced):
            return False
    return True
