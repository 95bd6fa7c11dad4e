"""Item lost from a channel, mended."""

import trio


async def read_batch(source: trio.MemoryReceiveChannel[int], size: int, into: list[int]) -> None:
    for _ in range(size):
        into.append(await source.receive())


async def scenario() -> None:
    send, receive = trio.open_memory_channel[int](10)
    got: list[int] = []
    with send, receive:
        for item in range(6):
            send.send_nowait(item)
        try:
            for _ in range(2):
                await read_batch(receive, 3, into=got)
        finally:
            assert len(got) + receive.statistics().current_buffer_used == 6
