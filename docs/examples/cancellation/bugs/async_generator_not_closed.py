"""Async generator not closed.

A cancel in the body of the `async for` leaves the generator at its yield; its finally waits for the garbage
collector.
"""

from collections.abc import AsyncGenerator

import trio


async def rows(count: int) -> AsyncGenerator[int, None]:
    try:
        for row in range(count):
            await trio.sleep(0.01)  # fetch one
            yield row
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.01)  # close the cursor


async def scenario() -> None:
    total = 0
    async for row in rows(3):
        await trio.sleep(0.01)  # here: handle the row
        total += row
