"""asyncio: a `StageThread` in a program on asyncio. Calls are awaited, and events are iterated over.

async with opened(StageThread(cast)) as stage:
    session = await answer(stage.start_soon())
    await answer(session.begin_turn_soon("A room?"))
    async for event in read(session): ...
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from footlights_transports.embed.reading import Reading

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from concurrent.futures import Future

    from footlights_transports.embed.reading import Source
    from footlights_transports.embed.stage_thread import StageThread

T = TypeVar("T")


@asynccontextmanager
async def opened(stage: StageThread) -> AsyncGenerator[StageThread]:
    """Open the stage, and close it at the end, while the loop goes on.

    A block that is cancelled while the stage closes does not wait any longer, and the stage goes on closing.
    """
    try:
        yield await asyncio.to_thread(stage.open)
    finally:
        await asyncio.to_thread(stage.__exit__, *sys.exc_info())


def answer(ticket: Future[T]) -> asyncio.Future[T]:
    """Await the result of a call: what a variant that ends in `_soon` returns.

    A task that is cancelled withdraws the call if that has not begun; otherwise the call is made all the same.
    """
    return asyncio.wrap_future(ticket)


def read(source: Source[T]) -> AsyncIterator[T]:
    """Iterate over the events of a session, or over a feed of commits, until it ends. Raises what `poll` raises.

    Cancelling loses nothing, and the next iteration goes on where this one was left. While one task waits here,
    another is refused with `InvalidCommand`.
    """
    return Reading(source, answer)
