"""Timeout that leaves a half-read stream, mended."""

import trio
import trio.testing


async def request(pool: list[trio.abc.Stream]) -> bytes:
    stream = pool.pop()
    try:
        length = await stream.receive_some(1)
        body = bytes(await stream.receive_some(length[0]))
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    pool.append(stream)
    return body


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
