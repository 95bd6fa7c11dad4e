"""Move_on_after mistaken for success, mended."""

import trio


class Outbox:
    def __init__(self) -> None:
        self.flushed = trio.Event()
        self.clean = False

    async def write(self) -> None:
        await trio.sleep(0.01)  # to the disk
        self.flushed.set()

    async def close(self) -> None:
        with trio.move_on_after(0.5, shield=True):
            await self.flushed.wait()
            self.clean = True


async def scenario() -> None:
    box = Outbox()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(box.write)
            try:
                await trio.sleep(0.01)  # the work
            finally:
                await box.close()
    finally:
        assert box.clean == box.flushed.is_set()
