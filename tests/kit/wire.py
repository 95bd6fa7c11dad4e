"""Wire to a database that loses answers and delays statements: connections whose statements fail on cue.

- `before`: the connection ends before the statement is sent.
- `after`: the statement takes effect, and the connection ends before the answer.
- `late`: the connection ends, and the statement arrives on its own, so many statements later.
- `refused`: the server reports an error of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import psycopg
from attrs import Factory, define

from footlights.authority.ledger.postgres.connection import connect

if TYPE_CHECKING:
    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.postgres.connection import Raw

How: TypeAlias = Literal["before", "after", "late", "refused"]


class Stopped(BaseException):
    """The process that waited for the statement is stopped for ever, and its connection is still there."""


@define(eq=False)
class Wire:
    """Opens connections. `arm` says which statement from now on fails, counting from 0."""

    fail_at: int | None = None
    how: How = "before"
    delay: int = 0
    """How many statements are sent before a late one arrives."""
    error: str = "53100"
    """The code of a refusal: the disk is full."""
    statements: list[bytes] = Factory(list[bytes])
    stop_after: bytes | None = None
    """A statement that begins like this is the last thing that its process sees."""
    stopped: Any = None
    """Closes the connection of that process."""
    _late: list[tuple[int, LedgerUrl, Any, Any]] = Factory(list[Any])

    def arm(self, fail_at: int, how: How, delay: int = 0) -> None:
        self.statements.clear()
        self.fail_at, self.how, self.delay = fail_at, how, delay

    def connect(self, url: LedgerUrl) -> Raw:
        raw = connect(url)
        execute = raw.execute

        def executing(query: Any, params: Any = None, **options: Any) -> Any:
            number = len(self.statements)
            self.statements.append(query)
            self.deliver(number)
            if self.stop_after is not None and query.startswith(self.stop_after):
                execute(query, params, **options)
                self.stopped, raw.close = _Kept(raw.close), lambda: None  # type: ignore[method-assign]
                raise Stopped
            if number != self.fail_at:
                return execute(query, params, **options)
            if self.how == "refused":
                raised = f"DO $$ BEGIN RAISE EXCEPTION 'made by a test' USING ERRCODE = '{self.error}'; END $$"
                return execute(raised.encode())
            if self.how == "after":
                execute(query, params, **options)
            if self.how == "late":
                self._late.append((number + self.delay, url, query, params))
            raw.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        raw.execute = executing  # type: ignore[method-assign]
        return raw

    def deliver(self, number: int | None = None) -> None:
        """Let late statements arrive: those that are due, or all."""
        for each in list(self._late):
            due, url, query, params = each
            if number is None or number > due:
                self._late.remove(each)
                with connect(url) as raw:
                    raw.execute(query, params)


@define
class _Kept:
    close: Any
