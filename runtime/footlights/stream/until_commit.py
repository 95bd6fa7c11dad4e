"""Iterator over a stream up to the commit_final of one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import EventType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from footlights.events import StreamEvent


class UntilCommit:
    """Every event of a stream up to the commit_final of a turn; none if `done`.

    Not an async generator, so that leaving the loop early leaves nothing to close.
    """

    __slots__ = ("_done", "_stream", "_turn_id")

    def __init__(self, stream: AsyncIterator[StreamEvent], turn_id: str, *, done: bool) -> None:
        self._stream = stream
        self._turn_id = turn_id
        self._done = done

    def __aiter__(self) -> UntilCommit:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._done:
            raise StopAsyncIteration
        event = await anext(self._stream)
        self._done = event.event_type is EventType.COMMIT_FINAL and event.turn_id == self._turn_id
        return event
