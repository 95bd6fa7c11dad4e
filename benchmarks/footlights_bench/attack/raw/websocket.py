"""WebSocket client, byte by byte: lawful and unlawful frames (RFC 6455)."""

from __future__ import annotations

import base64
import json
import struct
from contextlib import asynccontextmanager
from hashlib import sha1
from itertools import count
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights_bench.attack.raw.http import Response, take_head
from footlights_bench.attack.raw.sockets import PATIENCE, open_connection
from footlights_bench.attack.target import WEBSOCKET_PATH, CannotAttack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from footlights_bench.attack.raw.sockets import Connection
    from footlights_bench.attack.target import Address

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
SUBPROTOCOL = "footlights.v1"
KEY = base64.b64encode(b"sixteen bytes ok").decode()
ACCEPT = base64.b64encode(sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
MASK = b"\x00\x00\x00\x00"
"""The cheapest lawful mask, so that the attacker is not the bottleneck."""


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    reserved: int = 0,
    mask: bytes | None = MASK,
    length_bytes: int | None = None,
    declared: int | None = None,
) -> bytes:
    """One frame. `length_bytes` (0, 2 or 8) and `declared` make the length wrong, for frames that must be refused."""
    length = len(payload) if declared is None else declared
    if length_bytes is None:
        length_bytes = 0 if length < 126 else 2 if length < 65_536 else 8
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    masked = 0x80 if mask is not None else 0
    head = bytes([first, masked | {0: length, 2: 126, 8: 127}[length_bytes]])
    head += {0: b"", 2: struct.pack("!H", length & 0xFFFF), 8: struct.pack("!Q", length)}[length_bytes]
    if mask is None:
        return head + payload
    if mask != MASK:
        payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return head + mask + payload


def command(op: str, number: int | str, /, **fields: object) -> bytes:
    """A command of the native protocol, as the payload of a frame."""
    return json.dumps({"op": op, "id": number, **fields}).encode()


def handshake(
    address: Address,
    token: str | None,
    *,
    path: str = WEBSOCKET_PATH,
    method: str = "GET",
    version: str = "HTTP/1.1",
    changed: Mapping[str, str | None] | None = None,
) -> bytes:
    """The opening request. `changed` replaces headers, and removes those that are None."""
    headers: dict[str, str | None] = {
        "Host": address.authority,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        "Authorization": None if token is None else f"Bearer {token}",
    }
    headers |= changed or {}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join([f"{method} {path} {version}", *lines, "", ""]).encode("latin-1")


@frozen
class Frame:
    opcode: int
    payload: bytes
    fin: bool

    @property
    def close_code(self) -> int | None:
        return struct.unpack("!H", self.payload[:2])[0] if len(self.payload) >= 2 else None


def take_frame(buffer: bytearray) -> Frame | None:
    """Remove a server's frame from the buffer; None if it is incomplete."""
    if len(buffer) < 2:
        return None
    length, begin = buffer[1] & 0x7F, 2
    if length >= 126:
        wide = 2 if length == 126 else 8
        if len(buffer) < 2 + wide:
            return None
        length, begin = int.from_bytes(buffer[2 : 2 + wide], "big"), 2 + wide
    if len(buffer) < begin + length:
        return None
    taken = Frame(buffer[0] & 0x0F, bytes(buffer[begin : begin + length]), bool(buffer[0] & 0x80))
    del buffer[: begin + length]
    return taken


class WebSocket:
    """A WebSocket connection after its handshake."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._numbers = count(1)
        self._message = b""
        self._one_at_a_time = trio.Lock()

    async def send(self, *frames: bytes) -> None:
        async with self._one_at_a_time:
            await self.connection.send(b"".join(frames))

    async def receive(self, seconds: float = PATIENCE) -> Frame | None:
        """The next frame; None if the server closed the connection or sent nothing in time."""
        with trio.move_on_after(seconds):
            while (taken := take_frame(self.connection.buffer)) is None:
                if not await self.connection.receive():
                    return None
            return taken
        return None

    async def receive_message(self, seconds: float = PATIENCE) -> dict[str, Any] | None:
        """The next JSON object. Pings are answered, fragments joined; None as for `receive`."""
        with trio.move_on_after(seconds):
            while (taken := await self.receive(seconds)) is not None and taken.opcode != CLOSE:
                if taken.opcode == PING:
                    await self.send(frame(PONG, taken.payload))
                elif taken.opcode in (TEXT, CONTINUATION):
                    self._message += taken.payload
                    if taken.fin:
                        whole, self._message = self._message, b""
                        return json.loads(whole)  # type: ignore[no-any-return]
        return None

    async def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """The reply to a command; other messages are skipped. Empty if there was none in time."""
        number = next(self._numbers)
        await self.send(frame(TEXT, command(op, number, **fields)))
        with trio.move_on_after(PATIENCE):
            while (message := await self.receive_message()) is not None:
                if message.get("reply") == number:
                    return message
        return {}

    async def close_code(self, seconds: float = PATIENCE) -> int | None:
        """The code of the next close frame; other frames are skipped. None if there was none in time."""
        with trio.move_on_after(seconds):
            while (taken := await self.receive(seconds)) is not None:
                if taken.opcode == CLOSE:
                    return taken.close_code
        return None


@asynccontextmanager
async def open_websocket(
    address: Address, token: str | None, *, path: str = WEBSOCKET_PATH, source: str | None = None, after: bytes = b""
) -> AsyncGenerator[WebSocket]:
    """A WebSocket connection after its handshake; `after` is sent in the segment of the handshake.

    Raises `CannotAttack` if the server refuses it, and `OSError` if it cannot be reached.
    """
    async with open_connection(address, source=source) as connection:
        await connection.send(handshake(address, token, path=path) + after)
        response = await read_handshake(connection)
        if response is None or response.status != 101:
            answer = "nothing" if response is None else f"{response.status}"
            raise CannotAttack(f"The WebSocket server at {address.authority} answered a handshake with {answer}.")
        yield WebSocket(connection)


async def read_handshake(connection: Connection, seconds: float = PATIENCE) -> Response | None:
    """The head of the answer. What follows it stays in the buffer of the connection."""
    with trio.move_on_after(seconds):
        while (response := take_head(connection.buffer)) is None:
            if not await connection.receive():
                return None
        return response
    return None
