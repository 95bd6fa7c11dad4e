"""Queue get, then process cancelled.

The job has left the queue when the work on it is cancelled: neither done nor queued.
"""

import trio


async def work(send: trio.MemorySendChannel[str], receive: trio.MemoryReceiveChannel[str]) -> str:
    job = await receive.receive()
    await trio.sleep(0.01)  # here: do the job
    return job


async def scenario() -> None:
    send, receive = trio.open_memory_channel[str](3)
    done: list[str] = []
    with send, receive:
        for job in "abc":
            send.send_nowait(job)
        try:
            while len(done) < 3:
                done.append(await work(send, receive))
        finally:
            assert len(done) + receive.statistics().current_buffer_used == 3
