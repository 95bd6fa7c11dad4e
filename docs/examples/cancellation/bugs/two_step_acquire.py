"""Two-step resource acquire.

The try begins after the second acquire: a cancel while waiting for it leaks the first.
"""

import trio


async def fetch(total: trio.CapacityLimiter, per_host: trio.CapacityLimiter) -> None:
    await total.acquire()
    await per_host.acquire()  # here
    try:
        await trio.sleep(0.01)  # the request
    finally:
        per_host.release()
        total.release()


async def scenario() -> None:
    total, per_host = trio.CapacityLimiter(2), trio.CapacityLimiter(1)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(fetch, total, per_host)
