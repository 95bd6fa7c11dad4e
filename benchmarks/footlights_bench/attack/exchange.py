"""HTTP/1.1 from the client's side, byte by byte: requests as they are wanted, and what came back (RFC 9112)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights_bench.attack.sockets import PATIENCE, connected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights_bench.attack.sockets import Wire
    from footlights_bench.attack.target import Address


@frozen
class Response:
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
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
    """A lawful request; lines of `headers` are added as they are, lawful or not."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address.authority}"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + (body or b"")


def take_head(buffer: bytearray) -> Response | None:
    """Take the head of a response off the buffer; None if it is not whole yet. What is no HTTP has the status 0."""
    head, blank, rest = bytes(buffer).partition(b"\r\n\r\n")
    if not blank:
        return None
    buffer[:] = rest
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if words[0].startswith("HTTP/1.") and len(words) > 1 and words[1].isdigit() else 0
    pairs = (line.partition(":") for line in lines)
    return Response(status, {name.strip().lower(): value.strip() for name, _, value in pairs})


async def read_response(wire: Wire, *, to_head: bool = False, seconds: float = PATIENCE) -> Response | None:
    """The next final response; None if the server closed the connection or did not answer in time."""
    with trio.move_on_after(seconds):
        while True:
            while (head := take_head(wire.buffer)) is None:
                if not await wire.receive():
                    return None
            if head.status >= 200 or head.status in (0, 101):
                break
        if to_head or head.status in (0, 101, 204, 304):
            return head
        with suppress(ValueError):  # of lengths that are none: the body was cut off, or is no HTTP
            return Response(head.status, head.headers, await _body(wire, head))
    return None


async def _body(wire: Wire, head: Response) -> bytes:
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await _line(wire)).partition(b";")[0], 16):
            body += await _exactly(wire, size)
            await _line(wire)
        while await _line(wire):
            pass
        return body
    if (length := head.headers.get("content-length")) is not None:
        return await _exactly(wire, int(length))
    while await wire.receive():
        pass
    body = bytes(wire.buffer)
    wire.buffer.clear()
    return body


async def _exactly(wire: Wire, size: int) -> bytes:
    while len(wire.buffer) < size and await wire.receive():
        pass
    body = bytes(wire.buffer[:size])
    del wire.buffer[:size]
    return body


async def _line(wire: Wire) -> bytes:
    while b"\r\n" not in wire.buffer and await wire.receive():
        pass
    line, _, rest = bytes(wire.buffer).partition(b"\r\n")
    wire.buffer[:] = rest
    return line


async def ask(
    address: Address, method: str, path: str, *, token: str | None = None, body: object = None
) -> Response | None:
    """One request on a connection of its own; None if it was not answered."""
    encoded = None if body is None else json.dumps(body).encode()
    async with connected(address) as wire:
        if not await wire.try_send(request(address, method, path, token=token, body=encoded)):
            return None
        return await read_response(wire, to_head=method == "HEAD")
