"""Background system task left over, mended."""

import trio


class Heartbeat:
    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.stopped = trio.Event()

    async def run(self) -> None:
        with self.scope:
            while True:
                await trio.sleep(0.01)  # beat
        self.stopped.set()


async def scenario() -> None:
    heart = Heartbeat()
    trio.lowlevel.spawn_system_task(heart.run)
    try:
        await trio.sleep(0.03)  # the work
    finally:
        heart.scope.cancel()
        with trio.CancelScope(shield=True):
            await heart.stopped.wait()
