"""Task_status start lost.

The child is already shielded when start() is cancelled: started() is then ignored without a word, nobody gets the
handle, start() never returns.
"""

import trio


async def writer(*, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    stop = trio.CancelScope(shield=True)  # outlives a cancel, to flush
    with stop:
        await trio.sleep(0.01)  # open the log
        task_status.started(stop)
        await trio.sleep_forever()


async def scenario() -> None:
    async with trio.open_nursery() as nursery:
        stop = await nursery.start(writer)  # here
        try:
            await trio.sleep(0.01)  # the work
        finally:
            stop.cancel()
