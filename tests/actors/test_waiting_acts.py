"""Acts that wait, inside turns: what the call's result, the model and the answering turn's prompt say about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights import CommitFinal, EventType, Fact, Persona, ToolCallResult, TurnParams, open_stage
from footlights.authority import (
    ApprovalState,
    Intent,
    IntentType,
    accept,
    approval_news,
    decisions,
    patch,
    pending_approvals,
    with_approvals,
)
from footlights.testing import only
from footlights.tools.decorator import tool
from footlights.tools.tool import ToolContext  # noqa: TC001 - the tool's schema is made from it
from footlights_actors import Call, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Cast, Prompt, StreamEvent
    from footlights.authority import Ruling
    from footlights.stage.stage import Stage
    from footlights_actors import Line

ID = "a-000001"


@tool
async def sell(context: ToolContext) -> str:
    """Sell a horse."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"act": "sell"}))
    return "written down"


def stable(_: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(*[patch.replace("/horses", 0) for _ in intents])


def asks(_: object, __: Intent) -> str | None:
    return "Sell it?"


def cast(prompts: list[Prompt], needs: Callable[[Any, Intent], str | None] | None = asks) -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        prompts.append(prompt)
        return [Call("sell")] if prompt.user == "Sell" and not prompt.exchanges else [Say("Well.")]

    rules = {"stable": stable} if needs is None else with_approvals({"stable": stable}, needs)
    personas = {"groom": Persona(text="You are a groom.", facts=lambda *_: [Fact("Weather", "rain")])}
    return standard_cast(ScriptedModel(script), tools=[sell], personas=personas, world={"horses": 1}, rules=rules)


async def events_of(stage: Stage, said: str, session_id: str, **answers: bool) -> list[StreamEvent]:
    session = stage.resume(session_id)
    async with session.subscribe() as stream:
        approvals = {id_.replace("_", "-"): yes for id_, yes in answers.items()}
        turn_id = session.begin_turn(said, TurnParams(approvals=approvals))
        return [each async for each in stream.until_commit(turn_id)]


async def test_a_call_whose_act_waits_says_so_to_clients_and_to_the_model() -> None:
    prompts: list[Prompt] = []
    async with open_stage(cast(prompts)) as stage:
        events = await events_of(stage, "Sell", "bob")
    assert only(events, ToolCallResult).awaits_approval
    assert [(each.id, each.state) for each in approval_news(only(events, CommitFinal))] == [(ID, ApprovalState.PENDING)]
    (exchange,) = prompts[-1].exchanges
    assert isinstance(exchange.value, dict)
    assert (exchange.value["result"], "waits" in str(exchange.value["not_done_yet"])) == ("written down", True)


async def test_what_needs_no_approval_says_nothing_of_one() -> None:
    for needs in (None, lambda *_: None):
        prompts: list[Prompt] = []
        async with open_stage(cast(prompts, needs)) as stage:
            events = await events_of(stage, "Sell", "bob")
            assert stage.world["horses"] == 0
        assert not only(events, ToolCallResult).awaits_approval
        assert prompts[-1].exchanges[0].value == "written down"
        assert only(events, CommitFinal).ext is None


async def test_needs_that_fails_ends_no_call_and_refuses_the_turn() -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("secret words")

    async with open_stage(cast([], broken)) as stage:
        events = await events_of(stage, "Sell", "bob")
    result = only(events, ToolCallResult)
    assert (result.awaits_approval, result.error) == (False, None)
    assert events[-1].event_type is EventType.COMMIT_FINAL
    assert {each.code for each in only(events, CommitFinal).issues} == {"rule_error"}


@pytest.mark.shows("feed-39")
async def test_the_prompt_of_the_answering_turn_begins_with_the_answers_that_count() -> None:
    prompts: list[Prompt] = []
    async with open_stage(cast(prompts)) as stage:
        await events_of(stage, "Sell", "bob")
        assert "answer" not in prompts[-1].system
        await events_of(stage, "Yes", "stranger", a_000001=True)
        await events_of(stage, "Yes", "bob", a_000002=True)
        assert all("answer" not in each.system for each in prompts)
        await events_of(stage, "No", "bob", a_000001=False)
    _, answer, weather = prompts[-1].system.splitlines()
    assert answer == f"The player's answer ({ID}): No, to: Sell it? It will not be done."
    assert weather == "Weather: rain"


async def test_the_host_may_answer_everything_and_so_let_acts_expire() -> None:
    async with open_stage(cast([])) as stage:
        await events_of(stage, "Sell", "bob")
        commit = await stage.commit(decisions({ID: False}), "nobody answered in time")
        assert [each.state for each in approval_news(commit)] == [ApprovalState.DENIED]
        assert pending_approvals(stage.world) == ()
        late = only(await events_of(stage, "Yes", "bob", a_000001=True), CommitFinal)
        assert [each.code for each in late.issues] == ["approval_unknown"]
        assert stage.world["horses"] == 1
