"""Item lost from a channel.

A half-full batch is a local variable: a cancel while waiting for the next item drops the items already taken.
"""

import trio


async def read_batch(source: trio.MemoryReceiveChannel[int], size: int) -> list[int]:
    batch: list[int] = []
    while len(batch) < size:
        batch.append(await source.receive())  # here
    return batch


async def scenario() -> None:
    send, receive = trio.open_memory_channel[int](10)
    got: list[int] = []
    with send, receive:
        for item in range(6):
            send.send_nowait(item)
        try:
            for _ in range(2):
                got += await read_batch(receive, 3)
        finally:
            assert len(got) + receive.statistics().current_buffer_used == 6
