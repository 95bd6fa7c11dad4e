"""Cancel in __aenter__ after acquiring, mended."""

import trio


class Connection:
    def __init__(self, slots: trio.Semaphore) -> None:
        self.slots = slots

    async def __aenter__(self) -> "Connection":
        await self.slots.acquire()
        try:
            await trio.sleep(0.01)  # handshake
        except BaseException:
            self.slots.release()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.slots.release()


async def scenario() -> None:
    slots = trio.Semaphore(2, max_value=2)
    for _ in range(3):
        async with Connection(slots):
            await trio.sleep(0.01)  # talk
