"""Floods over WebSocket by a user with a token: commands, refused frames, control frames, empty frames, fragments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.raw.websocket import CONTINUATION, PING, PONG, TEXT, command, frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_bench.attack.floods.load import Flood, Load
    from footlights_bench.attack.raw.websocket import WebSocket

CONNECTIONS = 4
SEGMENT = 65_536
LARGE = 260_000
"""Bytes of a large frame: just below the default of `wire.max_frame_bytes`."""


async def flood_with(
    load: Load, one: bytes, *, begin: bytes = b"", connections: int = CONNECTIONS, path: str = "/v1", reads: bool = True
) -> None:
    """Send the same frame again and again, as many as fit into a segment."""
    many = max(1, SEGMENT // len(one))
    segment = one * many

    async def use(socket: WebSocket) -> None:
        if begin:
            await load.send(socket, begin, 1)
        while True:
            await load.send(socket, segment, many)
            # A large socket buffer must not starve the other connections.
            await trio.lowlevel.checkpoint()

    await load.websockets(connections, use, path=path, reads=reads)


def _text(payload: bytes) -> bytes:
    return frame(TEXT, payload)


def _brackets() -> bytes:
    return b"[" + b",".join([b"[]"] * (LARGE // 3)) + b"]"


def _nested_in_params() -> bytes:
    return b'{"op":"start","id":1,"params":{"x":' + _brackets()[: LARGE - 100].rpartition(b",")[0] + b"]}}"


async def _protocol_errors(load: Load) -> None:
    async def use(socket: WebSocket) -> None:
        await load.send(socket, frame(TEXT, b"{}", mask=None), 1)
        await socket.connection.discard()

    await load.websockets(CONNECTIONS, use, reads=False)


WEBSOCKET_FLOODS: Mapping[str, Flood] = {
    "flood/commands": partial(flood_with, one=_text(command("ping", 1))),
    "flood/commands-unread": partial(flood_with, one=_text(command("ping", 1)), reads=False),
    "flood/refused-large": partial(flood_with, one=_text(command("dance", 1, x="a" * (LARGE - 40)))),
    "flood/refused-brackets": partial(flood_with, one=_text(_brackets())),
    "flood/refused-params": partial(flood_with, one=_text(_nested_in_params())),
    "flood/refused-nested": partial(flood_with, one=_text(b"[" * (LARGE // 2) + b"]" * (LARGE // 2))),
    "flood/refused-small": partial(flood_with, one=_text(b"[]")),
    "flood/chat-gateway": partial(flood_with, one=_text(_brackets()), path="/perturb/innkeeper"),
    "flood/pings": partial(flood_with, one=frame(PING, b"are you there")),
    "flood/pongs": partial(flood_with, one=frame(PONG)),
    "flood/empty-frames": partial(flood_with, one=frame(TEXT)),
    "flood/empty-fragments": partial(flood_with, begin=frame(TEXT, fin=False), one=frame(CONTINUATION, fin=False)),
    "flood/fragments": partial(
        flood_with, begin=frame(TEXT, b"[", fin=False), one=frame(CONTINUATION, b" ", fin=False)
    ),
    "flood/protocol-errors": _protocol_errors,
}
