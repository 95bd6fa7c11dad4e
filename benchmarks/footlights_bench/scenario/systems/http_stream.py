"""HTTP response that is read while it comes: one request on a connection of its own, with h11."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import h11
import orjson
import trio
from attrs import frozen

from footlights.errors import FootlightsError, InvalidCommand
from footlights_transports.client.protocol import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

_PORTS = {"http": 80, "https": 443}
_CHUNK = 65_536


class Refused(FootlightsError):
    """The server answered with a status that is no success."""

    code = "refused"


@frozen
class HttpAddress:
    """Where requests go. Made by `http_address`."""

    scheme: str
    host: str
    port: int
    path: str
    token: str | None


def http_address(url: str, token: str | None) -> HttpAddress:
    """Raises `InvalidCommand`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidCommand("The port of the address cannot be read.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidCommand("The address of an HTTP server reads http://HOST:PORT/PATH or https://HOST:PORT/PATH.")
    return HttpAddress(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"), token)


@asynccontextmanager
async def open_response(
    address: HttpAddress, method: str, path: str, body: object = None, *, accept: str = "application/json"
) -> AsyncGenerator[AsyncIterator[bytes]]:
    """The body of a response, piece by piece. Raises `ConnectionLost`, and `Refused` for a status of no success."""
    try:
        stream = await _connected(address)
    except OSError:
        raise ConnectionLost("No server answers at that address.") from None
    try:
        connection = h11.Connection(h11.CLIENT)
        data = b"" if body is None else orjson.dumps(body)
        headers = [("Host", f"{address.host}:{address.port}"), ("Accept", accept), ("Content-Length", str(len(data)))]
        headers += [] if body is None else [("Content-Type", "application/json")]
        headers += [] if address.token is None else [("Authorization", f"Bearer {address.token}")]
        head = h11.Request(method=method, target=address.path + path or "/", headers=headers)
        sent = [connection.send(each) for each in (head, h11.Data(data), h11.EndOfMessage())]
        await stream.send_all(b"".join(each for each in sent if each))
        response = await _next(connection, stream)
        if not isinstance(response, h11.Response) or not 200 <= response.status_code < 300:
            raise Refused(f"The server answered with {getattr(response, 'status_code', 'no HTTP')}.")
        async with aclosing(_body(connection, stream)) as pieces:
            yield pieces
    except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError):
        raise ConnectionLost("The connection broke.") from None
    finally:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)


async def _connected(address: HttpAddress) -> trio.abc.Stream:
    if address.scheme == "https":
        return await trio.open_ssl_over_tcp_stream(address.host, address.port, https_compatible=True)
    return await trio.open_tcp_stream(address.host, address.port)


async def _next(connection: h11.Connection, stream: trio.abc.Stream) -> object:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(_CHUNK)))
        elif not isinstance(event, h11.InformationalResponse):
            return event


async def _body(connection: h11.Connection, stream: trio.abc.Stream) -> AsyncGenerator[bytes]:
    while isinstance(event := await _next(connection, stream), h11.Data):
        yield bytes(event.data)


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def server_sent(pieces: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """The data of each server-sent event."""
    rest, data = b"", list[str]()
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
            elif not text and data:
                yield "\n".join(data)
                data = []


@asynccontextmanager
async def open_events(
    address: HttpAddress, method: str, path: str, body: object = None
) -> AsyncGenerator[AsyncIterator[str]]:
    """The server-sent events of a response. Raises what `open_response` raises."""
    async with (
        open_response(address, method, path, body, accept="text/event-stream") as pieces,
        aclosing(server_sent(pieces)) as events,
    ):
        yield events
