"""Destructive work under `auto`: it begins at once, the destructive call waits, and the answer is a run of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights.authority import Intent, IntentType, accept, patch, with_approvals
from footlights.tools.decorator import tool
from footlights.tools.tool import ToolContext  # noqa: TC001 - the tool's schema is made from it
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from tests.kit.peers.http_peer import open_house
from tests.kit.views.dexi_kit import types
from tests.kit.views.dexi_server import answer_of

if TYPE_CHECKING:
    from footlights import Cast, Prompt
    from footlights.authority import Ruling
    from footlights_actors import Line

QUESTION = "Delete 2 simulations?"
INVOKE = "/api/agents/default/invoke"


@tool
async def delete_simulations(context: ToolContext) -> str:
    """Delete all simulations."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"act": "delete"}))
    return "asked for"


def lab(prompts: list[Prompt]) -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        prompts.append(prompt)
        return [Say("There.")] if prompt.exchanges or "Yes" in prompt.user else [Call("delete_simulations")]

    def shelves(world: Any, intents: tuple[Intent, ...]) -> Ruling:
        return accept(*[patch.replace("/simulations", []) for each in intents if each.payload == {"act": "delete"}])

    rules = with_approvals({"shelves": shelves}, lambda world, _: f"Delete {len(world['simulations'])} simulations?")
    world: Any = {"simulations": [1, 2]}
    return standard_cast(ScriptedModel(script), tools=[delete_simulations], world=world, rules=rules)


@pytest.mark.shows("narration-50", "narration-97")
@pytest.mark.parametrize("stays", [True, False])
async def test_destructive_work_runs_at_once_and_waits_for_the_answer_of_a_new_run(stays: bool) -> None:
    prompts: list[Prompt] = []
    async with open_house(cast=lab(prompts)) as house:
        asks = {"message": "Delete the simulations.", "session_id": "lab"}
        run = await answer_of(house.client, INVOKE, asks)
        about = (await house.client.get(f"/api/runs/{run[0]['run_id']}")).json()
        assert about["decision"]["confirmation"] == "destructive"
        assert (about["decision"]["policy"], about["decision"]["mode"]) == ("auto", "execution")
        assert types(run)[-2:] == ["summary", "done"]
        assert run[-2]["content"].startswith(f"The run waits for approval. Waiting: a-000001: {QUESTION}")
        assert run[-1]["outcome"] == "waiting"
        assert house.stage.world["simulations"] == [1, 2]
        (exchange,) = prompts[-1].exchanges
        assert "waits for the player's approval" in str(exchange.value), "the model does not take it for done"
        answers = {"message": "Yes.", "session_id": "lab", "approvals": {"a-000001": not stays}}
        answer = await answer_of(house.client, INVOKE, answers)
        assert answer[0]["run_id"] != run[0]["run_id"]
        assert answer[-1]["outcome"] == "completed"
        assert house.stage.world["simulations"] == ([1, 2] if stays else [])


@pytest.mark.shows("narration-13")
async def test_destructive_work_under_deny_only_talks() -> None:
    async with open_house(cast=lab([])) as house:
        run = await answer_of(house.client, "/api/chat", {"message": "Delete the simulations.", "session_id": "lab"})
        assert (run[0]["mode"], run[-1]["outcome"]) == ("chat", "completed")
        assert house.stage.world == {"simulations": [1, 2]}
