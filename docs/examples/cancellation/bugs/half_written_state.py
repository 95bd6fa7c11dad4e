"""Half-written state. Two fields that belong together (items, size) are written on either side of an await."""

import trio


class Cache:
    def __init__(self) -> None:
        self.items: dict[str, bytes] = {}
        self.size = 0  # always the summed length of items

    async def put(self, key: str, value: bytes) -> None:
        self.items[key] = value
        await trio.sleep(0.01)  # here: write through to the disk
        self.size += len(value)


async def scenario() -> None:
    cache = Cache()
    try:
        await cache.put("a", b"one")
        await cache.put("b", b"three")
    finally:
        assert cache.size == sum(map(len, cache.items.values()))
