"""Real HTTP/1.1 server on loopback with scripted answers: correct, malformed, partial, or none."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import trio
import trio.testing
from attrs import Factory, define, evolve, frozen

from footlights.errors import ModelError
from footlights.models.model import Prompt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from footlights.models.model import Model, Output

EVENT_STREAM = {"Content-Type": "text/event-stream"}

KEY = "sk-xyzzy-key"
SAID = "xyzzy-said"
ANSWERED = "xyzzy-answered"
SECRETS = (KEY, SAID, ANSWERED)
"""Texts that no error and no log may contain."""


@frozen
class Cut:
    """Close the connection in the middle of the answer."""


@frozen
class Reset:
    """Break the connection in the middle of the answer."""


@frozen
class Stall:
    """Send nothing more, and wait until the client is gone."""


@frozen
class Raw:
    """Bytes that are not framed."""

    data: bytes


@frozen
class Hold:
    """Send nothing before this happens."""

    until: trio.Event


Step: TypeAlias = "str | Cut | Reset | Stall | Raw | Hold"
"""Text is sent as one chunk of the body."""


@frozen
class Answer:
    """One answer to one request."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = Factory(lambda: EVENT_STREAM)
    silent: bool = False
    """Whether not even a head is sent."""


@frozen
class Request:
    """What a client asked."""

    target: str
    headers: Mapping[str, str]
    body: Any
    connection: int

    def over(self, connection: int) -> Request:
        """The same over another connection."""
        return evolve(self, connection=connection)


@define
class WireServer:
    """What the server was told, and what came of it."""

    port: int
    answers: list[Answer]
    requests: list[Request] = Factory(list["Request"])
    connections: int = 0
    asked: trio.Event = Factory(trio.Event)
    """The first request has come, whole."""
    stalled: trio.Event = Factory(trio.Event)
    """All that will be sent was sent."""
    left: trio.Event = Factory(trio.Event)
    """A client has closed its connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def open_wire_server(*answers: Answer) -> AsyncGenerator[WireServer, None]:
    """Serve the answers, one for each request, and stop with the block."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = WireServer(listener.socket.getsockname()[1], list(answers))

    async def serve(stream: trio.SocketStream) -> None:
        server.connections += 1
        await _serve(server, stream, server.connections)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


async def _serve(server: WireServer, stream: trio.SocketStream, connection: int) -> None:
    try:
        while (request := await _read(stream, connection)) is not None:
            server.requests.append(request)
            server.asked.set()
            if not await _answer(server, stream, server.answers.pop(0)):
                break
        else:
            server.left.set()
    except trio.BrokenResourceError:
        server.left.set()
    with trio.CancelScope(shield=True):
        await stream.aclose()


async def _read(stream: trio.SocketStream, connection: int) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some()
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        more = await stream.receive_some()
        if not more:
            return None
        body += more
    return Request(first.split(" ")[1], headers, json.loads(body), connection)


async def _answer(server: WireServer, stream: trio.SocketStream, answer: Answer) -> bool:
    """Whether the connection can go on."""
    if not answer.silent:
        headers = {"Transfer-Encoding": "chunked", **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await stream.send_all(f"HTTP/1.1 {answer.status} Answer\r\n{head}\r\n".encode("latin-1"))
    for step in answer.steps:
        match step:
            case Cut():
                return False
            case Reset():
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            case Stall():
                server.stalled.set()
                while await stream.receive_some():
                    pass
                server.left.set()
                return False
            case Raw(data):
                await stream.send_all(data)
            case Hold(until):
                await until.wait()
            case text:
                await stream.send_all(f"{len(text.encode()):x}\r\n".encode() + text.encode() + b"\r\n")
    await stream.send_all(b"0\r\n\r\n")
    return True


def event(data: object, name: str | None = None) -> str:
    """One server-sent event; what is not text is sent as JSON."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


async def ask(model: Model, prompt: Prompt | None = None) -> tuple[list[Output], BaseException | None]:
    """All that a model gives, without its signs of life, and the error that it ends with."""
    outputs: list[Output] = []
    try:
        async with aclosing(model.generate(prompt or Prompt(SAID))) as stream:
            async for item in stream:
                outputs += [item] if item else []
    except (ModelError, TimeoutError) as error:
        return outputs, error
    finally:
        await model.unload()
    return outputs, None


def quoted(error: BaseException | None) -> str:
    """All that an error and whatever led to it say."""
    text = ""
    while error is not None:
        text += repr(error) + repr(vars(error))
        error = error.__cause__ or error.__context__
    return text


async def let_time_pass_after(event: trio.Event, clock: trio.testing.MockClock) -> None:
    """What was sent may still be on its way through the sockets, so a minute has to pass more than once."""
    await event.wait()
    while True:
        await trio.testing.wait_all_tasks_blocked(0.005)
        clock.jump(61)
