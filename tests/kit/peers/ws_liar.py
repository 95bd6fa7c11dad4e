"""WebSocket server that sends what a test wants, lawful or not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, serve_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

HANG_UP = "hang up"


@asynccontextmanager
async def open_liar(
    answer: Callable[[dict[str, Any]], Iterable[object]], *, subprotocol: str | None = "footlights.v1"
) -> AsyncGenerator[str, None]:
    """The address of a server that answers each command with these messages, as they are."""

    async def serve(request: WebSocketRequest) -> None:
        socket = await request.accept(subprotocol=subprotocol)
        try:
            while True:
                for message in answer(orjson.loads(await socket.get_message())):
                    if message is HANG_UP:
                        await socket.aclose()
                    await socket.send_message(message if isinstance(message, str) else orjson.dumps(message).decode())
        except ConnectionClosed:
            pass

    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, serve, "127.0.0.1", 0, None))
        yield f"ws://127.0.0.1:{server.port}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_peer(say: Callable[[trio.SocketStream], Any]) -> AsyncGenerator[str, None]:
    """The address of a TCP server that runs `say` for each connection, and need not speak WebSocket."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, say, 0, host="127.0.0.1"))
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()
