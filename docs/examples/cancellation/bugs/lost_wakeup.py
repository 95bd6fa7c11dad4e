"""Lost wake-up.

The one caller that refreshes for all is cancelled before it sets the Event; every later caller waits for ever.
"""

import trio


class Tokens:
    def __init__(self) -> None:
        self.value: str | None = None
        self.pending: trio.Event | None = None  # somebody is asking already

    async def get(self) -> str:
        while self.value is None:
            if self.pending is not None:
                await self.pending.wait()
                continue
            self.pending = trio.Event()
            await trio.sleep(0.01)  # here: ask the auth server
            self.value = "token"
            self.pending.set()
        return self.value


async def scenario() -> None:
    tokens = Tokens()
    try:
        await tokens.get()
    finally:
        with trio.CancelScope(shield=True):
            await tokens.get()  # to log out
