"""Fairness between two owners: one takes all that a shared limit allows, and the server must still serve the other."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_bench.attack.floods.load import Load, Tally
from footlights_bench.attack.raw.http import read_response, request
from footlights_bench.attack.raw.sockets import BROKEN
from footlights_bench.attack.raw.websocket import open_websocket
from footlights_bench.attack.results import Result
from footlights_bench.attack.target import CannotAttack
from footlights_bench.attack.users import NotServed, fetch_json, open_session, play_turn, run_command

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from footlights_bench.attack.raw.sockets import Connection
    from footlights_bench.attack.raw.websocket import WebSocket
    from footlights_bench.attack.target import Address, Target

SHARED = 40
"""Every shared limit of the suite's own server."""
SETTINGS = f"""
[wire]
max_connections = {SHARED}
[limits]
max_open_turns = {SHARED}
max_sessions = {SHARED}
"""
MOST = 3 * SHARED
"""The amount that the first owner tries to take. If the limit is larger, the result says that it was not reached."""
TRIES = 8
_BOUND = f"{TRIES} of {TRIES} served"
_SERVED = (NotServed, CannotAttack, *BROKEN, trio.TooSlowError)


@frozen
class Taken:
    """What the first owner holds."""

    much: int
    was_refused: bool

    def __str__(self) -> str:
        return f"the other owner took {self.much}" + ("" if self.was_refused else ", and reached no limit")


async def _judge(name: str, taken: Taken, serve: Callable[[], Awaitable[object]]) -> Result:
    """Serve the second owner `TRIES` times; every time must succeed."""
    failures: list[str] = []
    for _ in range(TRIES):
        try:
            await serve()
        except _SERVED as error:
            failures.append(str(error) or type(error).__name__)
    reasons = [f"{n} of {TRIES} times the second owner was not served: {why}" for why, n in Counter(failures).items()]
    return Result(name, _BOUND, f"{TRIES - len(failures)} served; {taken}", sorted(reasons))


async def _play_in_new_session(target: Target) -> None:
    async with open_session(target, target.other_token) as (socket, session_id):
        await play_turn(socket, session_id)
        await run_command(socket, "close", session_id=session_id)


@asynccontextmanager
async def _keeping(load: Load, keep: Callable[[], Awaitable[None]]) -> AsyncGenerator[Taken]:
    """Hold connections in the background, and open each again when it is closed."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        with trio.move_on_after(3):
            while load.tally.units < MOST and not load.tally.refused:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await trio.sleep(0.5)
        yield Taken(load.tally.units, load.tally.refused > 0)
        nursery.cancel_scope.cancel()


async def websocket_connections(name: str, target: Target) -> Result:
    load = Load(target, Tally())

    async def hold(socket: WebSocket) -> None:
        load.tally.units += 1
        await socket.connection.discard()
        load.tally.refused += 1

    async def serve() -> None:
        await _play_in_new_session(target)
        await run_command(settled, "ping")

    async with (
        open_websocket(target.websocket, target.other_token) as settled,
        _keeping(load, lambda: load.websockets(MOST, hold, reads=False)) as taken,
    ):
        return await _judge(name, taken, serve)


async def http_connections(name: str, target: Target) -> Result:
    load = Load(target, Tally())
    session = (await fetch_json(target, "POST", "/v1/sessions", target.token))["session_id"]
    follow = request(target.http, "GET", f"/v1/sessions/{session}/events", token=target.token)

    async def hold(connection: Connection) -> None:
        await connection.send(follow)
        response = await read_response(connection, to_head=True)
        if response is not None and response.status == 200:
            load.tally.units += 1
            await connection.discard()
        load.tally.refused += 1
        await trio.sleep(0.05)

    async with _keeping(load, lambda: load.connections_to(MOST, target.http, hold)) as taken:
        return await _judge(name, taken, partial(fetch_json, target, "GET", "/v1/world", target.other_token))


async def half_sent_bodies(name: str, target: Target) -> Result:
    """Clients without a token begin requests that they do not finish."""
    whole = request(target.http, "POST", "/v1/sessions", body=b" " * 99)
    return await _strangers(name, target, target.http, whole[:-98])


async def silent_http(name: str, target: Target) -> Result:
    return await _strangers(name, target, target.http, b"")


async def silent_websocket(name: str, target: Target) -> Result:
    return await _strangers(name, target, target.websocket, b"")


async def _strangers(name: str, target: Target, address: Address, begin: bytes) -> Result:
    load = Load(target, Tally())

    async def hold(connection: Connection) -> None:
        if begin:
            await connection.send(begin)
        load.tally.units += 1
        await connection.discard()
        load.tally.refused += 1
        await trio.sleep(0.05)

    async def serve() -> None:
        await fetch_json(target, "GET", "/v1/world", target.other_token)
        await _play_in_new_session(target)

    async with _keeping(load, lambda: load.connections_to(MOST, address, hold)) as taken:
        return await _judge(name, taken, serve)


async def sessions(name: str, target: Target) -> Result:
    async with open_websocket(target.websocket, target.token) as flooder:
        taken = await _take(lambda: run_command(flooder, "start"))
        return await _judge(name, taken, partial(_play_in_new_session, target))


async def open_turns(name: str, target: Target) -> Result:
    params = {"busy": "concurrent"} | ({"persona": target.slow_persona} if target.slow_persona else {})
    async with (
        open_websocket(target.websocket, target.token) as flooder,
        open_session(target, target.other_token) as (socket, session_id),
    ):
        ids = [(await run_command(flooder, "start"))["session_id"] for _ in range(MOST // 10)]
        numbers = iter(range(MOST))

        async def begin() -> None:
            said = "Report on everything that you know, at length."
            owned = ids[next(numbers) % len(ids)]
            await run_command(flooder, "begin_turn", session_id=owned, input=said, params=params)

        taken = await _take(begin)
        result = await _judge(name, taken, partial(play_turn, socket, session_id))
        for owned in ids:
            await flooder.ask("close", session_id=owned)
        return result


async def chat_feeds(name: str, target: Target) -> Result:
    """A chat feed keeps its messages, however many feeds another owner reads."""
    async with open_session(target, target.other_token) as (socket, session_id):
        path = f"/v1/sessions/{session_id}/chat"
        await fetch_json(target, "GET", path, target.other_token)
        await play_turn(socket, session_id)
        await trio.sleep(0.2)
        before = len((await fetch_json(target, "GET", path, target.other_token))["messages"])
        async with open_websocket(target.websocket, target.token) as flooder:

            async def read_one() -> None:
                other = (await run_command(flooder, "start"))["session_id"]
                await fetch_json(target, "GET", f"/v1/sessions/{other}/chat", target.token)

            taken = await _take(read_one)

        async def serve() -> None:
            now = len((await fetch_json(target, "GET", path, target.other_token))["messages"])
            if now < before or not before:
                raise NotServed(f"its chat feed had {before} messages and has {now} now")

        return await _judge(name, taken, serve)


async def _take(one: Callable[[], Awaitable[object]]) -> Taken:
    """Call `one` until it is refused, at most `MOST` times."""
    for much in range(MOST):
        try:
            await one()
        except NotServed:
            return Taken(much, was_refused=True)
    return Taken(MOST, was_refused=False)


FAIRNESS: Mapping[str, tuple[Callable[[str, Target], Awaitable[Result]], str]] = {
    "fairness/websocket-connections": (websocket_connections, SETTINGS),
    "fairness/http-connections": (http_connections, SETTINGS),
    "fairness/half-sent-bodies": (half_sent_bodies, SETTINGS),
    "fairness/silent-http": (silent_http, SETTINGS),
    "fairness/silent-websocket": (silent_websocket, SETTINGS),
    "fairness/sessions": (sessions, SETTINGS),
    "fairness/open-turns": (open_turns, SETTINGS),
    # Feeds have a limit of their own, which must be reached before that of the sessions.
    "fairness/chat-feeds": (chat_feeds, ""),
}
