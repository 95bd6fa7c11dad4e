"""How a client comes back to a server that it lost: at once, then less and less often, and not for ever."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import trio
from attrs import frozen

from footlights.errors import Busy, FootlightsError, InvalidCommand
from footlights_transports.client.errors import ConnectionLost
from footlights_transports.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_T = TypeVar("_T")

PASSING: tuple[type[FootlightsError], ...] = (ConnectionLost, Busy, RateLimited)
"""What may be otherwise a moment later."""
A_WHILE = 5.0
"""A connection that stood for so many seconds was a good one."""


def _on_time() -> float:
    return 0.0


@frozen(kw_only=True)
class Retry:
    """How long to wait after each loss. Times are seconds. Raises `InvalidCommand` for what makes no sense."""

    first: float = 0.05
    """After the second loss in a row; after the first one the client tries again at once."""
    longest: float = 5.0
    """Each wait is twice the one before, up to this."""
    patience: float = 60.0
    """When the server has not answered for so long after a loss, the client gives up."""
    jitter: Callable[[], float] = _on_time
    """From 0 to 1: how much of half a wait to leave out. Many clients of one server want `random.random`."""

    def __attrs_post_init__(self) -> None:
        if not (0 < self.first <= self.longest and self.patience >= 0):
            raise InvalidCommand("A retry needs 0 < first <= longest, and a patience of at least 0.")

    def waits(self) -> Iterator[float]:
        """One after the other; it never ends."""
        wait = self.first
        while True:
            yield wait * (1 - self.jitter() / 2)
            wait = min(wait * 2, self.longest)

    async def until_done(
        self, attempt: Callable[[], Awaitable[_T]], passing: tuple[type[FootlightsError], ...] = PASSING
    ) -> _T:
        """What the attempt returns, once it does. Raises what is not `passing`, and the last error when it gives up."""
        losses = Losses(self)
        while True:
            try:
                return await attempt()
            except passing as error:
                await losses.wait_after(error)


class Losses:
    """What was lost in a row, and since when."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._connected_at: float | None = None
        self.forget()

    def connected(self) -> None:
        """There is a connection again. If it stands for a while, what was lost before it is forgotten."""
        self._connected_at = trio.current_time()

    def answered(self) -> None:
        """The server is there, and is not given up. Whether it works is not known yet: the waits do not begin anew."""
        self._since: float | None = None

    def forget(self) -> None:
        """Something worked."""
        self.answered()
        self._waits: Iterator[float] = chain((0.0,), self._retry.waits())

    async def wait_after(self, error: FootlightsError) -> None:
        """Wait until it is time to try again. Raises the error when it is not worth it any more."""
        now = trio.current_time()
        stood_since, self._connected_at = self._connected_at, None
        if stood_since is not None and now - stood_since >= A_WHILE:
            self.forget()
        if self._since is None:
            self._since = now
        elif now - self._since > self._retry.patience:
            self.forget()  # whoever tries once more, later, has patience again
            await trio.lowlevel.checkpoint()
            raise error
        await trio.sleep(next(self._waits))
