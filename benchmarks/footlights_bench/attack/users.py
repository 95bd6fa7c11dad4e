"""Ordinary users over WebSocket and HTTP: they start sessions, play turns and send requests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from footlights_bench.attack.raw.http import ask
from footlights_bench.attack.raw.sockets import BROKEN
from footlights_bench.attack.raw.websocket import WebSocket, open_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_bench.attack.target import Target


class NotServed(Exception):
    """The server refused or did not answer a lawful request of a user; the message says which."""


async def run_command(socket: WebSocket, op: str, **fields: object) -> dict[str, Any]:
    """The result of a command. Raises `NotServed`."""
    try:
        reply = await socket.ask(op, **fields)
    except BROKEN:
        raise NotServed(f"the connection was closed before {op}") from None
    if not reply:
        raise NotServed(f"{op} was not answered")
    if not reply["ok"]:
        raise NotServed(f"{op} got {reply['error']['code']}: {reply['error']['message']}")
    result: dict[str, Any] = reply["result"]
    return result


async def play_turn(socket: WebSocket, session_id: str, words: str = "Good evening.", **params: object) -> str:
    """Play a turn to its commit; return its id. Raises `NotServed`, also if the outcome is not `ok`."""
    turn = await run_command(socket, "begin_turn", session_id=session_id, input=words, params=params)
    commit = await run_command(socket, "finalize", session_id=session_id, turn_id=turn["turn_id"])
    if commit["commit_outcome"] != "ok":
        raise NotServed(f"a turn was committed as {commit['commit_outcome']}")
    return str(turn["turn_id"])


@asynccontextmanager
async def open_session(target: Target, token: str | None) -> AsyncGenerator[tuple[WebSocket, str]]:
    """A connection with a session of its own. Raises `NotServed`, or `CannotAttack` if the handshake is refused."""
    async with open_websocket(target.websocket, token) as socket:
        yield socket, (await run_command(socket, "start"))["session_id"]


async def fetch_json(target: Target, method: str, path: str, token: str | None, body: object = None) -> Any:
    """The JSON of a successful answer, None if it has no body. Raises `NotServed`."""
    try:
        response = await ask(target.http, method, path, token=token, body=body)
    except OSError:
        raise NotServed(f"{method} {path} found no server") from None
    if response is None:
        raise NotServed(f"{method} {path} was not answered")
    if response.status >= 300:
        raise NotServed(f"{method} {path} got {response.status}")
    return response.json() if response.body else None
