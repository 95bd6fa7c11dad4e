"""Engine of a local model: starts the worker process, communicates with its slots, and ends it.

A slot generates one round at a time. A round that ends early is stopped in the process too, and its slot is not used
again before that. A process that does not stop in time is killed.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import asdict, frozen

from footlights.errors import ExtraMissing, ModelLoadFailed, StreamError
from footlights.extras import advice
from footlights_actors.models.local import worker as local_worker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

STOP_SECONDS = 10.0
"""Seconds for a slot to stop. It finishes one batch first, which even a large model does in less."""

_SECRET_CHARS = 64
_GONE = "The local model's process ended."
_PROCESS_STARTED = 0.1
"""The progress after the start of the process; llama.cpp reports none while it loads."""


@frozen(kw_only=True)
class EngineSettings:
    """Settings of a worker process."""

    path: str
    slots: int
    context_tokens: int
    threads: int
    batch_tokens: int


class Line:
    """A connection to one slot, with framed messages. A cancelled receive loses no data."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = bytearray()
        self.at_rest = True
        """Whether the slot is idle."""

    async def send(self, message: bytes) -> None:
        """Send a message; must not be cancelled. If the process is gone, `receive` raises."""
        with suppress(trio.BrokenResourceError):
            await self._stream.send_all(local_worker.HEAD.pack(len(message)) + message)

    async def receive(self) -> bytes:
        """The next chunk; empty when the slot becomes idle. Raises `StreamError` if the process is gone."""
        (size,) = local_worker.HEAD.unpack(await self._take(local_worker.HEAD.size, 0))
        chunk = await self._take(local_worker.HEAD.size + size, local_worker.HEAD.size)
        del self._received[: local_worker.HEAD.size + size]
        if not chunk:
            self.at_rest = True
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _take(self, end: int, begin: int) -> bytes:
        while len(self._received) < end:
            part = b""
            with suppress(trio.BrokenResourceError):
                part = await self._stream.receive_some()
            if not part:
                raise StreamError(sentence=_GONE)
            self._received += part
        return bytes(self._received[begin:end])


class LocalEngine:
    """A running process with a loaded model. Made by `start_engine`."""

    def __init__(self, process: trio.Process, lines: list[Line]) -> None:
        self._process = process
        self._lines = lines
        self._idle = list(lines)
        self._places = trio.Semaphore(len(lines))
        self._given_up = False

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and responds."""
        return not self._given_up and self._process.returncode is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @asynccontextmanager
    async def round(self, request: bytes) -> AsyncGenerator[Line, None]:
        """Wait for a free slot, and let it generate this request. It is idle again at the end of the block."""
        async with self._places:
            line = self._idle.pop()
            try:
                line.at_rest = False
                await self._send_shielded(line, request)
                yield line
            finally:
                try:
                    if not line.at_rest and self.is_alive:
                        await self._stop(line)
                finally:
                    self._idle.append(line)

    async def close(self) -> None:
        """Kill the process, and wait for its end."""
        with trio.CancelScope(shield=True):
            await _end(self._process, self._lines)

    async def _send_shielded(self, line: Line, message: bytes) -> None:
        with trio.move_on_after(STOP_SECONDS, shield=True) as timeout:
            await line.send(message)
        if timeout.cancelled_caught:
            self._give_up()
            raise StreamError(sentence="The local model's process does not respond.")

    async def _stop(self, line: Line) -> None:
        with trio.move_on_after(STOP_SECONDS, shield=True), suppress(StreamError):
            await line.send(b"")
            while await line.receive():
                pass
        if not line.at_rest:
            self._give_up()

    def _give_up(self) -> None:
        self._given_up = True
        self._process.kill()


async def start_engine(settings: EngineSettings, report: Callable[[float], None]) -> LocalEngine:
    """Start a process and load the model in it. If this fails or is cancelled, the process is ended.

    Raises `ModelLoadFailed`.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    process: trio.Process | None = None
    lines: list[Line] = []
    try:
        async with listener:  # inside the try block, because closing it may be cancelled
            process = await _spawn()
            await _load(process, settings, listener, lines, report)
    except BaseException:
        if process is not None:
            with trio.CancelScope(shield=True):
                await _end(process, lines)
        raise
    return LocalEngine(process, lines)


async def _spawn() -> trio.Process:
    # `-P` keeps the script's folder off its path; a new session keeps the terminal's Ctrl-C away from it. Its output
    # is discarded, because it may quote prompts.
    try:
        return await trio.lowlevel.open_process(
            [sys.executable, "-P", str(Path(local_worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ModelLoadFailed(sentence="The local model's process cannot be started.") from error


async def _load(
    process: trio.Process,
    settings: EngineSettings,
    listener: trio.SocketListener,
    lines: list[Line],
    report: Callable[[float], None],
) -> None:
    secret = secrets.token_hex(_SECRET_CHARS // 2)
    port = listener.socket.getsockname()[1]
    loaded = False
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            await process.wait()
            nursery.cancel_scope.cancel(reason="the local model's process ended")

        nursery.start_soon(watch)
        with suppress(StreamError):  # the exit code of the process gives the reason
            await _send_settings(process, {**asdict(settings), "port": port, "secret": secret})
            await _accept(listener, secret, settings.slots, lines)
            report(_PROCESS_STARTED)
            for line in lines:
                await line.receive()
            loaded = True
            nursery.cancel_scope.cancel(reason="the local model is loaded")
    if not loaded:
        raise _load_error(process.returncode)
    report(1.0)


async def _send_settings(process: trio.Process, settings: dict[str, object]) -> None:
    assert process.stdin is not None
    with suppress(trio.BrokenResourceError):
        await process.stdin.send_all(json.dumps(settings).encode() + b"\n")


async def _accept(listener: trio.SocketListener, secret: str, slots: int, lines: list[Line]) -> None:
    """Accept connections until each slot has one. Other programs may connect, but only the worker has the secret."""
    async with trio.open_nursery() as nursery:

        async def authenticate(stream: trio.SocketStream) -> None:
            line = Line(stream)
            try:
                if secrets.compare_digest(await _read_secret(stream), secret.encode("ascii")):
                    lines.append(line)
            finally:
                if line not in lines:
                    await trio.aclose_forcefully(stream)
            if len(lines) == slots:
                nursery.cancel_scope.cancel(reason="every slot is connected")

        while True:
            nursery.start_soon(authenticate, await listener.accept())


async def _read_secret(stream: trio.SocketStream) -> bytes:
    received = b""
    with suppress(trio.BrokenResourceError):
        while len(received) < _SECRET_CHARS and (part := await stream.receive_some(_SECRET_CHARS - len(received))):
            received += part
    return received


def _load_error(returncode: int | None) -> ModelLoadFailed:
    match returncode:
        case local_worker.ENGINE_MISSING:
            sentence = f"The local model's engine is not installed: {advice('local')}"
            return ExtraMissing(sentence=sentence)
        case local_worker.ENGINE_BROKEN:
            sentence = "The local model's engine is installed but cannot start. On slim images libgomp1 may be missing."
        case local_worker.NOT_LOADED:
            sentence = "The engine cannot load these weights."
        case _:
            sentence = f"The local model's process ended while it was loading (exit code {returncode})."
    return ModelLoadFailed(sentence=sentence)


async def _end(process: trio.Process, lines: list[Line]) -> None:
    process.kill()
    await process.wait()
    assert process.stdin is not None
    await process.stdin.aclose()
    for line in lines:
        await line.aclose()
