"""Fairness between two owners: one takes all that a shared limit allows, and the other must be served all the same."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_bench.attack.exchange import read_response, request
from footlights_bench.attack.frames import talking
from footlights_bench.attack.load import Load, Tally
from footlights_bench.attack.players import NotServed, asked, got, play_turn, playing
from footlights_bench.attack.results import Result
from footlights_bench.attack.sockets import BROKEN
from footlights_bench.attack.target import CannotAttack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from footlights_bench.attack.frames import Talk
    from footlights_bench.attack.sockets import Wire
    from footlights_bench.attack.target import Address, Target

SHARED = 40
"""The shared limit of the suite's own server, for each thing that is shared."""
SETTINGS = f"""
[wire]
max_connections = {SHARED}
[limits]
max_open_turns = {SHARED}
max_sessions = {SHARED}
"""
MOST = 3 * SHARED
"""What the first owner tries to take of anything. A limit that is larger is not reached, and the result says so."""
TRIES = 8
_BOUND = f"{TRIES} of {TRIES} served"
_SERVED = (NotServed, CannotAttack, *BROKEN, trio.TooSlowError)


@frozen
class Taken:
    """What the first owner holds while the second is served."""

    much: int
    was_refused: bool

    def __str__(self) -> str:
        return f"the other owner took {self.much}" + ("" if self.was_refused else ", and reached no limit")


async def _judge(name: str, taken: Taken, serve: Callable[[], Awaitable[None]]) -> Result:
    """Serve the second owner some times; every time must succeed."""
    failures: list[str] = []
    for _ in range(TRIES):
        try:
            await serve()
        except _SERVED as error:
            failures.append(str(error) or type(error).__name__)
    told = [f"{failures.count(why)} of {TRIES} times the second owner was not served: {why}" for why in set(failures)]
    return Result(name, _BOUND, f"{TRIES - len(failures)} served; {taken}", sorted(told))


@asynccontextmanager
async def _keeping(load: Load, keep: Callable[[], Awaitable[None]]) -> AsyncGenerator[Taken]:
    """Connections that are held and come back when they are closed, in the background."""
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

    async def hold(talk: Talk) -> None:
        load.tally.units += 1
        await talk.wire.discard()
        load.tally.refused += 1

    async def serve() -> None:
        async with playing(target, target.other_token) as (talk, session_id):
            await play_turn(talk, session_id)
            await asked(talk, "close", session_id=session_id)
        await asked(settled, "ping")

    async with (
        talking(target.websocket, target.other_token) as settled,
        _keeping(load, lambda: load.talks(MOST, hold, reads=False)) as taken,
    ):
        return await _judge(name, taken, serve)


async def http_connections(name: str, target: Target) -> Result:
    load = Load(target, Tally())
    session = (await got(target, "POST", "/v1/sessions", target.token))["session_id"]
    follow = request(target.http, "GET", f"/v1/sessions/{session}/events", token=target.token)

    async def hold(wire: Wire) -> None:
        await wire.send(follow)
        response = await read_response(wire, to_head=True)
        if response is not None and response.status == 200:
            load.tally.units += 1
            await wire.discard()
        load.tally.refused += 1
        await trio.sleep(0.05)

    async def serve() -> None:
        await got(target, "GET", "/v1/world", target.other_token)

    async with _keeping(load, lambda: load.wires(MOST, target.http, hold)) as taken:
        return await _judge(name, taken, serve)


async def half_sent_bodies(name: str, target: Target) -> Result:
    """Strangers, who have shown no token, begin requests that they do not finish."""
    whole = request(target.http, "POST", "/v1/sessions", body=b" " * 99)
    return await _strangers(name, target, target.http, whole[:-98])


async def silent_http(name: str, target: Target) -> Result:
    return await _strangers(name, target, target.http, b"")


async def silent_websocket(name: str, target: Target) -> Result:
    return await _strangers(name, target, target.websocket, b"")


async def _strangers(name: str, target: Target, address: Address, begin: bytes) -> Result:
    load = Load(target, Tally())

    async def hold(wire: Wire) -> None:
        if begin:
            await wire.send(begin)
        load.tally.units += 1
        await wire.discard()
        load.tally.refused += 1
        await trio.sleep(0.05)

    async def serve() -> None:
        await got(target, "GET", "/v1/world", target.other_token)
        async with playing(target, target.other_token) as (talk, session_id):
            await play_turn(talk, session_id)
            await asked(talk, "close", session_id=session_id)

    async with _keeping(load, lambda: load.wires(MOST, address, hold)) as taken:
        return await _judge(name, taken, serve)


async def sessions(name: str, target: Target) -> Result:
    async with talking(target.websocket, target.token) as flooder:
        taken = await _take(lambda: asked(flooder, "start"))

        async def serve() -> None:
            async with playing(target, target.other_token) as (talk, session_id):
                await play_turn(talk, session_id)
                await asked(talk, "close", session_id=session_id)

        return await _judge(name, taken, serve)


async def open_turns(name: str, target: Target) -> Result:
    params = {"busy": "concurrent"} | ({"persona": target.slow_persona} if target.slow_persona else {})
    async with (
        talking(target.websocket, target.token) as flooder,
        playing(target, target.other_token) as (talk, session_id),
    ):
        ids = [(await asked(flooder, "start"))["session_id"] for _ in range(MOST // 10)]
        numbers = iter(range(MOST))

        async def begin() -> None:
            said = "Report on everything that you know, at length."
            await asked(flooder, "begin_turn", session_id=ids[next(numbers) % len(ids)], input=said, params=params)

        taken = await _take(begin)

        async def serve() -> None:
            await play_turn(talk, session_id)

        result = await _judge(name, taken, serve)
        for session_id_of_flooder in ids:
            await flooder.ask("close", session_id=session_id_of_flooder)
        return result


async def chat_feeds(name: str, target: Target) -> Result:
    """A feed that is being read keeps its messages, however many feeds another owner reads."""
    async with playing(target, target.other_token) as (talk, session_id):
        path = f"/v1/sessions/{session_id}/chat"
        await got(target, "GET", path, target.other_token)
        await play_turn(talk, session_id)
        await trio.sleep(0.2)
        before = len((await got(target, "GET", path, target.other_token))["messages"])
        async with talking(target.websocket, target.token) as flooder:

            async def read_one() -> None:
                other = (await asked(flooder, "start"))["session_id"]
                await got(target, "GET", f"/v1/sessions/{other}/chat", target.token)

            taken = await _take(read_one)

        async def serve() -> None:
            now = len((await got(target, "GET", path, target.other_token))["messages"])
            if now < before or not before:
                raise NotServed(f"its chat feed had {before} messages and has {now} now")

        return await _judge(name, taken, serve)


async def _take(one: Callable[[], Awaitable[object]]) -> Taken:
    """Take as much of something as is given, up to `MOST`."""
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
    # Feeds have a limit of their own, which the number of sessions must allow to be reached.
    "fairness/chat-feeds": (chat_feeds, ""),
}
