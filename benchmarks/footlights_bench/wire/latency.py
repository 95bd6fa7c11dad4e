"""How soon a client over loopback sees that its turn was accepted, and that its cancel won.

One client in our own loop; and an audience in a process of its own, each with a turn that streams at the pace of a
model. There, time counts from when a turn was due to begin, so a server that stalls cannot hide it.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson
import trio
from trio_websocket import open_websocket

from footlights import open_stage
from footlights_bench.lib.figures import Aim, Figure, percentile
from footlights_bench.lib.scripts import cast_of, paced_turn, said_and_stalled
from footlights_bench.wire.sides import SUBPROTOCOL, Layout, open_ours, open_sink
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.websocket.server import serve_ws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_websocket import WebSocketConnection

    from footlights_bench.lib.scale import WireScale


SOON = Aim("below", 50_000.0)
_SECONDS_OF_BEGINNING = 3.0


async def measure_latency(scale: WireScale) -> list[Figure]:
    accepted: list[float] = []
    canceled: list[float] = []
    limits = WireLimits(commands_per_second=1e6, command_burst=1_000_000, byte_burst=1 << 30, user_byte_burst=1 << 30)
    async with open_stage(cast_of(said_and_stalled)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy(limits=limits))
        listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=0))
        connecting = open_websocket("127.0.0.1", listening.port, "/v1", use_ssl=False, subprotocols=[SUBPROTOCOL])
        async with connecting as socket:
            client = _Client(socket, stage.start().session_id)
            await client.subscribe()
            for _ in range(scale.samples):
                accepted.append(await client.timed("begin_turn", "turn_accepted", input="Go on."))
                await client.wait_for("token_delta")
                canceled.append(await client.timed("cancel", "turn_interrupted"))
                await client.wait_for("commit_final")
        nursery.cancel_scope.cancel()
    alone = "seen by a client, 1 session"
    return [
        _figure(alone, "turn_accepted after begin_turn", accepted),
        _figure(alone, "turn_interrupted after cancel", canceled),
        *await _measure_audience(scale.audience),
    ]


async def _measure_audience(clients: int) -> list[Figure]:
    async with open_sink() as sink, open_ours(paced_turn, sink, "audience", Layout(clients, 1)):
        answer = await sink.ask(do="begin evenly", crowd="audience", seconds=_SECONDS_OF_BEGINNING)
    subject = f"seen by {clients} clients, each with a streaming turn"
    micros = [second * 1e6 for second in answer["seconds"]]
    return [
        _figure(subject, "turn_accepted after begin_turn", answer["seconds"]),
        Figure(subject, "the same, p99", percentile(micros, 99), "µs", SOON),
    ]


class _Client:
    def __init__(self, socket: WebSocketConnection, session_id: str) -> None:
        self._socket = socket
        self._session_id = session_id

    async def subscribe(self) -> None:
        await self._command("subscribe")
        await self._socket.get_message()

    async def timed(self, op: str, event_type: str, **fields: str) -> float:
        """From just before the command is sent until its event is there."""
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


def _figure(subject: str, name: str, seconds: Sequence[float]) -> Figure:
    micros = [second * 1e6 for second in seconds]
    spread = {"p95": percentile(micros, 95), "p99": percentile(micros, 99), "max": max(micros)}
    return Figure(subject, name, percentile(micros, 50), "µs", None, spread)
