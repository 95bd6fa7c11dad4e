"""Reading: what can be polled as an async iterator, for hosts whose coroutines are not trio's.

It holds nothing: each step polls one item, and waits only if there is none. So a step that is cancelled loses nothing,
and an iteration that was left goes on with a new one.
"""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


class Source(Protocol[T]):
    """A `ThreadSession`, a `PolledStream` or a `PolledFeed`."""

    def poll(self, max_events: int = ..., timeout: float = ...) -> list[T]: ...
    def on_ready(self, call: Callable[[], object] | None) -> None: ...
    @property
    def is_awaited(self) -> bool: ...
    @property
    def is_open(self) -> bool: ...


class Reading(Generic[T]):
    """Iterates over one source with what the host awaits a future by."""

    def __init__(self, source: Source[T], answer: Callable[[Future[None]], Awaitable[None]]) -> None:
        self._source = source
        self._answer = answer

    def __aiter__(self) -> Reading[T]:
        return self

    async def __anext__(self) -> T:
        if self._source.is_awaited:
            raise InvalidCommand("Something waits for this stream already. Subscribe once more for a second reader.")
        while not (items := self._source.poll(1)):
            if not self._source.is_open:
                raise StopAsyncIteration
            ready: Future[None] = Future()
            self._source.on_ready(lambda ready=ready: _wake(ready))  # type: ignore[misc]
            try:
                await self._answer(ready)
            finally:
                self._source.on_ready(None)
        return items[0]


def _wake(ready: Future[None]) -> None:
    with suppress(InvalidStateError):  # the wait was cancelled, or this is its second call, for the end
        ready.set_result(None)
