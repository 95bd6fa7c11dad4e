"""The commits of a session and the world, asked for by WebSocket, through the Python client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights import CommitOutcome, FootlightsError, InvalidCommand, UnknownSession, UnknownTurn
from footlights.authority import recompute_digest
from footlights_actors import ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports import ConnectionLost, connect
from footlights_transports.access.policy import AccessPolicy
from tests.kit.peers.js_peer import House, open_house
from tests.kit.peers.ws_liar import open_liar

if TYPE_CHECKING:
    from footlights.authority.visibility import Visibility

ANN, BOB = "the-token-of-ann", "the-token-of-bob"


def address(house: House) -> str:
    return f"ws://127.0.0.1:{house.port}"


async def test_a_client_reads_the_commits_of_its_session_as_records() -> None:
    async with (
        open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as house,
        connect(address(house)) as client,
    ):
        session = await client.start()
        assert await session.commits() == ()
        ids = [await session.begin_turn(said) for said in ("Hello", "I'll take the attic")]
        for turn_id in ids:
            await session.finalize(turn_id)
        commits = await session.commits()
        assert [each.turn_id for each in commits] == ids
        assert [recompute_digest(each) for each in commits] == [each.commit_digest for each in commits]
        assert await session.commits(1) == commits[1:]
        assert commits[1].outcome is CommitOutcome.OK
        await session.close()
        assert await client.session(session.session_id).commits() == commits
        world = await client.world()
        assert world == house.stage.world
        assert world["purse"] == 18


async def test_a_client_reads_where_the_time_of_its_turn_went() -> None:
    async with (
        open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as house,
        connect(address(house)) as client,
    ):
        session = await client.start()
        turn_id = await session.begin_turn("Hello")
        await session.finalize(turn_id)
        summary = await session.summary(turn_id)
        assert summary is not None
        assert summary == house.stage.session(session.session_id).summary(turn_id)
        assert sum(each.took_us for each in summary.parts) == pytest.approx(
            (summary.committed_ms - summary.accepted_ms) * 1000, abs=1000
        )
        with pytest.raises(UnknownTurn):
            await session.summary("t1-000099")


async def test_a_turn_that_is_not_settled_has_no_summary() -> None:
    async with (
        open_house(standard_cast(ScriptedModel(lambda _: [Stall()]))) as house,
        connect(address(house)) as client,
    ):
        session = await client.start()
        assert await session.summary(await session.begin_turn("Hello")) is None


async def test_only_the_owner_reads_them() -> None:
    async with (
        open_house(policy=AccessPolicy({"ann": ANN, "bob": BOB})) as house,
        connect(address(house), token=ANN) as ann,
        connect(address(house), token=BOB) as bob,
    ):
        session = await ann.start()
        await session.finalize(await session.begin_turn("Hello"))
        assert len(await session.commits()) == 1
        with pytest.raises(UnknownSession):
            await bob.session(session.session_id).commits()


def no_world(_view: object, _user: object) -> object:
    raise KeyError("a secret")


def leave(_view: object, _user: object) -> object:
    raise SystemExit


@pytest.mark.parametrize("visibility", [no_world, leave, lambda _view, _user: {1, 2}])
async def test_a_visibility_that_fails_fails_one_command_and_not_the_connection(visibility: Visibility) -> None:
    cast = standard_cast(ScriptedModel(lambda _: []), world={}, visibility=visibility)
    async with open_house(cast) as house, connect(address(house)) as client:
        with pytest.raises(FootlightsError) as refused:
            await client.world()
        assert "secret" not in str(refused.value)
        assert await (await client.start()).commits() == ()


async def test_a_session_that_never_was_has_none() -> None:
    async with open_house() as house, connect(address(house)) as client:
        with pytest.raises(UnknownSession):
            await client.session("s1-000009").commits()
        with pytest.raises(InvalidCommand, match="limit: must be between 1 and 200"):
            await (await client.start()).commits(0)


@pytest.mark.parametrize("result", [{}, {"commits": 1}, {"commits": [1]}, {"commits": [{"turn_id": "t"}]}])
async def test_a_server_that_answers_something_else_is_none(result: dict[str, Any]) -> None:
    async with (
        open_liar(lambda command: [{"reply": command["id"], "ok": True, "result": result}]) as url,
        connect(url) as client,
    ):
        with pytest.raises(ConnectionLost, match="does not speak our protocol"):
            await client.session("s1-000001").commits()


@pytest.mark.parametrize("result", [{}, {"summary": 1}, {"summary": {"parts": [1]}}])
async def test_a_summary_that_is_none_is_refused(result: dict[str, Any]) -> None:
    async with (
        open_liar(lambda command: [{"reply": command["id"], "ok": True, "result": result}]) as url,
        connect(url) as client,
    ):
        with pytest.raises(ConnectionLost, match="does not speak our protocol"):
            await client.session("s1-000001").summary("t1-000001")
