"""Two-step resource acquire, mended."""

import trio


async def fetch(total: trio.CapacityLimiter, per_host: trio.CapacityLimiter) -> None:
    async with total, per_host:
        await trio.sleep(0.01)  # the request


async def scenario() -> None:
    total, per_host = trio.CapacityLimiter(2), trio.CapacityLimiter(1)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(fetch, total, per_host)
