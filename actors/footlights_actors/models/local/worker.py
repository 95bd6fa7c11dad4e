"""Worker process of a local model: loads the weights, then serves its slots, each over its own connection.

It is a separate process because loading holds the GIL, and because a crash in native code ends its process. It runs as
a script that imports the standard library and the engine, and nothing of Footlights.

It reads its settings from standard input and ends when that is closed, so it never outlives its parent. A line is a
connection to the parent. A message has a four-byte length in front. The answer to a request is a sequence of chunks,
then an empty message. Any message during an answer stops it. The exit code gives the reason for a failed start.
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
"""The length in front of each message."""


class ChatServer(Protocol):
    """The part of the engine's interface that is used."""

    def handle_chat_completions(self, request: bytes, callback: Any, /) -> None:
        """Call `callback` with each chunk until it returns True."""
        ...

    def handle_completions(self, request: bytes, callback: Any, /) -> None:
        """The same for a request with a `prompt` in place of messages."""
        ...


class Line:
    """One connection with framed messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, message: bytes) -> None:
        self._connection.sendall(HEAD.pack(len(message)) + message)

    def receive(self) -> bytes | None:
        """The next message; None at the end. Reads no byte beyond it."""
        head = self._read(HEAD.size)
        return None if head is None else self._read(HEAD.unpack(head)[0])

    def has_input(self) -> bool:
        """Whether a message can be received, or the parent has closed the line."""
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
    """Answer requests until the parent closes the line. An empty request is a stop that came too late."""
    with suppress(OSError):
        while (request := line.receive()) is not None:
            if request:
                _answer(server, line, request)
    line.close()


def _answer(server: ChatServer, line: Line, request: bytes) -> None:
    def hand_over(chunk: bytes) -> bool:
        if line.has_input():
            return True
        try:
            line.send(chunk)
        except OSError:
            return True
        return False

    try:
        is_chat = "messages" in json.loads(request)
        (server.handle_chat_completions if is_chat else server.handle_completions)(request, hand_over)
    except (ValueError, RuntimeError):  # of the engine; the message may quote the request
        line.send(b'{"error": {"type": "invalid_request_error"}}')
    line.send(b"")


def connect(port: int, secret: str) -> Line:
    """A line to the parent, authenticated by the secret."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(secret.encode("ascii"))
    return Line(connection)


def load(engine: Any, settings: dict[str, Any]) -> ChatServer:
    """Load the model. The engine always opens an HTTP listener, so it gets a random key."""
    params = engine.CommonParams()
    params.model.path = settings["path"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context_tokens"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    # A batch cannot be interrupted, so its size bounds the delay of a cancel.
    params.n_batch = params.n_ubatch = settings["batch_tokens"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [os.urandom(32).hex()]
    params.ui = params.endpoint_slots = False
    params.n_threads_http = 1
    params.cache_ram_mib = 0  # text is kept only in the slots
    params.verbosity = -1  # the engine's log quotes prompts
    server: ChatServer = engine.Server(params)
    return server


def run(settings: dict[str, Any], parent: IO[bytes]) -> int:
    """Connect, load, and serve until the parent is gone. Returns the exit code."""
    try:
        engine = import_module("xllamacpp")  # without type stubs
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    for line in lines:
        threading.Thread(target=serve, args=(server, line), daemon=True).start()
        line.send(b"")
    parent.read()
    return 0


if __name__ == "__main__":
    # Not sys.exit, which would finalize the engine while a slot may be working.
    os._exit(run(json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer))
