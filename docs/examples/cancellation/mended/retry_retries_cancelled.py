"""Retry loop that retries Cancelled, mended."""

import trio


class Server:
    calls = 0

    async def fetch(self) -> str:
        self.calls += 1
        await trio.sleep(0.01)
        if self.calls < 3:
            raise OSError("connection reset")
        return "page"


async def retry(server: Server) -> str:
    while True:
        try:
            return await server.fetch()
        except OSError:
            continue


async def scenario() -> None:
    server = Server()
    page = await retry(server)
    if page != "page" or server.calls != 3:
        raise RuntimeError(page)
