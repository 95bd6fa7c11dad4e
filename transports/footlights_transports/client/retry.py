"""Retry: the policy for reconnecting after a loss; and `Backoff`, the state of one series of losses."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import Busy, FootlightsError, InvalidCommand
from footlights_transports.client.protocol import ConnectionLost
from footlights_transports.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRANSIENT: tuple[type[FootlightsError], ...] = (ConnectionLost, Busy, RateLimited)
"""Errors after which a new attempt may succeed."""
STABLE_SECONDS = 5.0
"""A connection that lasted this long ends a series of losses."""


def _no_jitter() -> float:
    return 0.0


def _tell_nobody(_: bool) -> None:
    pass


@frozen(kw_only=True)
class Retry:
    """The waits between attempts, in seconds. Raises `InvalidCommand` for values that make no sense."""

    first: float = 0.05
    """The wait after the second loss in a row; after the first one the client tries again at once."""
    longest: float = 5.0
    """Each wait is twice the previous one, up to this."""
    patience: float = 60.0
    """The client gives up when the server has not answered for this long after a loss."""
    jitter: Callable[[], float] = _no_jitter
    """From 0 to 1: how much of half a wait to leave out. For many clients of one server, use `random.random`."""
    tell: Callable[[bool], object] = _tell_nobody
    """Called with False when the first attempt after a loss has failed too, and with True when one succeeds. The
    commands and each stream have connections of their own, and tell of their own."""

    def __attrs_post_init__(self) -> None:
        if not (0 < self.first <= self.longest and self.patience >= 0):
            raise InvalidCommand("A retry needs 0 < first <= longest, and a patience of at least 0.")

    def waits(self) -> Iterator[float]:
        """The waits, without end."""
        wait = self.first
        while True:
            yield wait * (1 - self.jitter() / 2)
            wait = min(wait * 2, self.longest)


class Backoff:
    """A series of losses: when it began, and how long to wait next."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._connected_at: float | None = None
        self._was_told = False
        """Whether the host was told of the loss."""
        self.reset()

    def connected(self) -> None:
        """There is a connection. If it is stable, the next loss begins a new series."""
        self._connected_at = trio.current_time()
        if self._was_told:
            self._was_told = False
            self._retry.tell(True)

    def answered(self) -> None:
        """The server answered, so patience begins anew. The waits do not: the connection may break at once."""
        self._since: float | None = None

    def reset(self) -> None:
        """End the series: the connection works."""
        self.answered()
        self._waits: Iterator[float] = chain((0.0,), self._retry.waits())

    async def wait_after(self, error: FootlightsError) -> None:
        """Wait before the next attempt. Raises the error when patience is exhausted."""
        now = trio.current_time()
        connected_at, self._connected_at = self._connected_at, None
        if connected_at is not None and now - connected_at >= STABLE_SECONDS:
            self.reset()
        if self._since is None:
            self._since = now
        elif now - self._since > self._retry.patience:
            self.reset()  # a later attempt has the whole patience again
            await trio.lowlevel.checkpoint()
            raise error
        wait = next(self._waits)
        if wait > 0 and isinstance(error, ConnectionLost) and not self._was_told:
            self._was_told = True
            self._retry.tell(False)
        await trio.sleep(wait)
