"""Socket left open, mended."""

from functools import partial

import trio


async def greet(stream: trio.SocketStream) -> None:
    await trio.sleep(0.01)  # look up the caller
    await stream.send_all(b"hello")


async def dial(port: int) -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    try:
        banner = await stream.receive_some(5)
        if not banner:
            raise OSError("hung up on us")
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return stream


async def scenario() -> None:
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, greet, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        async with await dial(port):
            pass
        nursery.cancel_scope.cancel()
