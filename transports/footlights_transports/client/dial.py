"""How a client gets into a server: the TCP connection, TLS, and the handshake of WebSocket.

trio-websocket's own client raises what goes wrong into its nursery, and waits for ever when it is cut off inside the
handshake. A client that is to survive cuts at any byte needs neither, so this one drives wsproto itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, RejectConnection, RejectData
from wsproto.utilities import ProtocolError

from footlights_transports.client.connection import TCP_ENDED, Connection
from footlights_transports.client.errors import ConnectionLost, refusal
from footlights_transports.errors import UnsupportedVersion
from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    from footlights.errors import FootlightsError
    from footlights_transports.client.address import Address

_MAX_REFUSAL_BYTES = 65_536


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
    place = address.place
    try:
        if not place.is_secure:
            return await trio.open_tcp_stream(place.host, place.port)
        return await trio.open_ssl_over_tcp_stream(
            place.host, place.port, ssl_context=address.tls, https_compatible=True
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
    except TCP_ENDED as error:
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
