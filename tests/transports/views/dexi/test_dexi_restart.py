"""Runs that are forgotten, or were told by another process: the ledger answers for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from footlights.authority import SqliteLedger
from footlights_transports.access.policy import AccessPolicy
from tests.kit.peers.http_peer import open_house, refused
from tests.kit.story_game import make
from tests.kit.views.dexi_kit import lawful, output, types
from tests.kit.views.dexi_server import TOKENS, answer_of, bearer, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.peers.http_peer import House

INVOKE = "/api/agents/default/invoke"


async def run_of(house: House, said: str, policy: str, session_id: str | None = None) -> list[dict[str, Any]]:
    body = {"message": said, "execution_policy": policy, "session_id": session_id}
    return await answer_of(house.client, INVOKE, body)


async def recalled(house: House, run_id: str, last_id: int | None = None) -> list[dict[str, Any]]:
    headers = {} if last_id is None else {"last-event-id": str(last_id)}
    return await stream_of(house.client, f"/api/runs/{run_id}/events", headers=headers)


@pytest.mark.shows("narration-56", "narration-125")
@pytest.mark.parametrize("session_id", [None, "inn"])
@pytest.mark.parametrize(
    ("said", "outcome", "summary"),
    [
        ("Tell me a secret", "completed", "The run is completed."),
        ("Take the spoon", "failed", "The run failed, and nothing was committed. Why ("),
        ("Please fail", "failed", "The run failed, and nothing was committed. Why (model_error): "),
        ("Sell me the lantern", "waiting", "The run waits for approval. Waiting: a-000001: Buy the lantern of the"),
    ],
)
async def test_a_run_of_an_earlier_process_answers_with_its_mode_a_summary_and_its_end(
    tmp_path: Path, said: str, outcome: str, summary: str, session_id: str | None
) -> None:
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        told = await run_of(house, said, "force", session_id)
        before = (await house.client.get(f"/api/runs/{told[0]['run_id']}")).json()
    run_id = told[0]["run_id"]
    assert run_id == f"{before['turn_id']}.{before['session_id']}"
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        events = lawful(await recalled(house, run_id))
        assert (events[0]["mode"], events[-1]["outcome"], told[-1]["outcome"]) == ("execution", outcome, outcome)
        assert {event["run_id"] for event in events if "run_id" in event} == {run_id}
        assert events[-2]["content"].startswith(summary)
        assert "In the ledger: " in events[-2]["content"]
        assert "No tool was run" not in events[-2]["content"], "the ledger keeps no steps"
        assert output(events) == ""
        assert (await house.client.get(f"/api/runs/{run_id}")).json() == before
        answer = await house.client.post(f"/api/runs/{run_id}/cancel")
        assert (answer.status_code, answer.json()) == (200, {"canceled": False})
        assert not list(house.access.open_sessions()), "a recollection opens no session"


async def test_a_chat_of_an_earlier_process_says_only_that_it_is_over(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        run_id = (await run_of(house, "Tell me a secret", "deny"))[0]["run_id"]
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        events = lawful(await recalled(house, run_id))
    assert types(events) == ["mode", "output_delta", "done"]
    assert output(events) == "(The run is completed. In the ledger: 0 intents, 0 changes, 0 artifacts.)"
    assert "secret" not in json.dumps(events)


async def test_a_denied_request_of_an_earlier_process_still_says_what_allows_it(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        run_id = (await run_of(house, "Search the documents for rain.", "deny"))[0]["run_id"]
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        assert (await house.client.get(f"/api/runs/{run_id}")).json()["allow"] == {"execution_policy": "auto"}
        stream = await house.client.get(f"/api/runs/{run_id}/events")
        assert stream.headers["footlights-allow"] == "execution_policy=auto"


async def test_a_client_with_a_part_of_the_run_gets_the_end_once(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        told = await run_of(house, "Look at the rooms", "force")
    run_id = told[0]["run_id"]
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_house(cast=make(), ledger=ledger) as house:
        whole = await recalled(house, run_id)
        assert [types(await recalled(house, run_id, had)) for had in (0, 3, len(told) - 1)] == 3 * [["summary", "done"]]
        async with house.client.stream("GET", f"/api/runs/{run_id}/events") as answer:
            ids = [int(line[4:]) async for line in answer.aiter_lines() if line.startswith("id: ")]
        for place, each in enumerate(ids[:-1], 1):
            assert types(await recalled(house, run_id, each)) == types(whole[place:])
        end = await house.client.get(f"/api/runs/{run_id}/events", headers={"last-event-id": str(ids[-1])})
        assert (end.status_code, end.content) == (204, b""), "an EventSource does not come back for ever"
        beyond = await house.client.get(f"/api/runs/{run_id}/events", headers={"last-event-id": str(ids[-1] + 1)})
        assert refused(beyond) == (400, "invalid_command")


async def test_runs_of_others_and_turns_that_are_no_runs_stay_unknown(tmp_path: Path) -> None:
    policy = AccessPolicy(TOKENS)
    async with (
        SqliteLedger(tmp_path / "ledger") as ledger,
        open_house(cast=make(), ledger=ledger, policy=policy, headers=bearer("ann")) as house,
    ):
        run_id = (await run_of(house, "Hello", "force", "inn"))[0]["run_id"]
        turn = {"input": "Hello"}
        plain = (await house.client.post("/v1/sessions/ann:inn/turns", json=turn)).json()["turn_id"]
    async with (
        SqliteLedger(tmp_path / "ledger") as ledger,
        open_house(cast=make(), ledger=ledger, policy=AccessPolicy(TOKENS), headers=bearer("ann")) as house,
    ):
        assert (await house.client.get(f"/api/runs/{run_id}/events")).status_code == 200
        for unknown in (f"{plain}.ann:inn", "t9-000009.ann:inn", "r1-000001", "t1-000001", ".", "t1-000001.bob:inn"):
            assert refused(await house.client.get(f"/api/runs/{unknown}/events")) == (404, "unknown_run")
        for path in ("", "/events"):
            answer = await house.client.get(f"/api/runs/{run_id}{path}", headers=bearer("bob"))
            assert refused(answer) == (404, "unknown_run")
