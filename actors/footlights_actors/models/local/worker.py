"""The process in which a local model runs: it loads the weights, then does what its slots are asked, one line each.

Its own process, because loading holds Python's lock for as long as it takes, and because a crash in native code ends
the process it is in. Run as a script: it knows the standard library and the engine, and nothing of Footlights.

It reads its settings from standard input, and ends when that is closed: it never outlives who started it. A line is
a connection to the starter. A message on it is its length in four bytes, then itself. A request is answered by
chunks and then by an empty message. Any message meanwhile ends the work. A process that cannot begin says why by
its exit code.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Protocol

ENGINE_MISSING = 3
ENGINE_BROKEN = 4
NOT_LOADED = 5

HEAD = struct.Struct(">I")
"""The length that goes before each message."""


class ChatServer(Protocol):
    """What is needed of the engine."""

    def handle_chat_completions(self, request: bytes, callback: Any, /) -> None:
        """Call back with each chunk, until the callback returns True."""
        ...


class Line:
    """One connection: whole messages, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, message: bytes) -> None:
        self._connection.sendall(HEAD.pack(len(message)) + message)

    def receive(self) -> bytes | None:
        """The next message; None at the end. It reads no byte of the one after it."""
        head = self._read(HEAD.size)
        return None if head is None else self._read(HEAD.unpack(head)[0])

    def is_spoken_to(self) -> bool:
        """Whether there is something to receive, or the other end is gone."""
        readable, _, _ = select.select([self._connection], [], [], 0)
        return bool(readable)

    def close(self) -> None:
        self._connection.close()

    def _read(self, size: int) -> bytes | None:
        read = bytearray()
        while len(read) < size:
            part = self._connection.recv(size - len(read))
            if not part:
                return None
            read += part
        return bytes(read)


def serve(server: ChatServer, line: Line) -> None:
    """Answer one request after the other, until the other end is gone. An empty one is a stop that came too late."""
    with suppress(OSError):
        while (request := line.receive()) is not None:
            if request:
                _answer(server, line, request)
    line.close()


def _answer(server: ChatServer, line: Line, request: bytes) -> None:
    def hand_over(chunk: bytes) -> bool:
        if line.is_spoken_to():
            return True
        try:
            line.send(chunk)
        except OSError:
            return True
        return False

    try:
        server.handle_chat_completions(request, hand_over)
    except (ValueError, RuntimeError):  # what the engine throws; its words may quote the request
        line.send(b'{"error": {"type": "invalid_request_error"}}')
    line.send(b"")


def connect(port: int, secret: str) -> Line:
    """A line to the starter, who knows it by the secret."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(secret.encode("ascii"))
    return Line(connection)


def load(engine: Any, settings: dict[str, Any]) -> ChatServer:
    """The model, loaded. The engine insists on a listener: it gets one that nobody knows the key of."""
    params = engine.CommonParams()
    params.model.path = settings["path"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context_tokens"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    # A batch cannot be interrupted: what is read of a prompt at once is what a cancel may have to wait for.
    params.n_batch = params.n_ubatch = settings["batch_tokens"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [os.urandom(32).hex()]
    params.ui = params.endpoint_slots = False
    params.n_threads_http = 1
    params.cache_ram_mib = 0  # what was said stays in the slots, and nowhere else
    params.verbosity = -1  # the engine's log quotes prompts
    server: ChatServer = engine.Server(params)
    return server


def run(settings: dict[str, Any], starter: IO[bytes]) -> int:
    """Connect, load, serve, until the starter is gone. Returns the exit code."""
    try:
        engine = import_module("xllamacpp")  # it has no types
    except ModuleNotFoundError:
        return ENGINE_MISSING
    except ImportError:
        return ENGINE_BROKEN
    lines = [connect(settings["port"], settings["secret"]) for _ in range(settings["slots"])]
    try:
        server = load(engine, settings)
    except (ValueError, RuntimeError):
        for line in lines:
            line.close()
        return NOT_LOADED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the turn
    for line in lines:
        threading.Thread(target=serve, args=(server, line), daemon=True).start()
        line.send(b"")
    starter.read()
    return 0


if __name__ == "__main__":
    # Not sys.exit: a slot may be at work, and the engine would be taken down in the middle of it.
    os._exit(run(json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer))
