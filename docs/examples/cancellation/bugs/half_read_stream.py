"""Timeout that leaves a half-read stream.

A timeout between length and body puts the connection back into the pool in mid-frame; the next request reads rubbish.
"""

import trio
import trio.testing


async def request(pool: list[trio.abc.Stream]) -> bytes:
    stream = pool.pop()
    try:
        length = await stream.receive_some(1)
        return bytes(await stream.receive_some(length[0]))  # here
    finally:
        pool.append(stream)


async def scenario() -> None:
    client, server = trio.testing.memory_stream_pair()
    await server.send_all(b"\x05first\x06second")
    pool: list[trio.abc.Stream] = [client]
    try:
        with trio.move_on_after(5):
            await request(pool)
    finally:
        with trio.CancelScope(shield=True):
            if pool:
                assert await request(pool) in (b"first", b"second")
