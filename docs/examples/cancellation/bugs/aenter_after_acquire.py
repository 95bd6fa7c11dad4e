"""Cancel in __aenter__ after acquiring.

When __aenter__ raises, __aexit__ is not called: the slot taken before the handshake stays taken.
"""

import trio


class Connection:
    def __init__(self, slots: trio.Semaphore) -> None:
        self.slots = slots

    async def __aenter__(self) -> "Connection":
        await self.slots.acquire()
        await trio.sleep(0.01)  # here: handshake
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.slots.release()


async def scenario() -> None:
    slots = trio.Semaphore(2, max_value=2)
    for _ in range(3):
        async with Connection(slots):
            await trio.sleep(0.01)  # talk
