"""Lock left held, mended."""

import trio


class Cache:
    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.data: dict[str, str] = {}

    async def refresh(self, key: str) -> None:
        async with self.lock:
            await trio.sleep(0.01)  # ask the backend
            self.data[key] = "fresh"


async def scenario() -> None:
    cache = Cache()
    async with trio.open_nursery() as nursery:
        for key in ("a", "b"):
            nursery.start_soon(cache.refresh, key)
