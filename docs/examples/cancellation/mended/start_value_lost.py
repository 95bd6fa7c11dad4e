"""Task_status start lost, mended."""

import trio


async def writer(*, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    stop = trio.CancelScope(shield=True)  # outlives a cancel, to flush
    await trio.sleep(0.01)  # open the log
    task_status.started(stop)
    await trio.lowlevel.checkpoint_if_cancelled()  # then started() did nothing
    with stop:
        await trio.sleep_forever()


async def scenario() -> None:
    async with trio.open_nursery() as nursery:
        stop = await nursery.start(writer)
        try:
            await trio.sleep(0.01)  # the work
        finally:
            stop.cancel()
