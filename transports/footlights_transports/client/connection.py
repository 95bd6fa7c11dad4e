"""Connection: one WebSocket connection of a client, used until it is lost and never repaired.

One task reads and one task writes. A sender hands its message to the writer, so a cancelled sender neither leaves half
of a message on the wire nor delays another sender.

The client drives wsproto itself: trio-websocket's client raises errors into its own nursery, and waits forever when
the connection breaks inside the handshake.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import orjson
import trio
from attrs import define
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from footlights.errors import FootlightsError, TooLarge
from footlights_transports.client.protocol import TOO_BIG, ConnectionLost, read_message, refusal
from footlights_transports.errors import UnsupportedVersion
from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    from footlights_transports.client.address import Address
    from footlights_transports.client.protocol import Message

MAX_MESSAGE_CHARS = 64_000_000
"""More than any Footlights server sends in one message; the client drops the connection of a server that sends more."""
_MAX_REFUSAL_BYTES = 65_536
_TCP_ENDED = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
_CLOSE_SECONDS = 1.0
"""Time limit for sending a close frame."""


@define(eq=False)
class Outgoing:
    """A frame for the writer."""

    event: Event
    is_begun: bool = False
    """Whether a part of it may have left."""
    is_sent: bool = False
    """Whether all of it has left. If not, the server has not received it."""


class Connection:
    """A connection after the handshake, made by `dial`. Any task may send, and one task receives."""

    def __init__(self, stream: trio.abc.Stream, protocol: WSConnection, silence: float) -> None:
        self._stream = stream
        self._protocol = protocol
        self._silence = silence
        self._to_writer, self._outgoing = trio.open_memory_channel[Outgoing](0)
        self._to_receiver, self._messages = trio.open_memory_channel[str](0)
        self._writer_ended = trio.Event()
        self._parts: list[str] = []
        self._chars = 0
        self.is_open = True
        self.close_code: int | None = None
        """The code of the server's close frame, if it sent one."""

    async def send(self, outgoing: Outgoing) -> None:
        """Hand a frame to the writer. If this is cancelled, or raises `ConnectionLost`, nothing of it is sent."""
        if not self.is_open:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost("The connection is gone.")
        await self._hand_over(outgoing)

    async def receive(self) -> Message:
        """The next message; while it is not awaited, the connection reads at most one message ahead.

        Raises `ConnectionLost`, or `TooLarge` if the server closed the connection because of the size of a message.
        """
        try:
            return read_message(await self._messages.receive())
        except (trio.EndOfChannel, trio.ClosedResourceError):
            if self.close_code == TOO_BIG:
                raise TooLarge("The server closed the connection, because a message was too large.") from None
            raise ConnectionLost("The connection is gone.") from None

    async def run(self) -> None:
        """Read and write until the connection ends."""
        try:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(self._write, name="client writer")
                with suppress(ConnectionLost, ProtocolError, trio.TooSlowError, *_TCP_ENDED):
                    while await self._read_events():
                        self._protocol.receive_data(await self._read())
                self.is_open = False
                tasks.cancel_scope.cancel(reason="the connection has ended")
        finally:
            self.is_open = False
            self._to_receiver.close()
            await trio.aclose_forcefully(self._stream)

    async def aclose(self) -> None:
        """Send a close frame without waiting for the answer. Shielded from cancellation; takes at most a second."""
        self._messages.close()
        if self.is_open:
            self.is_open = False
            with trio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(ConnectionLost):
                await self._send_close(CloseConnection(code=1000))
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def stop_writing(self) -> None:
        """Wait until nothing more is sent, so that it is certain which frames were. Shielded from cancellation."""
        with trio.CancelScope(shield=True):
            if self.is_open:
                self.is_open = False
                await trio.aclose_forcefully(self._stream)
            await self._writer_ended.wait()

    # -- writing

    async def _hand_over(self, outgoing: Outgoing) -> None:
        try:
            await self._to_writer.send(outgoing)
        except trio.BrokenResourceError:
            raise ConnectionLost("The connection is gone.") from None

    async def _send_close(self, event: CloseConnection) -> None:
        await self._hand_over(Outgoing(event))
        await self._writer_ended.wait()

    async def _write(self) -> None:
        try:
            with self._outgoing:
                async for outgoing in self._outgoing:
                    data = self._protocol.send(outgoing.event)
                    outgoing.is_begun = True
                    await self._stream.send_all(data)
                    outgoing.is_sent = True
                    if isinstance(outgoing.event, CloseConnection):
                        return
        except (ProtocolError, *_TCP_ENDED):
            pass  # the reader goes on, because the server may have sent a reason
        finally:
            self.is_open = False
            self._writer_ended.set()

    # -- reading

    async def _read(self) -> bytes | None:
        """Raises `TooSlowError` for a server that is silent, also after a ping, or that takes no ping."""
        with trio.move_on_after(self._silence):
            return bytes(await self._stream.receive_some()) or None
        await self._send_soon(Ping())
        with trio.fail_after(self._silence):
            return bytes(await self._stream.receive_some()) or None

    async def _send_soon(self, event: Event) -> None:
        with trio.fail_after(self._silence):
            await self._hand_over(Outgoing(event))

    async def _read_events(self) -> bool:
        """Whether the connection goes on."""
        for event in self._protocol.events():
            match event:
                case TextMessage():
                    await self._read_text(event)
                case Ping():
                    await self._send_soon(event.response())
                case CloseConnection():
                    self.close_code = event.code
                    if self._protocol.state is ConnectionState.REMOTE_CLOSING:
                        with trio.move_on_after(_CLOSE_SECONDS):
                            await self._send_close(event.response())
                    return False
                case _:
                    pass
        return True

    async def _read_text(self, event: TextMessage) -> None:
        self._parts.append(event.data)
        self._chars += len(event.data)
        if self._chars > MAX_MESSAGE_CHARS:
            raise ConnectionLost("The server sent a message that is too large.")
        if event.message_finished:
            message = "".join(self._parts)
            self._parts, self._chars = [], 0
            await self._to_receiver.send(message)


async def dial(address: Address, nursery: trio.Nursery, *, in_batches: bool = False) -> Connection:
    """A connection that is ready for commands; its tasks run in `nursery`.

    Raises:
        ConnectionLost: the server does not answer, or not in time.
        UnsupportedVersion: what answers does not speak our protocol.
        FootlightsError: the server refuses the connection, for this reason.
    """
    stream, protocol = await upgrade(address, in_batches=in_batches)
    connection = Connection(stream, protocol, address.silence)
    nursery.start_soon(connection.run, name="client connection")
    return connection


async def upgrade(address: Address, *, in_batches: bool = False) -> tuple[trio.abc.Stream, WSConnection]:
    """A stream after the handshake, and its protocol. Raises what `dial` raises."""
    with trio.move_on_after(address.dial_timeout):
        stream = await _open_stream(address)
        try:
            return stream, await _shake_hands(address, stream, in_batches=in_batches)
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
        raise ConnectionLost("No server answers at that address.") from error


async def _shake_hands(address: Address, stream: trio.abc.Stream, *, in_batches: bool) -> WSConnection:
    protocol = WSConnection(ConnectionType.CLIENT)
    status, body = 0, b""
    try:
        await stream.send_all(protocol.send(address.request(in_batches=in_batches)))
        while data := await stream.receive_some():
            protocol.receive_data(bytes(data))
            for event in protocol.events():
                match event:
                    case AcceptConnection(subprotocol=subprotocol):
                        if subprotocol != SUBPROTOCOL:
                            raise UnsupportedVersion(f"The server does not speak {SUBPROTOCOL}.")
                        return protocol
                    case RejectConnection(status_code=status, has_body=has_body):
                        is_whole = not has_body
                    case RejectData(data=part, body_finished=is_whole):
                        body += part
                    case _:
                        continue
                if is_whole or len(body) > _MAX_REFUSAL_BYTES:
                    raise _rejection(status, body)
    except _TCP_ENDED as error:
        raise ConnectionLost(_why_broken(error.__cause__)) from error
    except ProtocolError:
        raise ConnectionLost("What answers at that address does not speak WebSocket.") from None
    hint = "" if address.is_secure else " If it speaks TLS, its address begins with wss://."
    raise ConnectionLost(f"The server closed the connection during the handshake.{hint}")


def _why_broken(cause: BaseException | None) -> str:
    match cause:
        case ssl.SSLCertVerificationError(verify_message=flaw):
            return (
                f"The certificate of the server is not trusted: {flaw.rstrip('.')}. If it is your own, the environment "
                "variable SSL_CERT_FILE names the file with the certificate of its issuer."
            )
        case ssl.SSLError():
            return "What answers at that address does not speak TLS. Without TLS the address begins with ws://."
        case _:
            return "The connection broke during the handshake."


def _rejection(status: int, body: bytes) -> FootlightsError:
    with suppress(orjson.JSONDecodeError, KeyError, TypeError):
        told = cast("dict[str, Any]", orjson.loads(body))["error"]
        return refusal({"code": told["code"], "message": told["message"]})
    return UnsupportedVersion(f"What answers at that address is no Footlights server: HTTP {status}.")
