"""Lock left held. acquire() and release() with an await between and no try/finally: the lock outlives its owner."""

import trio


class Cache:
    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.data: dict[str, str] = {}

    async def refresh(self, key: str) -> None:
        await self.lock.acquire()
        await trio.sleep(0.01)  # here: ask the backend
        self.data[key] = "fresh"
        self.lock.release()


async def scenario() -> None:
    cache = Cache()
    async with trio.open_nursery() as nursery:
        for key in ("a", "b"):
            nursery.start_soon(cache.refresh, key)
