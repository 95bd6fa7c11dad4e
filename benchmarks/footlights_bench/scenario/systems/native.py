"""Native system: a server that speaks the native protocol, measured from outside over one WebSocket a player.

Events come as the server sends them, one by one, unless the scenario asks for batches: a client that asks for batches
waits for them, up to 20 ms, and that wait is not the server's. Every event is held to the laws.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from itertools import count
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, cast

import orjson
import trio
from attrs import define, field, frozen
from wsproto.events import Pong, TextMessage

from footlights import wire
from footlights.errors import FootlightsError, InvalidEvent, SessionClosed
from footlights.laws import Violation
from footlights_bench.scenario.systems.frames import FrameReader, Opcode
from footlights_transports.client.address import Address
from footlights_transports.client.connection import upgrade
from footlights_transports.client.progress import Progress
from footlights_transports.client.protocol import (
    ConnectionLost,
    LawBroken,
    cursor_in,
    protocol_error,
    result_of,
    text_in,
    write_command,
)
from footlights_transports.client.retry import Backoff, Retry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from wsproto import WSConnection

    from footlights.events import StreamEvent

CLOSING = 5.0
"""Seconds that a server may take to close a session."""
PATIENCE = 5.0
"""Seconds after a loss in which a player tries to reconnect."""
_CHUNK = 65_536
_BROKEN = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@frozen
class Asks:
    """How players speak to the server."""

    in_batches: bool = False
    repeats: bool = False
    """Whether a command is safe to repeat after a loss. The server then looks for an earlier one, which takes time."""
    turn: Mapping[str, Any] = field(factory=dict[str, Any])
    """The parameters of each turn."""


@define(eq=False)
class _Command:
    over: trio.Event = field(factory=trio.Event)
    reply: dict[str, Any] | None = None
    """None if the connection was lost before the reply."""


class _Wire:
    """One connection after the handshake."""

    def __init__(self, stream: trio.abc.Stream, protocol: WSConnection) -> None:
        self._stream = stream
        self._protocol = protocol
        self._frames = FrameReader()
        self._sending = trio.StrictFIFOLock()

    async def send(self, event: TextMessage | Pong) -> None:
        """Raises `ConnectionLost`. A cancelled send may leave half of a frame, so it ends the connection."""
        async with self._sending:
            try:
                await self._stream.send_all(self._protocol.send(event))
            except _BROKEN:
                raise ConnectionLost("The connection is gone.") from None
            except BaseException:
                await trio.aclose_forcefully(self._stream)
                raise

    async def receive(self) -> list[Any]:
        """The next messages, perhaps none. Raises `ConnectionLost`."""
        try:
            data = await self._stream.receive_some(_CHUNK)
        except _BROKEN:
            data = b""
        if not data:
            raise ConnectionLost("The connection is gone.")
        messages: list[Any] = []
        for opcode, payload in self._frames.feed(data):
            if opcode == Opcode.TEXT:
                messages.append(_json(payload))
            elif opcode == Opcode.PING:
                await self.send(Pong(payload))
            elif opcode == Opcode.CLOSE:
                raise ConnectionLost("The server closed the connection.")
        return messages

    async def drop(self) -> None:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self._stream)


class NativePlayer:
    """A client of a session, on one connection. It reconnects after a cut or a loss, and continues where it was."""

    def __init__(self, address: Address, asks: Asks) -> None:
        self._address = address
        self._asks = asks
        self.session_id = ""
        self._wire: _Wire | None = None
        self._is_connected = trio.Event()
        self._ids = count(1)
        self._commands: dict[int, _Command] = {}
        self._progress = Progress({})
        self._early: list[StreamEvent] = []
        self._backoff = Backoff(Retry(patience=PATIENCE))
        self._is_detached = False
        self._failure: FootlightsError | None = None

    async def start(self) -> None:
        """Start a session, and follow it. Raises `FootlightsError`."""
        connection = await self._dial()
        self.session_id = text_in(await self._ask_alone(connection, "start", {}), "session_id")
        await self._follow(connection, {})

    async def follow(self, session_id: str) -> None:
        """Follow the session of another player."""
        self.session_id = session_id
        await self._follow(await self._dial(), {})

    # -- a player

    async def receive_batch(self) -> Sequence[StreamEvent]:
        try:
            while True:
                try:
                    if events := await self._receive():
                        self._backoff.reset()
                        return events
                except ConnectionLost as lost:
                    await self._lose()
                    await self._backoff.wait_after(lost)
        except FootlightsError as failure:
            self._failure = failure
            self._is_connected.set()
            raise

    async def _receive(self) -> Sequence[StreamEvent]:
        """Raises `ConnectionLost`."""
        if self._wire is None:
            await self._come_back()
        if self._early:
            early, self._early = self._early, []
            await trio.lowlevel.checkpoint()
            return early
        if self._is_detached or self._wire is None:
            self._is_detached = False
            raise ConnectionLost("The server detached the client.")
        return self._take(await self._wire.receive())

    async def begin_turn(self, said: str) -> str:
        once = {"request_id": token_urlsafe(16)} if self._asks.repeats else {}
        params = {"params": dict(self._asks.turn)} if self._asks.turn else {}
        turn_id = text_in(await self._ask("begin_turn", {"input": said, **params, **once}), "turn_id")
        self._progress.expect(turn_id)
        return turn_id

    async def cancel(self, turn_id: str) -> None:
        await self._ask("cancel", {"turn_id": turn_id})

    async def cut(self) -> None:
        await trio.lowlevel.checkpoint()
        await self._lose()

    @asynccontextmanager
    async def open_audience(self) -> AsyncGenerator[NativePlayer]:
        client = NativePlayer(self._address, self._asks)
        await client.follow(self.session_id)
        try:
            yield client
        finally:
            await client.leave()

    async def close_session(self) -> None:
        """Raises `ConnectionLost`."""
        if self._wire is not None:
            await self._ask_alone(self._wire, "close", {"session_id": self.session_id})

    async def leave(self) -> None:
        if self._wire is not None:
            await self._wire.drop()

    async def ping(self) -> None:
        """A round trip that only the network and the server's loop can delay. Called while nobody receives."""
        if self._wire is None:
            self._wire = await self._dial()
        await self._ask_alone(self._wire, "ping", {})

    # -- commands

    async def _ask(self, op: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a command, while another task receives. Raises `FootlightsError`."""
        while True:
            await self._is_connected.wait()
            if self._failure is not None:
                raise self._failure
            number = next(self._ids)
            command = self._commands[number] = _Command()
            try:
                if self._wire is not None:
                    frame = write_command(op, number, {"session_id": self.session_id, **fields})
                    await self._wire.send(TextMessage(data=frame))
                    await command.over.wait()
            except ConnectionLost:
                await trio.lowlevel.checkpoint()  # the receiving task finds the loss, and reconnects
            finally:
                self._commands.pop(number, None)
            if command.reply is not None:
                return result_of(command.reply)
            if not self._asks.repeats and op != "cancel":
                raise ConnectionLost("The connection was lost before the reply.", maybe_done=True)

    async def _ask_alone(self, connection: _Wire, op: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a command, while no other task receives. Events that come meanwhile are kept."""
        number = next(self._ids)
        await connection.send(TextMessage(data=write_command(op, number, dict(fields))))
        while True:
            messages = await connection.receive()
            for place, message in enumerate(messages):
                if "reply" in message:
                    result = result_of(message)
                    if op == "subscribe":
                        self._progress.begin_at(cursor_in(result))
                        self._early += self._take(messages[place + 1 :])
                    return result

    def _take(self, messages: Sequence[Any]) -> list[StreamEvent]:
        """The events among the messages. Replies go to their commands."""
        events: list[StreamEvent] = []
        for message in messages:
            if isinstance(message, list):
                events += map(self._event, cast("list[Mapping[str, object]]", message))
            elif "event_type" in message:
                events.append(self._event(message))
            elif (command := self._commands.get(message.get("reply"))) is not None:
                command.reply = message
                command.over.set()
            elif message.get("notice") == "ended":
                raise SessionClosed("The session was closed from elsewhere.")
            elif message.get("notice") == "detached":
                self._is_detached = True
        return events

    def _event(self, sent: Mapping[str, object]) -> StreamEvent:
        try:
            event = wire.from_wire(sent)
        except InvalidEvent as error:
            raise LawBroken(Violation("envelope", self.session_id, None, None, str(error))) from None
        self._progress.take(event)
        return event

    # -- connections

    async def _dial(self) -> _Wire:
        return _Wire(*await upgrade(self._address, in_batches=self._asks.in_batches))

    async def _follow(self, connection: _Wire, more: Mapping[str, Any]) -> None:
        try:
            await self._ask_alone(connection, "subscribe", {"session_id": self.session_id, **more})
        except BaseException:
            await connection.drop()
            raise
        self._wire = connection
        self._backoff.connected()
        self._is_connected.set()

    async def _come_back(self) -> None:
        progress = self._progress
        seen = {"after": progress.cursor, "terminal_seen": sorted(progress.terminal_seen)}
        await self._follow(await self._dial(), seen)

    async def _lose(self) -> None:
        """Close the connection. Commands without a reply are told."""
        lost, self._wire = self._wire, None
        if self._is_connected.is_set():
            self._is_connected = trio.Event()
        if lost is not None:
            await lost.drop()
        for command in self._commands.values():
            command.over.set()


class NativeServer:
    """A Footlights server at a URL, made by `open_native`."""

    shares_loop = False

    def __init__(self, url: str, token: str | None, asks: Asks) -> None:
        self.name = url
        self.applied = {"batch": asks.in_batches, **asks.turn}
        self._address = Address(url, token=token)
        self._asks = asks
        self._is_there = True

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[NativePlayer]:
        player = NativePlayer(self._address, self._asks)
        await player.start()
        try:
            yield player
        finally:
            await self._close(player)

    def depths(self) -> None:
        return None

    @asynccontextmanager
    async def open_probe(self) -> AsyncGenerator[NativePlayer]:
        """A connection for `ping` alone."""
        probe = NativePlayer(self._address, Asks())
        try:
            yield probe
        finally:
            await probe.leave()

    async def _close(self, player: NativePlayer) -> None:
        """Ignore a server that went away, and wait for it only once: what was measured is still valid."""
        with trio.CancelScope(shield=True):
            if self._is_there:
                self._is_there = False
                with suppress(FootlightsError), trio.move_on_after(CLOSING):
                    await player.close_session()
                    self._is_there = True
            await player.leave()


@asynccontextmanager
async def open_native(url: str, token: str | None, asks: Asks | None = None) -> AsyncGenerator[NativeServer]:
    """Connects only when a player is opened. Raises `InvalidCommand` for an impossible URL."""
    await trio.lowlevel.checkpoint()
    yield NativeServer(url, token, asks or Asks())


def _json(payload: bytes) -> Any:
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        raise protocol_error() from None
    if not isinstance(value, dict | list):
        raise protocol_error()
    return cast("Any", value)
