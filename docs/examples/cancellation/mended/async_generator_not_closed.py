"""Async generator not closed, mended."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

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
    async with aclosing(rows(3)) as cursor:
        async for row in cursor:
            await trio.sleep(0.01)  # handle the row
            total += row
