"""Servers that lie, break off or speak nonsense: a client finds them out, and gives up on them in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights import SessionParams, UnknownSession
from footlights.recall import ALL_SEEN
from footlights_transports.client import ConnectionLost, LawBroken, Retry, connect

from .ws_liar import HANG_UP, open_liar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


async def test_a_server_that_drops_every_connection_is_given_up() -> None:
    hasty = Retry(first=1e-6, longest=1e-6, patience=1e-5)
    async with (
        open_liar(telling(HANG_UP)) as address,
        connect(address, retry=hasty) as client,
        client.session("inn").subscribe() as stream,
    ):
        with pytest.raises(ConnectionLost):
            await anext(stream)
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


async def test_a_refusal_to_have_a_client_back_reaches_its_reader() -> None:
    asked = 0

    def answer(command: dict[str, Any]) -> Iterable[object]:
        nonlocal asked
        asked += 1
        if asked == 1:
            return [{"reply": command["id"], "ok": True, "result": {}}, HANG_UP]
        code = "busy" if asked == 2 else "unknown_session"  # what may pass is not the end
        return [{"reply": command["id"], "ok": False, "error": {"code": code, "message": "No."}}]

    async with (
        open_liar(answer) as address,
        connect(address, retry=AT_ONCE) as client,
        client.session("inn").subscribe() as stream,
    ):
        with pytest.raises(UnknownSession, match="No"):
            await anext(stream)
    assert asked == 3
