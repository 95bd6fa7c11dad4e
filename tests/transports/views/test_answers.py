"""Answers to what waits for an approval: each view can give one, as a new command that names what it approves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.kit.peers.kgent_peer import connect_to
from tests.kit.story_game import PROMPTS
from tests.kit.views import ag_ui_kit
from tests.kit.views.dexi_kit import lawful
from tests.kit.views.theatre import SESSION, open_theatre

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from tests.kit.views.theatre import Audience, Theatre

ID = "a-000001"
QUESTION = "Buy the lantern of the house for 15 coins?"
YES: Mapping[str, bool] = {ID: True}


async def natively(_: Theatre, audience: Audience) -> None:
    turn = {"session_id": SESSION, "input": "Yes.", "params": {"approvals": YES}}
    await audience.native.ask("begin_turn", **turn)


async def over_http(_: Theatre, audience: Audience) -> None:
    body = {"input": "Yes.", "params": {"approvals": YES}}
    answer = await audience.http.post(f"/v1/sessions/{SESSION}/turns", json=body)
    assert answer.status_code == 202, answer.text


async def over_dexi(_: Theatre, audience: Audience) -> None:
    body = {"message": "Yes.", "approvals": YES, "session_id": SESSION, "stream": False}
    run = (await audience.http.post("/api/agents/default/invoke", json=body)).json()
    assert run["mode"] == "execution", "an approval is carried out"
    assert lawful(run["events"])[-1]["outcome"] == "completed"


async def in_kgent(theatre: Theatre, _: Audience) -> None:
    async with connect_to(theatre.opened.ws_port, f"/perturb/default?session={SESSION}") as sender:
        await sender.send("Yes.", approvals=YES, correlation_id="mine")


async def in_ag_ui(_: Theatre, audience: Audience) -> None:
    resume = [{"interruptId": ID, "status": "resolved", "payload": {"approved": True}}]
    port = audience.http.base_url.port
    assert port is not None
    async with ag_ui_kit.running(port, "default", ag_ui_kit.asking("Yes.", "mine", SESSION, resume=resume)) as reader:
        await reader.take_all()


async def on_the_board(_: Theatre, audience: Audience) -> None:
    answer = await audience.http.post(f"/api/mission-board/{SESSION}/approvals", json={"approvals": YES})
    assert (answer.status_code, answer.json().keys()) == (202, {"mission_id", "turn_id"})


@pytest.mark.shows("callouts-63")
@pytest.mark.parametrize("give", [natively, over_http, over_dexi, in_kgent, in_ag_ui, on_the_board])
async def test_each_view_shows_what_waits_and_can_answer_it(
    tmp_path: Path, give: Callable[[Theatre, Audience], Awaitable[None]]
) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await audience.watch("Sell me the lantern")
        before = len(PROMPTS)
        await give(theatre, audience)
        await audience.watch("Good night")  # a later turn of the session, so the answer is committed
        assert (await audience.world())["lantern"] == "the traveller"
        assert QUESTION in PROMPTS[before].system, "the prompt of the answering turn contains what was approved"


async def refused(audience: Audience, path: str, **body: Any) -> tuple[int, str]:
    answer = await audience.http.post(path, json=body)
    return answer.status_code, answer.json()["error"]["message"]


async def test_answers_that_cannot_be_are_refused_before_a_turn_begins(tmp_path: Path) -> None:
    board = f"/api/mission-board/{SESSION}/approvals"
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await audience.watch("Sell me the lantern")
        for path, more in (("/api/agents/default/invoke", {"message": "Yes."}), (board, {})):
            wrongs: list[Any] = [[], {"lantern": True}, {ID: "yes"}, {ID: 1}]
            for wrong in wrongs:
                status, message = await refused(audience, path, approvals=wrong, **more)
                assert (status // 100, "approvals" in message) == (4, True)
        assert (await refused(audience, board, approvals={}))[0] == 400
        assert (await refused(audience, "/api/mission-board/nowhere/approvals", approvals=YES))[0] == 404
        status, message = await refused(audience, "/api/chat", message="Yes.", approvals=YES, session_id=SESSION)
        assert (status, message) == (
            422, 'approvals: a yes is carried out, so it needs "execution_policy": "auto" or "force".',
        )  # fmt: skip
        assert list((await audience.world())["approvals"]["pending"]) == [ID]
        no = {"message": "No.", "approvals": {ID: False}, "session_id": SESSION, "stream": False}
        assert (await audience.http.post("/api/chat", json=no)).json()["mode"] == "chat"
        assert (await audience.world())["approvals"]["pending"] == {}
