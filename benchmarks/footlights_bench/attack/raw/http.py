"""HTTP/1.1 client, byte by byte: any request, and the parsed response (RFC 9112)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights_bench.attack.raw.sockets import PATIENCE, open_connection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights_bench.attack.raw.sockets import Connection
    from footlights_bench.attack.target import Address


@frozen
class Response:
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""

    @property
    def says_close(self) -> bool:
        return "close" in self.headers.get("connection", "").lower()

    def json(self) -> Any:
        return json.loads(self.body)


def request(
    address: Address,
    method: str,
    path: str,
    *,
    token: str | None = None,
    headers: Sequence[str] = (),
    body: bytes | None = None,
) -> bytes:
    """A lawful request; the lines of `headers` are added unchanged, lawful or not."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address.authority}"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + (body or b"")


def take_head(buffer: bytearray) -> Response | None:
    """Remove the head of a response from the buffer; None if it is incomplete. A head that is not HTTP has status 0."""
    head, blank, rest = bytes(buffer).partition(b"\r\n\r\n")
    if not blank:
        return None
    buffer[:] = rest
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if words[0].startswith("HTTP/1.") and len(words) > 1 and words[1].isdigit() else 0
    pairs = (line.partition(":") for line in lines)
    return Response(status, {name.strip().lower(): value.strip() for name, _, value in pairs})


async def read_response(connection: Connection, *, to_head: bool = False, seconds: float = PATIENCE) -> Response | None:
    """The next final response; None if the server closed the connection or did not answer in time."""
    with trio.move_on_after(seconds):
        while True:
            while (head := take_head(connection.buffer)) is None:
                if not await connection.receive():
                    return None
            if head.status >= 200 or head.status in (0, 101):
                break
        if to_head or head.status in (0, 101, 204, 304):
            return head
        with suppress(ValueError):  # from an invalid length: the body was cut off, or is not HTTP
            return Response(head.status, head.headers, await _body(connection, head))
    return None


async def _body(connection: Connection, head: Response) -> bytes:
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await _line(connection)).partition(b";")[0], 16):
            body += await _exactly(connection, size)
            await _line(connection)
        while await _line(connection):
            pass
        return body
    if (length := head.headers.get("content-length")) is not None:
        return await _exactly(connection, int(length))
    while await connection.receive():
        pass
    body = bytes(connection.buffer)
    connection.buffer.clear()
    return body


async def _exactly(connection: Connection, size: int) -> bytes:
    while len(connection.buffer) < size and await connection.receive():
        pass
    body = bytes(connection.buffer[:size])
    del connection.buffer[:size]
    return body


async def _line(connection: Connection) -> bytes:
    while b"\r\n" not in connection.buffer and await connection.receive():
        pass
    line, _, rest = bytes(connection.buffer).partition(b"\r\n")
    connection.buffer[:] = rest
    return line


async def ask(
    address: Address, method: str, path: str, *, token: str | None = None, body: object = None
) -> Response | None:
    """Send a request on a new connection; None if the server did not answer."""
    encoded = None if body is None else json.dumps(body).encode()
    async with open_connection(address) as connection:
        if not await connection.try_send(request(address, method, path, token=token, body=encoded)):
            return None
        return await read_response(connection, to_head=method == "HEAD")
