"""Servers that break the laws, the protocol or the connection: a client detects them, and gives up in the end."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Request, TextMessage

from footlights import SessionClosed, SessionParams, UnknownSession
from footlights.stream.cursor import ALL_SEEN
from footlights_transports import ConnectionLost, LawBroken, Retry, connect
from footlights_transports.errors import Unauthorized
from tests.kit.peers.ws_liar import HANG_UP, open_liar, open_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trio.testing import MockClock

AT_ONCE = Retry(first=1e-6, longest=1e-6)


def an_event(seq: int = 0, **fields: object) -> dict[str, Any]:
    payload = {"turns_ahead": 0} if seq == 0 else {"model_id": "m", "reason": "default"}
    kind = "turn_accepted" if seq == 0 else "model_selected"
    return {
        "schema_v": "1.0",
        "session_id": "inn",
        "turn_id": "t1-000001",
        "seq": seq,
        "mono_ts_ms": 0,
        "event_type": kind,
        "payload": payload,
        **fields,
    }


def telling(*messages: object) -> Callable[[dict[str, Any]], Iterable[object]]:
    """Each subscriber is told this."""

    def answer(command: dict[str, Any]) -> Iterable[object]:
        yield {"reply": command["id"], "ok": True, "result": {}}
        yield from messages

    return answer


@pytest.mark.parametrize(
    ("lies", "law"),
    [
        ([an_event(), an_event()], "seq_increasing"),
        ([an_event(), an_event(2)], "seq_gap"),
        ([[an_event(), an_event(2)]], "seq_gap"),
        ([an_event(), an_event(1, payload={})], "envelope"),
        ([an_event(), an_event(1, session_id="barn")], "envelope"),
        ([[an_event(), 5]], "envelope"),
    ],
)
async def test_a_stream_that_is_not_lawful_is_broken_for_good(lies: list[object], law: str) -> None:
    async with (
        open_liar(telling(*lies)) as address,
        connect(address) as client,
        client.session("inn").subscribe() as stream,
    ):
        assert (await anext(stream)).seq == 0
        for _ in range(2):
            with pytest.raises(LawBroken) as broken:
                await anext(stream)
            assert broken.value.violation.law == law


async def test_a_server_that_repeats_after_a_cut_is_found_out() -> None:
    async with (
        open_liar(telling(an_event(), HANG_UP)) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        await anext(stream)
        with pytest.raises(LawBroken, match="seq_increasing"):
            await anext(stream)


async def test_where_the_server_began_is_said_again_when_the_client_comes_back() -> None:
    asked: list[dict[str, Any]] = []

    def answer(command: dict[str, Any]) -> Iterable[object]:
        asked.append(command)
        yield {"reply": command["id"], "ok": True, "result": {"cursor": {"t0-000009": ALL_SEEN}}}
        if len(asked) < 3:
            yield {"notice": "detached", "session_id": "inn", "reason": "stalled"}
        else:
            yield {"notice": "ended", "session_id": "inn"}

    async with (
        open_liar(answer) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        assert [event async for event in stream] == []
    assert [command.get("after") for command in asked] == [None, {"t0-000009": ALL_SEEN}, {"t0-000009": ALL_SEEN}]


@pytest.mark.parametrize("nonsense", ["not JSON", "5", [an_event()], {"reply": 99}])
async def test_a_server_that_does_not_speak_our_protocol_is_given_up(nonsense: object) -> None:
    hasty = Retry(first=1e-6, longest=1e-6, patience=1e-6)
    async with open_liar(lambda _: [nonsense]) as address, connect(address, retry=hasty) as client:
        with pytest.raises(ConnectionLost, match="protocol"):
            await client.session("inn").subscribe().__aenter__()


async def test_a_server_that_hears_every_command_and_answers_none_is_given_up() -> None:
    hasty = Retry(first=1e-6, longest=1e-6, patience=1e-5)
    async with (
        open_liar(lambda _: [{"notice": "x"}, {"reply": 5}, [], HANG_UP]) as address,
        connect(address, retry=hasty) as client,
    ):
        with pytest.raises(ConnectionLost) as lost:
            await client.session("inn").cancel()
        assert lost.value.maybe_done


@pytest.mark.parametrize("agreed", [None, False, True])
async def test_what_a_session_agreed_to_is_said_again_to_a_server_that_may_not_know(agreed: bool | None) -> None:
    asked: list[dict[str, Any]] = []

    def answer(command: dict[str, Any]) -> Iterable[object]:
        asked.append(command)
        yield {"reply": command["id"], "ok": True, "result": {"session_id": "inn"}}
        if command["op"] == "subscribe":
            yield HANG_UP if len(asked) == 2 else {"notice": "ended", "session_id": "inn"}

    async with open_liar(answer) as address, connect(address, retry=AT_ONCE) as client:
        session = await client.start(SessionParams(remote_models=agreed))
        async with session.subscribe() as stream:
            assert [event async for event in stream] == []
    assert [command.get("remote_models") for command in asked[1:]] == [None, agreed is True]


def cut_off_after(events: list[dict[str, Any]], *codes: str | None) -> Callable[[dict[str, Any]], Iterable[object]]:
    """A subscriber gets these events and is cut off; when it comes back it is refused with these codes in turn."""
    answers = iter(codes)
    subscribed = 0

    def answer(command: dict[str, Any]) -> Iterable[object]:
        nonlocal subscribed
        subscribed += 1
        code = None if subscribed == 1 else next(answers)
        if code is not None:
            yield {"reply": command["id"], "ok": False, "error": {"code": code, "message": f"No: {code}"}}
            return
        yield {"reply": command["id"], "ok": True, "result": {}}
        if subscribed > 1:
            yield {"notice": "ended", "session_id": "inn"}
        yield from (events, HANG_UP)

    return answer


def a_whole_turn() -> list[dict[str, Any]]:
    commit = {"commit_digest": "0" * 64, "commit_outcome": "fail_closed", "authoritative": True}
    issues = {"issues": [{"code": "turn_interrupted", "message": "It was."}], "artifact_refs": list[str]()}
    return [
        an_event(),
        an_event(1, event_type="turn_interrupted", payload={"reason": "session_closed"}),
        an_event(2, event_type="commit_final", payload={**commit, **issues}),
    ]


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (["unknown_session"], UnknownSession),
        (["busy", "rate_limited", "unknown_session"], UnknownSession),  # what may pass is not the end
        (["session_closed", "session_closed"], SessionClosed),
        (["unauthorized"], Unauthorized),
    ],
)
@pytest.mark.parametrize("taken", [1, 2])
async def test_a_session_that_is_gone_is_an_error_while_a_turn_is_not_settled(
    codes: list[str], error: type[Exception], taken: int
) -> None:
    async with (
        open_liar(cut_off_after(a_whole_turn()[:taken], *codes)) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        for _ in range(taken):
            await anext(stream)
        with pytest.raises(error, match=f"No: {codes[-1]}"):
            await anext(stream)


@pytest.mark.parametrize("codes", [["unknown_session"], ["session_closed", "session_closed"]])
@pytest.mark.parametrize("events", [[], a_whole_turn()])
async def test_a_session_that_is_gone_is_the_end_if_every_turn_is_settled(
    codes: list[str], events: list[dict[str, Any]]
) -> None:
    async with (
        open_liar(cut_off_after(events, *codes)) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        assert len([event async for event in stream]) == len(events)
        assert stream.is_exhausted


async def test_a_turn_that_was_begun_and_never_heard_of_is_missing_too() -> None:
    told = cut_off_after([], "unknown_session")

    def answer(command: dict[str, Any]) -> Iterable[object]:
        if command["op"] == "begin_turn":
            return [{"reply": command["id"], "ok": True, "result": {"turn_id": "t1-000001"}}]
        return told(command)

    async with open_liar(answer) as address, connect(address, retry=AT_ONCE) as client:
        session = client.session("inn")
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("A room?")
            with pytest.raises(UnknownSession):
                await anext(stream.until_commit(turn_id))


async def test_a_server_that_goes_down_says_session_closed_of_every_session_and_its_successor_does_not() -> None:
    async with (
        open_liar(cut_off_after([an_event()], "session_closed", None)) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        assert [event.seq async for event in stream] == [0]


async def test_a_server_that_always_answers_is_never_given_up_and_asked_less_and_less_often(
    autojump_clock: MockClock,
) -> None:
    asked_at: list[float] = []

    def answer(command: dict[str, Any]) -> Iterable[object]:
        asked_at.append(trio.current_time())
        yield {"reply": command["id"], "ok": True, "result": {}}
        yield HANG_UP if len(asked_at) < 50 else {"notice": "ended", "session_id": "inn"}

    async with (
        open_liar(answer) as address,
        connect(address) as client,
        client.session("inn").subscribe() as stream,
    ):
        assert [event async for event in stream] == []
    pauses = [later - earlier for earlier, later in pairwise(asked_at)]
    assert pauses == pytest.approx([0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, *[5] * 41], abs=0.01)


@pytest.mark.parametrize(
    "result",
    [{}, {"session_id": 1, "turn_id": 2, "canceled": 3}, {"canceled": [4], "commit_outcome": "who knows"}],
)
async def test_a_result_that_lacks_what_was_asked_for_is_found_out(result: dict[str, Any]) -> None:
    async with (
        open_liar(lambda it: [{"reply": it["id"], "ok": True, "result": result}]) as address,
        connect(address) as client,
    ):
        session = client.session("inn")
        for ask in (client.start, session.cancel, partial(session.begin_turn, "Hm"), partial(session.finalize, "t")):
            with pytest.raises(ConnectionLost, match="protocol"):
                await ask()


@pytest.mark.parametrize("cursor", [[], {"t1-000001": "all"}, {"t1-000001": True}, None])
async def test_a_cursor_that_is_none_is_found_out(cursor: object) -> None:
    hasty = Retry(first=1e-6, longest=1e-6, patience=1e-6)
    async with (
        open_liar(lambda it: [{"reply": it["id"], "ok": True, "result": {"cursor": cursor}}]) as address,
        connect(address, retry=hasty) as client,
    ):
        with pytest.raises(ConnectionLost, match="protocol"):
            await client.session("inn").subscribe().__aenter__()


async def test_a_command_that_was_half_written_when_the_server_failed_is_not_sent_twice() -> None:
    executed: list[int] = []
    connections = count(1)

    async def serve(stream: trio.SocketStream) -> None:
        connection, protocol, parts = next(connections), WSConnection(ConnectionType.SERVER), list[str]()
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await stream.receive_some():
                protocol.receive_data(bytes(data))
                for event in protocol.events():
                    if isinstance(event, Request):
                        await stream.send_all(protocol.send(AcceptConnection(subprotocol="footlights.v1")))
                    elif isinstance(event, TextMessage):
                        if connection == 1 and not parts:
                            await stream.send_all(protocol.send(TextMessage("this is not JSON")))
                        parts.append(event.data)
                        if event.message_finished:
                            executed.append(connection)
                            command = json.loads("".join(parts))
                            reply = {"reply": command["id"], "ok": True, "result": {"turn_id": "t1-000001"}}
                            await stream.send_all(protocol.send(TextMessage(json.dumps(reply))))

    async with open_peer(serve) as url, connect(url, retry=AT_ONCE) as client:
        assert await client.session("inn").begin_turn("A room? " * 4_000_000) == "t1-000001"
    assert executed == [2]
