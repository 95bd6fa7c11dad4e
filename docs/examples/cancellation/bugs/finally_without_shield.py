"""Finally: await without a shield.

Once cancelled, the await in the finally raises Cancelled at once: LOGOUT is never sent.
"""

import trio


async def session(wire: trio.MemorySendChannel[str]) -> None:
    await wire.send("LOGIN")
    try:
        await trio.sleep(0.01)  # the work
    finally:
        await wire.send("LOGOUT")  # here


async def scenario() -> None:
    wire, server = trio.open_memory_channel[str](10)
    heard = []
    with wire, server:
        try:
            await session(wire)
        finally:
            while server.statistics().current_buffer_used:
                heard.append(server.receive_nowait())
            assert heard.count("LOGIN") == heard.count("LOGOUT")
