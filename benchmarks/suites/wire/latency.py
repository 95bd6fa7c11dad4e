"""Latency of `begin_turn` and `cancel` over loopback, until the client has the event.

One client runs in this process. Then an audience of clients in a process of its own begins turns that stream at the
pace of a model. There, time counts from when a turn was due to begin, so a server that stalls cannot hide it.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson
from attrs import evolve
from trio_websocket import open_websocket

from footlights import open_stage
from footlights_transports.access.policy import WireLimits
from footlights_transports.websocket.server import serve_ws
from suites.lib.figures import Aim, latency_figure
from suites.lib.scripts import cast_of, paced_turn, said_and_stalled
from suites.lib.serving import HOST, serving
from suites.wire.senders import SUBPROTOCOL, Layout, open_clients, open_ours

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from suites.lib.figures import Figure
    from suites.wire.suite import WireScale

SOON = Aim("below", 50_000.0)
_SECONDS_TO_BEGIN_ALL = 3.0


async def measure_latency(scale: WireScale) -> list[Figure]:
    accepted: list[float] = []
    canceled: list[float] = []
    limits = WireLimits(commands_per_second=1e6, command_burst=1_000_000, byte_burst=1 << 30, user_byte_burst=1 << 30)
    async with (
        open_stage(cast_of(said_and_stalled)) as stage,
        serving(serve_ws, stage, limits) as port,
        open_websocket(HOST, port, "/v1", use_ssl=False, subprotocols=[SUBPROTOCOL]) as socket,
    ):
        client = _Client(socket, stage.start().session_id)
        await client.subscribe()
        for _ in range(scale.samples):
            accepted.append(await client.timed("begin_turn", "turn_accepted", input="Go on."))
            await client.wait_for("token_delta")
            canceled.append(await client.timed("cancel", "turn_interrupted"))
            await client.wait_for("commit_final")
    alone = "seen by a client, 1 session"
    return [
        latency_figure(alone, "turn_accepted after begin_turn", accepted, percent=50, also=(95, 99)),
        latency_figure(alone, "turn_interrupted after cancel", canceled, percent=50, also=(95, 99)),
        *await _measure_audience(scale.audience),
    ]


async def _measure_audience(clients: int) -> list[Figure]:
    async with open_clients() as audience, open_ours(paced_turn, audience, "audience", Layout(clients, 1)):
        answer = await audience.ask(do="begin evenly", crowd="audience", seconds=_SECONDS_TO_BEGIN_ALL)
    subject = f"seen by {clients} clients, each with a streaming turn"
    median = latency_figure(subject, "turn_accepted after begin_turn", answer["seconds"], percent=50, also=(95, 99))
    return [median, evolve(median, name="the same, p99", value=median.spread["p99"], aim=SOON, spread={})]


class _Client:
    def __init__(self, socket: WebSocketConnection, session_id: str) -> None:
        self._socket = socket
        self._session_id = session_id

    async def subscribe(self) -> None:
        await self._command("subscribe")
        await self._socket.get_message()

    async def timed(self, op: str, event_type: str, **fields: str) -> float:
        """Seconds from just before the command is sent until its event is received."""
        began = perf_counter()
        await self._command(op, **fields)
        await self.wait_for(event_type)
        return perf_counter() - began

    async def wait_for(self, event_type: str) -> None:
        while True:
            frame: dict[str, Any] = orjson.loads(await self._socket.get_message())
            if frame.get("event_type") == event_type:
                return

    async def _command(self, op: str, **fields: str) -> None:
        command = {"op": op, "id": 1, "session_id": self._session_id, **fields}
        await self._socket.send_message(orjson.dumps(command).decode())
