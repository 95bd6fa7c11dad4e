"""The clients of `bench wire`: a process of its own that takes what it is sent, counts it, and does nothing else.

It is told what to do in JSON, a line each on its standard input, and answers each with a line. It looks at no frame: it
counts what stands in the bytes, so that whoever sends is what is measured.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from typing import Any

_EVENT = b'"event_type":'
_COMMIT = b'"event_type":"commit_final"'
_REPLY = b'"reply":'
_HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: footlights.v1\r\n\r\n"
)
_RECEIVE_BYTES = 1 << 18


class _Tally:
    """How often some bytes were there, also across the edges of what was received."""

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted
        self._tail = b""
        self.seen = 0

    def add(self, data: bytes) -> None:
        data = self._tail + data
        self.seen += data.count(self._wanted)
        # One byte short of a whole one: nothing is counted twice.
        self._tail = data[max(0, len(data) - len(self._wanted) + 1) :]


class Client:
    """One connection."""

    def __init__(self, port: int, path: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(_HANDSHAKE.format(path=path).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        if b" 101 " not in head:
            raise ConnectionError("The handshake was refused.")
        self.events = _Tally(_EVENT)
        self.commits = _Tally(_COMMIT)
        self.replies = _Tally(_REPLY)
        self.bytes = 0

    def follow(self, session_ids: list[str]) -> None:
        for number, session_id in enumerate(session_ids):
            command = json.dumps({"op": "subscribe", "id": number, "session_id": session_id}).encode()
            if len(command) > 125:
                raise ValueError("The command does not fit into a short frame.")
            self.socket.sendall(bytes((0x81, 0x80 | len(command))) + bytes(4) + command)
        while self.replies.seen < len(session_ids):
            self.take()

    def take(self) -> None:
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionError("The server is gone.")
        self.bytes += len(data)
        for tally in (self.events, self.commits, self.replies):
            tally.add(data)


def take_until(clients: list[Client], commits: int) -> dict[str, int]:
    """Take until so many turns are committed; how much that was."""
    before = [(client.events.seen, client.bytes) for client in clients]
    goal = sum(client.commits.seen for client in clients) + commits
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while sum(client.commits.seen for client in clients) < goal:
            for key, _ in selector.select():
                key.data.take()
    return {
        "events": sum(client.events.seen - events for client, (events, _) in zip(clients, before, strict=True)),
        "bytes": sum(client.bytes - size for client, (_, size) in zip(clients, before, strict=True)),
    }


def main() -> None:
    crowds: dict[str, list[Client]] = {}
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, int] = {}
        match command["do"]:
            case "open":
                clients = [Client(command["port"], command["path"]) for _ in command["sessions"]]
                for client, session_ids in zip(clients, command["sessions"], strict=True):
                    client.follow(session_ids)
                crowds[command["crowd"]] = clients
            case _:
                answer = take_until(crowds[command["crowd"]], command["commits"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
