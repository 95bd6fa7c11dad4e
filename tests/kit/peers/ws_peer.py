"""A real WebSocket server on loopback, and a client that keeps what it gets and holds it to the laws."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import Factory, define, frozen
from trio_websocket import wrap_client_stream

from footlights import EventType, Limits, Stage, StreamEvent, laws, open_stage, wire
from footlights_actors import Line, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from trio_websocket import WebSocketConnection

    from footlights import Cast, Ledger
    from footlights.models.model import Model, Output, Prompt
    from footlights_transports.server.listening import Listening

TALK: tuple[Line, ...] = (Say("Good evening, my friend."),)
V1 = ("footlights.v1",)


class HeldModel(ScriptedModel):
    """Says one word, and the rest when it is let."""

    def __init__(self) -> None:
        super().__init__(lambda _: TALK)
        self.may_go_on = trio.Event()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "Well,"
        await self.may_go_on.wait()
        yield " good evening."


@frozen
class House:
    """A stage, and a server in front of it."""

    stage: Stage
    access: SessionAccess
    listening: Listening
    stop: Callable[[], None]
    """Cancel the server."""
    stopped: trio.Event


@asynccontextmanager
async def open_house(
    model: Model | None = None,
    *,
    policy: AccessPolicy | None = None,
    wire_limits: WireLimits | None = None,
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
    goodbye: float = 5.0,
    ledger: Ledger | None = None,
    cast: Cast | None = None,
) -> AsyncGenerator[House]:
    """The server stops before the stage does."""
    cast = cast or standard_cast(model or ScriptedModel(lambda _: TALK))
    async with open_stage(cast, limits=limits, ledger=ledger) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, policy or AccessPolicy(limits=wire_limits))
        stopped, scope = trio.Event(), trio.CancelScope()

        async def run(task_status: trio.TaskStatus[Listening]) -> None:
            with scope:
                await serve_ws(access, host="127.0.0.1", port=0, tls=tls, goodbye=goodbye, task_status=task_status)
            stopped.set()

        listening = await nursery.start(run)
        yield House(stage, access, listening, scope.cancel, stopped)
        scope.cancel()


@define(eq=False)
class Peer:
    """One client. Frames that nobody asked for yet are kept."""

    socket: WebSocketConnection
    events: list[StreamEvent] = Factory(list[StreamEvent])
    notices: list[dict[str, Any]] = Factory(list[dict[str, Any]])
    commits: list[dict[str, Any]] = Factory(list[dict[str, Any]])
    frames: list[Any] = Factory(list[Any])
    """Everything, as it came."""
    canceled: set[str] = Factory(set[str])
    after: Mapping[str, int] | None = None
    """What it resumed from."""
    _replies: dict[Any, dict[str, Any]] = Factory(dict[Any, dict[str, Any]])
    _last_id: int = 0

    async def send(self, op: str, **fields: object) -> int:
        """Give a command, and return its id."""
        self._last_id += 1
        await self.socket.send_message(orjson.dumps({"op": op, "id": self._last_id, **fields}).decode())
        return self._last_id

    async def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Give a command, and return its result. Raises `AssertionError` if it is refused."""
        reply = await self.reply(await self.send(op, **fields))
        assert reply["ok"] is True, reply
        if op == "cancel":
            self.canceled.update(reply["result"]["canceled"])
        result: dict[str, Any] = reply["result"]
        return result

    async def refusal(self, op: str, **fields: object) -> str:
        """Give a command that must be refused, and return the code of the error."""
        return error_code(await self.reply(await self.send(op, **fields)))

    async def reply(self, command_id: int | str | None) -> dict[str, Any]:
        while command_id not in self._replies:
            await self.receive()
        return self._replies.pop(command_id)

    async def receive(self) -> Any:
        """Take one frame."""
        message = await self.socket.get_message()
        frame = orjson.loads(message)
        self.frames.append(frame)
        if isinstance(frame, list):
            self.events += [wire.decode(orjson.dumps(each)) for each in frame]
        elif "event_type" in frame:
            self.events.append(wire.decode(message))
        elif "notice" in frame:
            self.notices.append(frame)
        elif "commit" in frame:
            self.commits.append(frame["commit"])
        else:
            assert frame["reply"] not in self._replies, "a command was answered twice"
            self._replies[frame["reply"]] = frame
        return frame

    async def notice(self) -> dict[str, Any]:
        while not self.notices:
            await self.receive()
        return self.notices.pop(0)

    async def commit(self) -> dict[str, Any]:
        """The next commit of the feed."""
        while not self.commits:
            await self.receive()
        return self.commits.pop(0)

    async def take_until(self, event_type: EventType, turn_id: str, session_id: str | None = None) -> list[StreamEvent]:
        """The events of a turn so far, once that one came. Sessions number their turns alike."""
        while True:
            turn = [each for each in self.events if each.turn_id == turn_id and session_id in {None, each.session_id}]
            if any(each.event_type is event_type for each in turn):
                return turn
            await self.receive()

    async def take_turn(self, session_id: str, said: str = "A room?") -> list[StreamEvent]:
        turn_id = (await self.ask("begin_turn", session_id=session_id, input=said))["turn_id"]
        return await self.take_until(EventType.COMMIT_FINAL, turn_id, session_id)

    async def start(self) -> str:
        """A session that this client follows."""
        session_id: str = (await self.ask("start"))["session_id"]
        await self.ask("subscribe", session_id=session_id)
        return session_id

    def check(self) -> None:
        violations = laws.check(self.events, after=self.after, canceled=self.canceled, complete=False)
        assert not violations, "\n".join(map(str, violations))


@asynccontextmanager
async def connect(
    house: House,
    query: str = "",
    *,
    subprotocols: Sequence[str] = V1,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    host: str = "localhost",
) -> AsyncGenerator[Peer]:
    """A client whose events are held to the laws when it leaves."""
    extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    wrap = partial(wrap_client_stream, host=host, resource=f"/v1{query}", subprotocols=subprotocols)
    # The stream is ours: trio-websocket does not close one whose peer has closed the connection.
    async with await open_stream(house, tls) as stream, trio.open_nursery() as nursery:
        peer = Peer(await wrap(nursery, stream, extra_headers=extra, max_message_size=1 << 24))
        yield peer
        peer.check()
        await peer.socket.aclose()
        nursery.cancel_scope.cancel()


async def open_stream(
    house: House, tls: ssl.SSLContext | None = None
) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
    """A connection on which nothing was said yet."""
    stream = await trio.open_tcp_stream("127.0.0.1", house.listening.port)
    if tls is None:
        return stream
    return trio.SSLStream(stream, tls, server_hostname="localhost", https_compatible=True)


def error_code(reply: Mapping[str, Any]) -> str:
    assert reply["ok"] is False, reply
    code: str = reply["error"]["code"]
    return code


# -- raw bytes

HANDSHAKE = (
    b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: footlights.v1\r\n\r\n"
)


async def shake_hands(stream: trio.abc.Stream, request: bytes = HANDSHAKE) -> bytes:
    """The head of the answer."""
    await stream.send_all(request)
    got = bytearray()
    while b"\r\n\r\n" not in got:
        got += await stream.receive_some(1)
    return bytes(got)


async def read_until_end(stream: trio.abc.Stream) -> bytes:
    got = bytearray()
    while data := await stream.receive_some():
        got += data
    return bytes(got)


def text_frame(text: str) -> bytes:
    """A frame as a client sends it, masked with nothing."""
    data = text.encode()
    assert len(data) < 126
    return bytes((0x81, 0x80 | len(data))) + bytes(4) + data


async def refusal(house: House, request: bytes) -> tuple[int, str]:
    """The status and the error code that a handshake is refused with."""
    async with await open_stream(house) as stream:
        await stream.send_all(request)
        head, _, body = (await read_until_end(stream)).partition(b"\r\n\r\n")
        assert b"content-type: application/json" in head.lower()
        return int(head.split()[1]), orjson.loads(body)["error"]["code"]
