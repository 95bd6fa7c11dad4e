"""Background system task left over.

A system task is not under the scenario's cancel scope, and the code that stops it is not in a finally.
"""

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
    await trio.sleep(0.03)  # here: the work
    heart.scope.cancel()
    await heart.stopped.wait()
