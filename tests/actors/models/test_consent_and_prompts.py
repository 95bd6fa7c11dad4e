"""Consent and prompts: text reaches a remote model only with consent, and a prompt contains no earlier chat."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from footlights import (
    BudgetConfig,
    BudgetTier,
    EventType,
    Fact,
    InterruptReason,
    InvalidCommand,
    Mode,
    ModelTraits,
    Output,
    Persona,
    Prompt,
    RegistrationError,
    SessionParams,
    ToolCallResult,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    Usage,
    open_stage,
)
from footlights.models.sampling import Sampling
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import slow_tool
from footlights_actors import Call, Flood, Say, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import Cast, StreamEvent
    from footlights_actors import Line

REMOTE = ModelTraits(remote=True)


class Listener(ScriptedModel):
    """Remembers all that it was told."""

    def __init__(self, model_id: str = "listener", traits: ModelTraits | None = None) -> None:
        super().__init__(self._listen, model_id=model_id, traits=traits)
        self.told: list[Prompt] = []

    def _listen(self, prompt: Prompt) -> list[Line]:
        self.told.append(prompt)
        return [Say(f"I heard {len(prompt.user)} characters.")]


async def one_turn(
    cast: Cast, said: str = "Hello?", params: TurnParams | None = None, **session: Any
) -> list[StreamEvent]:
    async with open_stage(cast) as stage:
        return await take_turn(stage.start(SessionParams(**session)), said, params)


# -- consent


@pytest.mark.shows("gateway-78")
@pytest.mark.parametrize(
    ("default", "answer", "allowed"),
    [(False, None, False), (False, True, True), (False, False, False), (True, None, True), (True, False, False)],
)
async def test_a_remote_model_gets_nothing_without_consent(default: bool, answer: bool | None, allowed: bool) -> None:
    near, far = Listener("near"), Listener("far", REMOTE)
    cast = standard_cast(near, far, remote_models=default)
    events = await one_turn(cast, params=TurnParams(model="far"), remote_models=answer)
    assert len(far.told) == allowed
    assert near.told == []
    if not allowed:
        assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "remote_not_allowed")


async def test_nothing_falls_back_from_near_to_far_or_from_far_to_near() -> None:
    near, far = Listener("near"), Listener("far", REMOTE)
    await one_turn(standard_cast(far, near))
    assert near.told == far.told == []


@pytest.mark.parametrize(("default", "before"), [(False, True), (True, False), (True, None)])
async def test_a_session_that_comes_back_has_to_agree_again(default: bool, before: bool | None) -> None:
    far = Listener("far", REMOTE)
    async with open_stage(standard_cast(far, remote_models=default)) as stage:
        session = stage.start(SessionParams(session_id="ann", remote_models=before))
        await take_turn(session, "Hello?")
        await session.close()
        far.told.clear()
        session = stage.resume("ann")
        await take_turn(session, "Hello?")
        assert far.told == []
        await session.close()
        await take_turn(stage.resume("ann", remote_models=True), "Hello?")
    assert len(far.told) == 1


# -- personas


TWO = {
    "innkeeper": Persona(text="You keep the inn.", facts=lambda world, _: [Fact("rooms", str(world["rooms"]))]),
    "analyst": Persona(text="You count.", models=("b",), tools=frozenset()),
}


async def test_the_first_persona_speaks_unless_another_is_named() -> None:
    a, b = Listener("a"), Listener("b")
    cast = standard_cast(a, b, personas=TWO, world={"rooms": 3}, tools=[slow_tool(0)])
    async with open_stage(cast) as stage:
        session = stage.start()
        await take_turn(session, "Hello?")
        await take_turn(session, "Hello?", TurnParams(persona="analyst"))
        with pytest.raises(InvalidCommand, match="no persona 'cook'; there are: innkeeper, analyst"):
            session.begin_turn("Hello?", TurnParams(persona="cook"))
    assert [(each.system, len(each.tools)) for each in a.told] == [("You keep the inn.\nrooms: 3", 1)]
    assert [(each.system, each.tools) for each in b.told] == [("You count.", ())]


async def test_a_tool_that_a_persona_may_not_use_does_not_exist_for_it() -> None:
    def script(prompt: Prompt) -> list[Line]:
        return [Say(str(prompt.exchanges[0].error))] if prompt.exchanges else [Call("slow")]

    cast = standard_cast(ScriptedModel(script), tools=[slow_tool(0)], personas=Persona(tools=frozenset()))
    events = await one_turn(cast)
    assert only(events, TurnFinal).text == "There is no such tool."


async def test_a_model_that_may_not_use_its_tools_in_a_chat_is_told_so() -> None:
    listener = Listener()
    cast = standard_cast(listener, tools=[slow_tool(0)])
    for mode in (Mode.CHAT, Mode.EXECUTION):
        await one_turn(cast, "Simulate 12 weeks.", TurnParams(mode=mode))
    chat, execution = listener.told
    assert chat.system.endswith(
        "This turn: chat. Nothing was run, and nothing can be. With leave you could use: slow. Claim no results."
    )
    assert ([each.name for each in execution.tools], "This turn" in execution.system) == (["slow"], False)


@pytest.mark.parametrize(
    "persona", [Persona(models=("nobody",)), Persona(tools=frozenset({"nothing"}))], ids=["model", "tool"]
)
def test_a_persona_with_what_does_not_exist_is_refused(persona: Persona) -> None:
    with pytest.raises(RegistrationError, match="persona default"):
        standard_cast(Listener(), personas=persona)


def test_somebody_must_speak() -> None:
    with pytest.raises(RegistrationError):
        standard_cast(Listener(), personas={})


async def test_facts_that_raise_end_only_their_turn() -> None:
    def broken(world: object, _: object) -> list[Fact]:
        raise LookupError

    events = await one_turn(standard_cast(Listener(), personas=Persona(facts=broken)))
    assert only(events, TurnInterrupted) == failed(InterruptReason.WORKLOAD_ERROR, "LookupError")


async def test_a_prompt_that_does_not_fit_ends_the_turn_with_a_clear_code() -> None:
    small = Listener(traits=ModelTraits(context_tokens=100))
    events = await one_turn(standard_cast(small), "word " * 1_000)
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "prompt_too_large")
    assert small.told == []


# -- what was chatted before


@pytest.mark.shows("feed-8", "feed-36", "feed-37", "feed-40")
@pytest.mark.parametrize("before", ["chatted", "cancelled", "deleted", "never shown", "on another stage", "never"])
async def test_a_prompt_does_not_depend_on_earlier_chat(before: str) -> None:
    listener = Listener()
    cast = standard_cast(listener, personas=TWO["innkeeper"], world={"rooms": 3})
    async with open_stage(cast) as stage:
        session = stage.start()
        for said in ("My name is Ann.", "Remember it.", "What is it?"):
            if before == "chatted":
                await take_turn(session, said)
            elif before == "deleted":
                other = stage.start(SessionParams(session_id="chat"))
                await take_turn(other, said)
                await other.close()
            elif before == "cancelled":
                session.begin_turn(said)
                session.cancel()
            elif before == "never shown":
                await session.finalize(session.begin_turn(said)).wait()
            elif before == "on another stage":
                await one_turn(standard_cast(Listener()), said)
        await take_turn(session, "And now?")
    assert listener.told[-1] == Prompt("And now?", system="You keep the inn.\nrooms: 3")


async def test_tools_of_earlier_turns_are_forgotten_and_those_of_this_one_are_told() -> None:
    told: list[Prompt] = []

    def script(prompt: Prompt) -> list[Line]:
        told.append(prompt)
        return [Say(" Done.")] if prompt.exchanges else [Say("Let me see."), Call("slow")]

    async with open_stage(standard_cast(ScriptedModel(script), tools=[slow_tool(0)])) as stage:
        session = stage.start()
        for _ in range(2):
            await take_turn(session, "Hello?")
    first, second, third, fourth = told
    assert (first, second) == (third, fourth)
    assert [(each.said, len(each.exchanges)) for each in second.rounds] == [("Let me see.", 1)]


# -- arguments that cannot be told


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else "deep"


@pytest.mark.parametrize("drink", ["\ud800", 2**70, nested(300), float("nan")], ids=["half", "huge", "deep", "nan"])
@pytest.mark.parametrize("window", [None, 2048])
async def test_arguments_that_json_cannot_say_go_back_to_the_model(drink: Any, window: int | None) -> None:
    told: list[Prompt] = []

    def script(prompt: Prompt) -> list[Line]:
        told.append(prompt)
        return [Say("Sorry.")] if prompt.exchanges else [Call("slow", {"drink": drink}), Call("\ud800", {"x": 1})]

    model = ScriptedModel(script, traits=ModelTraits(context_tokens=window))
    events = await one_turn(standard_cast(model, tools=[slow_tool(0)]))
    results = payloads(events, ToolCallResult)
    assert {result.error.code for result in results if result.error} == {"invalid_arguments", "unknown_tool"}
    assert [(each.request.tool_name, each.request.arguments) for each in told[1].exchanges] == [
        ("slow", {}),
        ("unknown", {}),
    ]
    assert only(events, TurnFinal).text == "Sorry."


# -- budgets


@pytest.mark.shows("gateway-30")
async def test_a_turn_says_no_more_than_its_tier_allows() -> None:
    model = ScriptedModel(lambda _: [Flood("word ", 500)])
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        taken = {tier: await take_turn(session, "Go on.", TurnParams(tier=tier)) for tier in BudgetTier}
    said = {tier: only(events, TurnFinal) for tier, events in taken.items()}
    assert {tier: final.text.count("word") for tier, final in said.items()} == {
        BudgetTier.DORMANT: 0,
        BudgetTier.WHISPER: 100,
        BudgetTier.DIALOGUE: 500,
        BudgetTier.DEEP: 500,
    }
    assert [final.output_tokens for final in said.values()] == [None, 100, 500, 500]


async def test_a_dormant_turn_asks_for_no_model() -> None:
    listener = Listener()
    events = await one_turn(standard_cast(listener), params=TurnParams(tier=BudgetTier.DORMANT))
    assert [event.event_type for event in events] == [
        EventType.TURN_ACCEPTED,
        EventType.TURN_FINAL,
        EventType.COMMIT_FINAL,
    ]
    assert listener.told == []


async def test_the_model_gets_the_remaining_budget_and_its_own_count_counts() -> None:
    told: list[int] = []

    class Counting(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            told.append(prompt.max_tokens)
            async for item in super().generate(prompt):
                yield item
            yield Usage(output_tokens=30, input_tokens=7)

    def script(prompt: Prompt) -> list[Line]:
        return [Say("A few words."), Call("slow")] if len(prompt.exchanges) < 3 else [Say("Enough.")]

    cast = standard_cast(Counting(script), tools=[slow_tool(0)], budget=BudgetConfig(dialogue_max=80))
    events = await one_turn(cast)
    assert told == [80, 50, 20]
    assert only(events, TurnFinal).output_tokens == 90
    assert only(events, TurnFinal).text == "A few words." * 3
    assert [event.event_type for event in events].count(EventType.TOOL_CALL_RESULT) == 3


@pytest.mark.parametrize("counted", [0, -1_000, 2**60])
async def test_a_model_that_counts_wrongly_says_no_more_for_it(counted: int) -> None:
    class Lying(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            async with aclosing(super().generate(prompt)) as output:
                async for item in output:
                    yield item
            yield Usage(output_tokens=counted)

    def script(prompt: Prompt) -> list[Line]:
        return [Flood("word ", 30), Call("slow")]

    cast = standard_cast(Lying(script), tools=[slow_tool(0)])
    events = await one_turn(cast, params=TurnParams(tier=BudgetTier.WHISPER))
    final = only(events, TurnFinal)
    assert final.text.count("word") <= 100
    assert final.output_tokens is not None
    assert final.text.count("word") <= final.output_tokens <= 2**53 - 1


async def test_one_long_piece_is_charged_for_what_it_is() -> None:
    model = ScriptedModel(lambda _: [Flood("word " * 5_000, 1)])
    events = await one_turn(standard_cast(model), params=TurnParams(tier=BudgetTier.WHISPER))
    assert len(only(events, TurnFinal).text) == 100 * 32
    assert only(events, TurnFinal).output_tokens == 100


async def test_the_temperature_of_a_turn_reaches_the_model() -> None:
    listener = Listener()
    await one_turn(standard_cast(listener), params=TurnParams(sampling=Sampling(temperature=0), mode=Mode.CHAT))
    assert listener.told[0].sampling.temperature == 0
