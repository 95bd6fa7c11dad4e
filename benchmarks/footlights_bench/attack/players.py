"""Ordinary users over WebSocket and HTTP: they start sessions, play turns and read what is theirs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from footlights_bench.attack.exchange import ask
from footlights_bench.attack.frames import Talk, talking
from footlights_bench.attack.sockets import BROKEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_bench.attack.target import Target


class NotServed(Exception):
    """The server refused or did not answer what an ordinary user asked for; the message says which."""


async def asked(talk: Talk, op: str, **fields: object) -> dict[str, Any]:
    """The result of a command. Raises `NotServed`."""
    try:
        reply = await talk.ask(op, **fields)
    except BROKEN:
        raise NotServed(f"the connection was closed before {op}") from None
    if not reply:
        raise NotServed(f"{op} was not answered")
    if not reply["ok"]:
        raise NotServed(f"{op} got {reply['error']['code']}: {reply['error']['message']}")
    result: dict[str, Any] = reply["result"]
    return result


async def play_turn(talk: Talk, session_id: str, words: str = "Good evening.", **params: object) -> str:
    """One turn to its commit; its id. Raises `NotServed`, also if it was not committed `ok`."""
    turn = await asked(talk, "begin_turn", session_id=session_id, input=words, params=params)
    commit = await asked(talk, "finalize", session_id=session_id, turn_id=turn["turn_id"])
    if commit["commit_outcome"] != "ok":
        raise NotServed(f"a turn was committed as {commit['commit_outcome']}")
    return str(turn["turn_id"])


@asynccontextmanager
async def playing(target: Target, token: str | None) -> AsyncGenerator[tuple[Talk, str]]:
    """A connection with a session of its own. Raises `NotServed`, or `CannotAttack` if the handshake is refused."""
    async with talking(target.websocket, token) as talk:
        yield talk, (await asked(talk, "start"))["session_id"]


async def got(target: Target, method: str, path: str, token: str | None, body: object = None) -> Any:
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
