"""Events a second over Server-Sent Events, against a bare Hypercorn that sends the same events one by one.

As over WebSocket, nothing makes the events of the bare one, and ours carries a whole stage besides.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import hypercorn.trio
import trio
from hypercorn.config import Config

from footlights import open_stage
from footlights_bench.lib.figures import Figure
from footlights_bench.lib.progress import say
from footlights_bench.lib.scripts import cast_of, whole_turn_yielding
from footlights_bench.wire.sides import Layout, Ours, messages_of, open_sink
from footlights_bench.wire.throughput import ratio_figure, run_lap
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.http.server import serve_http

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from footlights_actors import Script
    from footlights_bench.lib.scale import WireScale
    from footlights_bench.wire.sides import Side, Sink
    from footlights_bench.wire.throughput import Lap

_OURS, _BARE = "ours", "bare Hypercorn"


async def measure_sse(scale: WireScale) -> list[Figure]:
    figures: list[Figure] = []
    for clients, turns in ((1, scale.turns_alone), (scale.crowd, 1)):
        subject = f"events over SSE, {clients} client{'s' if clients > 1 else ''}"
        say(subject)
        figures += _figures(subject, await race_sse(clients, turns, scale.laps))
    return figures


async def race_sse(clients: int, turns: int, laps: int) -> dict[str, list[Lap]]:
    """Laps that alternated, by who ran them."""
    async with open_sink() as sink, AsyncExitStack() as stack:
        sides: dict[str, Side] = {
            _OURS: await stack.enter_async_context(_open_ours(whole_turn_yielding, sink, clients)),
            _BARE: await stack.enter_async_context(_open_bare(whole_turn_yielding, sink, clients)),
        }
        found: dict[str, list[Lap]] = {name: [] for name in sides}
        for _ in range(laps):
            for name, side in sides.items():
                found[name].append(await run_lap(side, sink, name, turns, clients * turns))
    return found


def _figures(subject: str, laps: dict[str, list[Lap]]) -> list[Figure]:
    pairs = zip(laps[_OURS], laps[_BARE], strict=True)
    ratios = [ours.accounted_per_second / bare.given_per_second for ours, bare in pairs]
    return [
        Figure(subject, _BARE, median(lap.given_per_second for lap in laps[_BARE]), "events/s"),
        Figure(subject, "ours, given", median(lap.given_per_second for lap in laps[_OURS]), "events/s"),
        Figure(subject, "ours, accounted for", median(lap.accounted_per_second for lap in laps[_OURS]), "events/s"),
        ratio_figure(subject, f"{_OURS} / {_BARE}", ratios, None),
    ]


@asynccontextmanager
async def _open_ours(script: Script, sink: Sink, clients: int) -> AsyncGenerator[Ours]:
    limits = WireLimits(keep_alive=86_400.0, commands_per_second=1e6, command_burst=1_000_000)
    async with open_stage(cast_of(script)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy(limits=limits))
        listening = await nursery.start(partial(serve_http, access, host="127.0.0.1", port=0, goodbye=0.1))
        ours = Ours(stage, Layout(clients, 1))
        paths = [f"/v1/sessions/{session.session_id}/events" for (session,) in ours.sessions]
        await sink.ask(do="open event streams", crowd=_OURS, port=listening.port, paths=paths)
        yield ours
        nursery.cancel_scope.cancel()


class _Bare:
    """An application that does nothing but send, and the turns that it is told to send."""

    def __init__(self, messages: Sequence[str]) -> None:
        self._frames = [f"id: 1\ndata: {message}\n\n".encode() for message in messages]
        self._turns: list[trio.MemorySendChannel[int]] = []

    async def play(self, turns: int) -> None:
        for channel in self._turns:
            channel.send_nowait(turns)

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            return
        to_send, to_play = trio.open_memory_channel[int](1)
        self._turns.append(to_send)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        async for turns in to_play:
            for _ in range(turns):
                for frame in self._frames:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})


@asynccontextmanager
async def _open_bare(script: Script, sink: Sink, clients: int) -> AsyncGenerator[_Bare]:
    bare = _Bare(await messages_of(script))
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    config.graceful_timeout = 0.1
    async with trio.open_nursery() as nursery:
        (address,) = await nursery.start(partial(cast("Any", hypercorn.trio).serve, bare, config, mode="asgi"))
        port = int(address.rpartition(":")[2])
        await sink.ask(do="open event streams", crowd=_BARE, port=port, paths=["/"] * clients)
        yield bare
        nursery.cancel_scope.cancel()
