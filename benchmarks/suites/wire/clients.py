"""Clients of `bench wire`: a program that receives events and counts them.

It reads commands from its standard input and answers them on its standard output, as lines of JSON. It parses no
frames; it counts occurrences of byte strings, so that the sender is the bottleneck.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from collections import deque
from time import perf_counter
from typing import Any

_EVENT = b'"event_type":'
_ACCEPTED = b'"event_type":"turn_accepted"'
_COMMIT = b'"event_type":"commit_final"'
_REPLY = b'"reply":'
_REFUSAL = b'"ok":false'
_HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    "Sec-WebSocket-Protocol: footlights.v1\r\n\r\n"
)
_REQUEST = "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
_RECEIVE_BYTES = 1 << 18


class _Tally:
    """Counts a byte string in a stream, also across the boundaries of what was received at once."""

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted
        self._tail = b""
        self.seen = 0

    def add(self, data: bytes) -> None:
        data = self._tail + data
        self.seen += data.count(self._wanted)
        # One byte less than the string, so that none is counted twice.
        self._tail = data[max(0, len(data) - len(self._wanted) + 1) :]


class Client:
    """A connection."""

    def __init__(self, port: int, request: str, status: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(request.encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        if status not in head:
            raise ConnectionError("The request was refused.")
        self.events = _Tally(_EVENT)
        self.accepted = _Tally(_ACCEPTED)
        self.commits = _Tally(_COMMIT)
        self.replies = _Tally(_REPLY)
        self.refusals = _Tally(_REFUSAL)
        self.bytes = 0

    def follow(self, session_ids: list[str]) -> None:
        self.session_ids = session_ids
        for number, session_id in enumerate(session_ids):
            self.command(op="subscribe", id=number, session_id=session_id)
        while self.replies.seen < len(session_ids):
            self.take()

    def command(self, **fields: str | int) -> None:
        frame = json.dumps(fields).encode()
        if len(frame) > 125:
            raise ValueError("The command does not fit into a short frame.")
        self.socket.sendall(bytes((0x81, 0x80 | len(frame))) + bytes(4) + frame)

    def take(self) -> int:
        """Receive what there is; return how many turns it commits."""
        committed_before = self.commits.seen
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionError("The server closed the connection.")
        self.bytes += len(data)
        for tally in (self.events, self.accepted, self.commits, self.replies, self.refusals):
            tally.add(data)
        if self.refusals.seen:
            raise ConnectionError("A command was refused.")
        return self.commits.seen - committed_before


def open_websockets(port: int, path: str, sessions: list[list[str]]) -> list[Client]:
    """Open a connection for each list of sessions, and follow them."""
    clients = [Client(port, _HANDSHAKE.format(path=path), b" 101 ") for _ in sessions]
    for client, session_ids in zip(clients, sessions, strict=True):
        client.follow(session_ids)
    return clients


def open_event_streams(port: int, paths: list[str]) -> list[Client]:
    """Open a connection for each path."""
    return [Client(port, _REQUEST.format(path=path), b" 200 ") for path in paths]


def take_until(clients: list[Client], commits: int) -> dict[str, int]:
    """Receive until so many turns are committed; return the numbers of events and bytes."""
    before = [(client.events.seen, client.bytes) for client in clients]
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while commits > 0:
            for key, _ in selector.select():
                commits -= key.data.take()
    return {
        "events": sum(client.events.seen - events for client, (events, _) in zip(clients, before, strict=True)),
        "bytes": sum(client.bytes - size for client, (_, size) in zip(clients, before, strict=True)),
    }


def begin_evenly(clients: list[Client], seconds: float) -> dict[str, list[float]]:
    """Begin one turn of each client, evenly over so many seconds, however slow the answers are.

    Returns when every turn is committed: for each, the seconds from its due time until `turn_accepted`.
    """
    waits: list[float] = []
    open_turns = len(clients)
    began = perf_counter()
    due = deque((began + seconds * number / len(clients), client) for number, client in enumerate(clients))
    waiting: dict[Client, tuple[float, int]] = {}
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while open_turns:
            while due and due[0][0] <= perf_counter():
                at, client = due.popleft()
                waiting[client] = (at, client.accepted.seen)
                client.command(op="begin_turn", id=0, session_id=client.session_ids[0], input="Go on.")
            for key, _ in selector.select(max(0.0, due[0][0] - perf_counter()) if due else None):
                client = key.data
                open_turns -= client.take()
                if client in waiting and client.accepted.seen > waiting[client][1]:
                    waits.append(perf_counter() - waiting.pop(client)[0])
    return {"seconds": waits}


def main() -> None:
    crowds: dict[str, list[Client]] = {}
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {}
        match command["do"]:
            case "open":
                crowds[command["crowd"]] = open_websockets(command["port"], command["path"], command["sessions"])
            case "open event streams":
                crowds[command["crowd"]] = open_event_streams(command["port"], command["paths"])
            case "begin evenly":
                answer = begin_evenly(crowds[command["crowd"]], command["seconds"])
            case _:
                answer = take_until(crowds[command["crowd"]], command["commits"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
