"""The rival: a turn's worth of items through a bare trio memory channel, `await send` to `await receive`.

The items are plain strings that exist beforehand: no envelope, no numbering, no classes, no limits in bytes, no
replay, no commit. What Footlights adds must cost less than what awaiting each item costs.
"""

from __future__ import annotations

import trio

from footlights_bench.lib.scripts import EVENTS_PER_TURN, TOKEN


async def play_through_channel(buffer: int, turns: int) -> int:
    """As many items as the turns have events; returns how many arrived."""
    arrived = 0
    for _ in range(turns):
        send, receive = trio.open_memory_channel[str](buffer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_produce, send)
            async for _item in receive:
                arrived += 1
    return arrived


async def _produce(send: trio.MemorySendChannel[str]) -> None:
    async with send:
        for _ in range(EVENTS_PER_TURN):
            await send.send(TOKEN)
