"""Changes of an open stage's cast: all or nothing, and only for turns that begin later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights import (
    CommitOutcome,
    Fact,
    Intent,
    IntentType,
    InvalidCommand,
    Persona,
    Prompt,
    RegistrationError,
    ToolContext,
    TurnFinal,
    TurnParams,
    open_stage,
    tool,
)
from footlights.authority import accept, patch, refuse, with_approvals
from footlights.testing import only, take_turn
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast
from footlights_transports import StageThread

if TYPE_CHECKING:
    from footlights import Cast, Stage
    from footlights.authority import Ruling
    from footlights_actors import Line

ACT = [Intent(IntentType.DECISION, "act")]


@tool
async def forge(context: ToolContext) -> str:
    """Forge a sword."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, "forge"))
    return "a sword"


SMITH = Persona(text="smith", tools=frozenset({"forge"}), facts=lambda world, speaker: [Fact("Fire", "hot")])


def forging(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/swords", world["swords"] + len(intents))) if intents else accept()


def strike(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    return refuse("strike", "The smiths are on strike.") if intents else accept()


def village(rules: Any = None) -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        if not prompt.exchanges and prompt.tools:
            return [Pause(1), Call("forge", {})]
        return [Say(f"{prompt.system.splitlines()[0]}: {[each.value for each in prompt.exchanges]}")]

    return standard_cast(
        ScriptedModel(script), personas={"guard": Persona(text="guard")}, world={"swords": 0}, rules=rules or {}
    )


def names(stage: Stage) -> Any:
    return stage.personas, stage.tools, stage.rules


async def said(stage: Stage, persona: str) -> str:
    return only(await take_turn(stage.start(), "A sword!", TurnParams(persona=persona)), TurnFinal).text


async def test_what_is_added_plays_from_the_next_turn_on(quiet_clock: object) -> None:
    async with open_stage(village()) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand, match="no persona 'smith'"):
            session.begin_turn("A sword!", TurnParams(persona="smith"))
        stage.add(personas={"smith": SMITH}, tools=[forge], rules={"forging": forging})
        assert names(stage) == (("guard", "smith"), ("forge",), ("forging",))
        assert await said(stage, "smith") == "smith: ['a sword']"
        assert stage.world == {"swords": 1}


async def test_a_turn_keeps_what_it_began_with_also_while_it_waits(quiet_clock: object) -> None:
    async with open_stage(village()) as stage:
        stage.add(personas={"smith": SMITH}, tools=[forge], rules={"forging": forging})
        session = stage.start()
        turns = [session.begin_turn("A sword!", TurnParams(persona="smith")) for _ in "ab"]
        stage.remove(personas=["smith"], tools=["forge"], rules=["forging"])
        stage.add(rules={"strike": strike})
        with pytest.raises(InvalidCommand, match="no persona 'smith'"):
            session.begin_turn("A sword!", TurnParams(persona="smith"))
        for turn_id in turns:
            assert (await session.finalize(turn_id).wait()).commit_outcome is CommitOutcome.OK
        assert stage.world == {"swords": 2}
        assert (await stage.commit(ACT, "act")).issues[0].code == "strike"


@pytest.mark.shows("core-41")
async def test_rules_that_come_and_go_judge_the_commits_of_the_host(quiet_clock: object) -> None:
    async with open_stage(village({"forging": forging})) as stage:
        assert (await stage.commit(ACT, "act")).commit_outcome is CommitOutcome.OK
        stage.add(rules={"strike": strike})
        assert (await stage.commit(ACT, "act")).issues[0].code == "strike"
        stage.remove(rules=["strike"])
        assert (await stage.commit(ACT, "act")).commit_outcome is CommitOutcome.OK
        assert stage.world == {"swords": 2}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda stage: stage.add(tools=[forge], personas={"guard": Persona()}), "a persona named 'guard' already"),
        (lambda stage: stage.add(tools=[forge, forge]), "a tool named 'forge' already"),
        (lambda stage: stage.add(tools=[forge], rules={"forging": forging}), "a rule named 'forging' already"),
        (lambda stage: stage.add(tools=[forge], rules={"Bad name": strike}), "does not match"),
        (lambda stage: stage.add(personas={"smith": SMITH}), "the tool 'forge', which does not exist"),
        (lambda stage: stage.add(personas={"": Persona()}), "1 to 128 printable characters"),
        (lambda stage: stage.add(personas={"x": Persona(models=("none",))}), "the model 'none', which does not exist"),
        (lambda stage: stage.remove(personas=["guard"], rules=["forging"]), "at least one persona"),
        (lambda stage: stage.remove(rules=["forging", "none"]), "no rule named 'none'"),
        (lambda stage: stage.remove(rules=["forging", "forging"]), "no rule named 'forging'"),
        (lambda stage: stage.remove(personas="guard"), "a list of names"),
    ],
)
async def test_a_change_that_is_refused_changes_nothing(change: Any, why: str) -> None:
    async with open_stage(village({"forging": forging})) as stage:
        with pytest.raises(RegistrationError, match=why):
            change(stage)
        assert names(stage) == (("guard",), (), ("forging",))


async def test_a_tool_that_a_persona_has_goes_only_with_it() -> None:
    async with open_stage(village()) as stage:
        stage.add(personas={"smith": SMITH}, tools=[forge])
        with pytest.raises(RegistrationError, match="the tool 'forge', which does not exist"):
            stage.remove(tools=["forge"])
        stage.remove(tools=["forge"], personas=["smith"])
        assert names(stage) == (("guard",), (), ())


async def test_no_rule_comes_to_stand_beside_approvals() -> None:
    rules = with_approvals({"forging": forging}, needs=lambda *_: "Really?")
    async with open_stage(village(rules)) as stage:
        with pytest.raises(RegistrationError, match="approval"):
            stage.add(rules={"strike": strike})
        with pytest.raises(RegistrationError, match="approvals"):
            stage.remove(rules=["forging"])
        stage.add(tools=[forge])


def test_a_stage_on_a_thread_is_changed_in_the_same_way() -> None:
    with StageThread(village()) as stage:
        stage.add(personas={"smith": SMITH}, tools=[forge], rules={"forging": forging})
        assert stage.call(names) == (("guard", "smith"), ("forge",), ("forging",))
        stage.remove(personas=["smith"], tools=["forge"], rules=["forging"])
        with pytest.raises(RegistrationError, match="no rule named 'forging'"):
            stage.remove(rules=["forging"])
        assert stage.call(names) == (("guard",), (), ())
