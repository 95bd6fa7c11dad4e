"""Cancelling a client at any point leaves nothing behind, and loses nothing for later reads.

The server is a script, and the network is memory: so every run repeats the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import trio
import trio.testing
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    ModelReady,
    ModelSelected,
    StreamEvent,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    WarmState,
    laws,
    wire,
)
from footlights.events import EVENT_TYPES
from footlights.testing import cancel_everywhere
from footlights_transports import Retry, connect
from footlights_transports.client import connection as client_connection
from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from footlights.testing import Trial
    from footlights_transports.client.address import Address

RETRY = Retry(first=0.5, longest=0.5)
TURN = [
    StreamEvent("1.0", "inn", "t1-000001", seq, seq, EVENT_TYPES[type(payload)], payload)
    for seq, payload in enumerate(
        (
            TurnAccepted(),
            ModelSelected("m", "default"),
            ModelReady("m", WarmState.HOT, 0),
            TokenDelta("Good", 0),
            TokenDelta(" evening.", 4),
            TurnFinal("Good evening."),
            CommitFinal("0" * 64, CommitOutcome.OK),
        )
    )
]


class Server:
    """Tells each subscriber two events more than it has, and hangs up."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.connections = 0

    async def open(self, _address: Address) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        self.connections += 1
        ours, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs)
        return ours

    async def _serve(self, stream: trio.StapledStream[Any, Any]) -> None:
        protocol = WSConnection(ConnectionType.SERVER)
        async with stream:
            try:
                while data := await stream.receive_some():
                    protocol.receive_data(bytes(data))
                    for event in protocol.events():
                        for answer in self._answers(event):
                            await stream.send_all(protocol.send(answer))
                            if isinstance(answer, CloseConnection):
                                return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

    def _answers(self, event: object) -> Iterable[Any]:
        if isinstance(event, Request):
            yield AcceptConnection(subprotocol=SUBPROTOCOL)
        elif isinstance(event, CloseConnection):
            yield event.response()
        elif isinstance(event, TextMessage):
            yield from self._obey(orjson.loads(event.data))

    def _obey(self, command: dict[str, Any]) -> Iterable[Any]:
        results = {
            "start": {"session_id": "inn"},
            "begin_turn": {"turn_id": "t1-000001"},
            "follow_commits": {"cursor": "0"},
        }
        result = results.get(command["op"], {})
        yield _text({"reply": command["id"], "ok": True, "result": result})
        if command["op"] == "subscribe":
            had = command.get("after", {}).get("t1-000001", -1)
            yield _text([wire.to_wire(event) for event in TURN[had + 1 : had + 3]])
            yield CloseConnection(code=1001)
        if command["op"] == "follow_commits":
            first = int(command.get("after", "0")) + 1
            for number in range(first, first + 2):
                yield _text({"commit": {"cursor": str(number), "session_id": None, "turn_id": None, "changes": []}})
            yield CloseConnection(code=1001)


def _text(message: object) -> TextMessage:
    return TextMessage(data=orjson.dumps(message).decode())


def test_a_client_may_be_cancelled_at_any_point(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(client_connection, "_open_stream", Server(nursery).open)
            async with connect("ws://inn", retry=RETRY) as client:
                session = await client.start()
                async with session.subscribe() as stream:
                    turn_id = await session.begin_turn("A room?")
                    events = [event async for event in stream.until_commit(turn_id)]
                await session.close()
            assert laws.check(events) == []

    assert cancel_everywhere(scenario, orders=1).points > 50


def test_a_read_may_be_cancelled_at_any_point_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(trial: Trial) -> None:
        events: list[StreamEvent] = []
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(client_connection, "_open_stream", Server(nursery).open)
            async with connect("ws://inn", retry=RETRY) as client, client.session("inn").subscribe() as stream:
                reading = [trio.CancelScope()]
                trial.aim(lambda: reading[0].cancel())
                while not events or events[-1].event_type is not EventType.COMMIT_FINAL:
                    with reading[0]:
                        while not events or events[-1].event_type is not EventType.COMMIT_FINAL:
                            events.append(await anext(stream))
                    reading[0] = trio.CancelScope()
                trial.disarm()
        assert events == TURN

    assert cancel_everywhere(scenario, orders=1, pairs=30).points > 25


def test_a_command_may_be_cancelled_at_any_point_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(trial: Trial) -> None:
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(client_connection, "_open_stream", Server(nursery).open)
            async with connect("ws://inn", retry=RETRY) as client:
                session = await client.start()
                with trio.CancelScope() as scope:
                    trial.aim(scope.cancel)
                    await session.heard("t1-000001", 0)
                trial.disarm()
                assert await session.begin_turn("A room?") == "t1-000001"

    assert cancel_everywhere(scenario, orders=2).points > 3


def test_a_command_may_be_cancelled_at_any_point_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(trial: Trial) -> None:
        async with trio.open_nursery() as nursery:
            server = Server(nursery)
            monkeypatch.setattr(client_connection, "_open_stream", server.open)
            async with connect("ws://inn", retry=RETRY) as client, trio.open_nursery() as others:
                session = await client.start()
                with trio.CancelScope() as scope:
                    trial.aim(scope.cancel)
                    others.start_soon(session.begin_turn, "One before")
                    await session.heard("t1-000001", 0)
                    others.start_soon(session.begin_turn, "One behind")
                    await session.heard("t1-000001", 0)
                trial.disarm()
            assert server.connections == 1

    assert cancel_everywhere(scenario, orders=2).points > 8


def test_a_feed_may_be_cancelled_at_any_point_and_no_commit_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(trial: Trial) -> None:
        cursors: list[str] = []
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(client_connection, "_open_stream", Server(nursery).open)
            async with connect("ws://inn", retry=RETRY) as client, client.follow_commits() as feed:
                reading = [trio.CancelScope()]
                trial.aim(lambda: reading[0].cancel())
                while len(cursors) < 5:
                    with reading[0]:
                        while len(cursors) < 5:
                            cursors.append((await anext(feed)).cursor)
                    reading[0] = trio.CancelScope()
                trial.disarm()
        assert cursors == ["1", "2", "3", "4", "5"]

    assert cancel_everywhere(scenario, orders=1, pairs=0).points > 20
