"""Restart: the chat is lost, and the next turn is the same as without a restart."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from attrs import Factory, define

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    SessionParams,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.testing import only
from footlights_actors import ScriptedModel
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.innkeeper import innkeeper
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from tests.kit.peers.http_peer import HttpGuest
from tests.kit.served import open_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
    from pathlib import Path

    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights_actors import Line
    from tests.kit.served import Served


PATIENCE = 60
PORTS = ("--ws-port", "0", "--http-port", "0")


# -- in one process: what the model is told next


@define
class Told:
    """An innkeeper, and all of its prompts."""

    prompts: list[Prompt] = Factory(list["Prompt"])

    def cast(self) -> Cast:
        return tavern_cast(model=ScriptedModel(self._script, model_id="innkeeper"), load_seconds=0, tool_seconds=0)

    def _script(self, prompt: Prompt) -> Iterable[Line]:
        self.prompts.append(prompt)
        return innkeeper(prompt)


async def say(session: InteractionSession, words: str, params: TurnParams | None = None) -> CommitFinal:
    return await session.finalize(session.begin_turn(words, params)).wait()


async def rent(session: InteractionSession) -> None:
    await say(session, "rent the attic")


async def ask_for_the_lantern(session: InteractionSession) -> None:
    await say(session, "sell me the lantern")


async def begin_and_leave_open(session: InteractionSession) -> None:
    """The stage closes during this turn, so it is interrupted and nothing is committed."""
    session.begin_turn("rent the garden room")


YES = TurnParams(approvals={"a-000001": True})


async def next_action(
    stage: Stage, session: InteractionSession, told: Told, params: TurnParams | None = None
) -> tuple[Any, ...]:
    told.prompts.clear()
    commit = await say(session, "Do you have a room?", params)
    assert commit.commit_outcome is CommitOutcome.OK
    return told.prompts, stage.world


@pytest.mark.shows("feed-49")
@pytest.mark.parametrize(
    ("before", "params"),
    [(rent, None), (ask_for_the_lantern, None), (ask_for_the_lantern, YES), (begin_and_leave_open, None)],
)
async def test_the_next_action_is_the_same_after_a_restart(
    before: Callable[[InteractionSession], Awaitable[None]], params: TurnParams | None, tmp_path: Path
) -> None:
    told = Told()
    async with open_stage(told.cast(), ledger=tmp_path / "straight") as stage:
        session = stage.start(SessionParams(session_id="ann"))
        await before(session)
        session.cancel()
        straight = await next_action(stage, session, told, params)

    told = Told()
    async with open_stage(told.cast(), ledger=tmp_path / "restarted") as stage:
        await before(stage.start(SessionParams(session_id="ann")))
    async with open_stage(told.cast(), ledger=tmp_path / "restarted") as stage:
        restarted = await next_action(stage, stage.resume("ann"), told, params)

    assert restarted == straight
    assert len(restarted[0]) == 2


@pytest.mark.shows("feed-49")
async def test_a_session_that_rested_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    outcomes = []
    for rests in (False, True):
        told = Told()
        async with open_stage(told.cast(), ledger=tmp_path / str(rests)) as stage:
            access, user = SessionAccess(stage), User()
            session = access.start(user, SessionParams(session_id="ann"))
            await ask_for_the_lantern(session)
            if rests:
                async with session.subscribe(after={}) as stream:
                    await stream.receive_batch()
                    cursor = stream.cursor
                await access.let_rest(user, session)
                async with access.subscribe(user, "ann", cursor, ()):
                    session = access.session(user, "ann")
            outcomes.append(await next_action(stage, session, told, YES))
    assert outcomes[0] == outcomes[1]


# -- a real process that is killed


async def chat(guest: HttpGuest) -> list[str]:
    answer = await guest.client.get(f"{guest.path}/chat")
    return [each["content"] for each in answer.json()["messages"]]


async def world(client: httpx2.AsyncClient) -> Any:
    return (await client.get("/v1/world")).json()["world"]


async def turn(guest: HttpGuest, words: str, params: TurnParams | None = None) -> CommitOutcome:
    return (await guest.finalize(await guest.begin_turn(words, params))).commit_outcome


@asynccontextmanager
async def open_inn(folder: Path) -> AsyncGenerator[tuple[Served, httpx2.AsyncClient]]:
    async with open_server(folder, *PORTS) as server:
        address = f"http://127.0.0.1:{server.http_port}"
        async with httpx2.AsyncClient(base_url=address, timeout=None) as client:
            yield server, client


@pytest.mark.shows("feed-32", "feed-46", "feed-47", "feed-48")
async def test_a_killed_server_restarts_without_its_chat_and_with_everything_else(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with open_inn(tmp_path) as (server, client):
            created = await client.post("/v1/sessions", json={"params": {"session_id": "ann"}})
            guest = HttpGuest(client, created.json()["session_id"])
            await chat(guest)
            assert await turn(guest, "sell me the lantern") is CommitOutcome.OK
            while not any("Approval needed (a-000001)" in each for each in await chat(guest)):
                await trio.lowlevel.checkpoint()
            before = await world(client)
            open_turn = await guest.begin_turn("rent the attic")
            server.process.kill()
            await server.ended()

        async with open_inn(tmp_path) as (server, client):
            guest = HttpGuest(client, "ann")
            async with guest.subscribe({open_turn: 0}) as stream:
                events = [event async for event in stream.until_commit(open_turn)]
                assert [event.event_type for event in events] == [EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
                assert only(events, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
                assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
                assert await chat(guest) == []
                assert await world(client) == before
                assert await turn(guest, "Yes.", YES) is CommitOutcome.OK
                assert await turn(guest, "Yes!", YES) is CommitOutcome.FAIL_CLOSED
            after = await world(client)
    assert (after["lantern"], after["purse"], after["rooms"]["attic"]["guest"]) == ("the traveller", 5, None)
