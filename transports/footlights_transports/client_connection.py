"""One WebSocket connection of a client: dialled once, used until it is lost, never repaired.

trio-websocket's own client raises what goes wrong into its nursery, and waits for ever when it is cut off inside the
handshake. A client that is to survive cuts at any byte needs neither, so this one drives wsproto itself.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import orjson
import trio
from attrs import field, frozen
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from footlights.errors import InvalidCommand
from footlights_transports.client_errors import ConnectionLost, refusal
from footlights_transports.dialects.native import SUBPROTOCOL, UnsupportedVersion

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from wsproto.events import Event

    from footlights.errors import FootlightsError

MAX_MESSAGE_CHARS = 64_000_000
"""More than any server of ours sends at once; whoever sends more is cut off."""
_MAX_REFUSAL_BYTES = 65_536
_CLOSING = 1.0
"""Seconds to say goodbye in."""
_TCP_ENDED = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@frozen(kw_only=True)
class Address:
    """Where a server is, and how to get in. Raises `InvalidCommand` for what can be no address or no token."""

    url: str
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    dial_timeout: float = 10.0
    """Seconds that a connection may take to be made."""
    silence: float = 30.0
    """After so many seconds without a sign of life the server is asked for one, and after as many again given up."""

    def __attrs_post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidCommand("The address of a server reads ws://HOST:PORT or wss://HOST:PORT.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token):
            raise InvalidCommand("A token is one or more printable ASCII characters.")

    @property
    def host(self) -> str:
        return cast("str", urlsplit(self.url).hostname)

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.url).scheme == "wss"

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.is_secure else 80)

    def request(self, *, in_batches: bool) -> Request:
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/") or "/v1"
        return Request(
            host=parts.netloc.rpartition("@")[2],
            target=f"{path}?batch=1" if in_batches else path,
            subprotocols=[SUBPROTOCOL],
            extra_headers=[] if self.token is None else [(b"authorization", f"Bearer {self.token}".encode())],
        )


async def dial(address: Address, *, in_batches: bool = False) -> Connection:
    """A connection that is ready for commands.

    Raises:
        ConnectionLost: nobody answers there, or not in time.
        UnsupportedVersion: whoever answers does not speak our protocol.
        FootlightsError: the server refuses, and says why.
    """
    with trio.move_on_after(address.dial_timeout):
        stream = await _open_stream(address)
        try:
            return await _shake_hands(address, stream, in_batches=in_batches)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
    raise ConnectionLost("The server did not answer in time.")


async def _open_stream(address: Address) -> trio.abc.Stream:
    try:
        if not address.is_secure:
            return await trio.open_tcp_stream(address.host, address.port)
        return await trio.open_ssl_over_tcp_stream(
            address.host, address.port, ssl_context=address.tls, https_compatible=True
        )
    except OSError as error:
        raise ConnectionLost("Nobody answers at that address.") from error


async def _shake_hands(address: Address, stream: trio.abc.Stream, *, in_batches: bool) -> Connection:
    protocol = WSConnection(ConnectionType.CLIENT)
    refused = _Refused()
    try:
        await stream.send_all(protocol.send(address.request(in_batches=in_batches)))
        while data := await stream.receive_some():
            protocol.receive_data(bytes(data))
            for event in protocol.events():
                if not isinstance(event, AcceptConnection):
                    refused.see(cast("RejectConnection | RejectData", event))
                elif event.subprotocol == SUBPROTOCOL:
                    return Connection(stream, protocol, address.silence)
                else:
                    raise UnsupportedVersion(f"The server does not speak {SUBPROTOCOL}.")
    except _TCP_ENDED as error:
        raise ConnectionLost("The connection broke while it was made.") from error
    except ProtocolError:
        raise ConnectionLost("Whoever answers there speaks no WebSocket.") from None
    raise ConnectionLost("The server hung up.")


class _Refused:
    """Reads what a server says that lets nobody in, and raises it when it is whole."""

    def __init__(self) -> None:
        self._status = 0
        self._body = b""

    def see(self, event: RejectConnection | RejectData) -> None:
        if isinstance(event, RejectConnection):
            self._status = event.status_code
            is_whole = not event.has_body
        else:
            self._body += event.data
            is_whole = event.body_finished
        if is_whole or len(self._body) > _MAX_REFUSAL_BYTES:
            raise self._error()

    def _error(self) -> FootlightsError:
        try:
            told = cast("dict[str, Any]", orjson.loads(self._body))["error"]
            return refusal(told["code"], told["message"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return UnsupportedVersion(f"Whoever answers there is no server of ours: HTTP {self._status}.")


class Connection:
    """Made by `dial`. Any task may send; one runs `run`, which hands over what comes."""

    def __init__(self, stream: trio.abc.Stream, protocol: WSConnection, silence: float) -> None:
        self._stream = stream
        self._protocol = protocol
        self._silence = silence
        self._sending = trio.Lock()
        self._parts: list[str] = []
        self._chars = 0
        self.is_open = True
        self.close_code: int | None = None
        """Why the server closed it, if it said so."""

    async def send(self, text: str) -> None:
        """Raises `ConnectionLost`; with `maybe_done` if the server may have got it."""
        if not self.is_open:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost("The connection is gone.")
        await self._send(TextMessage(data=text))

    async def run(self, deliver: Callable[[str], Awaitable[None]]) -> None:
        """Hand over each message until the connection ends. While `deliver` waits, nothing is read."""
        try:
            with suppress(ConnectionLost, ProtocolError, *_TCP_ENDED):
                while await self._read_events(deliver):
                    self._protocol.receive_data(await self._receive())
        finally:
            self.is_open = False
            await trio.aclose_forcefully(self._stream)

    async def aclose(self) -> None:
        """Say goodbye, and do not wait for an answer. Cannot be cancelled, and takes no more than a second."""
        if self.is_open:
            self.is_open = False
            with trio.move_on_after(_CLOSING, shield=True), suppress(ConnectionLost):
                await self._send(CloseConnection(code=1000))
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    # -- inside

    async def _send(self, event: Event) -> None:
        async with self._sending:
            try:
                data = self._protocol.send(event)
            except ProtocolError:
                raise ConnectionLost("The connection is being closed.") from None
            is_whole = False
            try:
                await self._stream.send_all(data)
                is_whole = True
            except _TCP_ENDED:
                raise ConnectionLost("The connection broke.", maybe_done=True) from None
            finally:
                if not is_whole:  # half a frame is out, or nobody is there: it is of no more use
                    self.is_open = False
                    await trio.aclose_forcefully(self._stream)

    async def _receive(self) -> bytes | None:
        for asks in (True, False):
            with trio.move_on_after(self._silence):
                return bytes(await self._stream.receive_some()) or None
            if asks:
                await self._send(Ping())
        raise ConnectionLost("The server gives no sign of life.")

    async def _read_events(self, deliver: Callable[[str], Awaitable[None]]) -> bool:
        """Whether the connection goes on."""
        for event in self._protocol.events():
            match event:
                case TextMessage():
                    await self._read_text(event, deliver)
                case Ping():
                    await self._send(event.response())
                case CloseConnection():
                    self.close_code = event.code
                    if self._protocol.state is ConnectionState.REMOTE_CLOSING:
                        await self._send(event.response())
                    return False
                case _:
                    pass
        return True

    async def _read_text(self, event: TextMessage, deliver: Callable[[str], Awaitable[None]]) -> None:
        self._parts.append(event.data)
        self._chars += len(event.data)
        if self._chars > MAX_MESSAGE_CHARS:
            raise ConnectionLost("The server sent too much at once.")
        if event.message_finished:
            message = "".join(self._parts)
            self._parts, self._chars = [], 0
            await deliver(message)
