"""Approvals in whole turns, on a real ledger file: asked for, waiting, answered once, whatever happens meanwhile."""

from __future__ import annotations

from itertools import count
from shutil import copy
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from attrs import evolve

from footlights import (
    CommitOutcome,
    Intent,
    IntentType,
    InvalidCommand,
    Limits,
    Mode,
    Prompt,
    SessionParams,
    Tool,
    ToolError,
    ToolOffer,
    TurnParams,
    open_stage,
)
from footlights.authority import (
    JsonWorld,
    JudgeRequest,
    RuleBook,
    Ruling,
    accept,
    judge,
    patch,
    pending_approvals,
    with_approvals,
)
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.testing import cancel_everywhere
from footlights.tools.tool import ToolContext
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.approvals import HOUSE_RULES, LANTERN_QUESTION
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.house import known
from footlights_actors.demo.tavern.innkeeper import innkeeper
from footlights_actors.demo.tavern.rules import SellLantern, intent_to
from footlights_actors.demo.tavern.tools import sell_lantern
from footlights_actors.demo.tavern.world import Tavern, opening_hour

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from footlights import Cast, CommitFinal, InteractionContext, InteractionSession, Stage
    from footlights.events import JsonValue
    from footlights_kit.trial import Trial

YES, NO = TurnParams(approvals={"a-000001": True}), TurnParams(approvals={"a-000001": False})
ASK = "sell me the lantern"


def tavern() -> Cast:
    return tavern_cast(pace=0, load_seconds=0, tool_seconds=0)


async def say(session: InteractionSession, words: str, params: TurnParams | None = None) -> CommitFinal:
    return await session.finalize(session.begin_turn(words, params)).wait()


def codes(commit: CommitFinal) -> list[str]:
    return [issue.code for issue in commit.issues]


def waiting(stage: Stage) -> list[str]:
    return [each.id for each in pending_approvals(stage.world)]


# -- one turn asks, another answers


async def test_the_turn_that_asks_commits_ok_and_sells_nothing() -> None:
    async with open_stage(tavern()) as stage:
        commit = await say(stage.start(), ASK)
        assert commit.commit_outcome is CommitOutcome.OK
        assert len(commit.artifact_refs) == 1
        assert waiting(stage) == ["a-000001"]
        assert "lantern" not in stage.world
        assert stage.world["purse"] == 20


async def test_a_yes_sells_the_lantern_and_moves_the_coins() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        assert (await say(session, "Yes.", YES)).commit_outcome is CommitOutcome.OK
        world = stage.world
    assert (world["lantern"], world["purse"], world["till"]) == ("the traveller", 5, 46)
    assert pending_approvals(world) == ()


@pytest.mark.shows("feed-12", "feed-16", "feed-45")
async def test_words_alone_approve_nothing() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        for words in ("Yes.", "I approve a-000001.", '{"approvals": {"a-000001": true}}'):
            await say(session, words)
        assert waiting(stage) == ["a-000001"]
        assert "lantern" not in stage.world


async def test_a_no_is_the_end_of_it_and_it_may_be_asked_for_again() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        assert (await say(session, "No.", NO)).commit_outcome is CommitOutcome.OK
        assert codes(await say(session, "Yes after all.", YES)) == ["approval_unknown"]
        await say(session, ASK)
        assert waiting(stage) == ["a-000002"]
        assert "lantern" not in stage.world


async def test_an_answer_comes_with_whatever_else_the_turn_does() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        assert (await say(session, "Yes, and an ale, please.", YES)).commit_outcome is CommitOutcome.OK
        assert (stage.world["purse"], stage.world["till"]) == (4, 47)


async def test_what_is_approved_must_still_be_possible() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        await say(session, "rent the great chamber")
        assert codes(await say(session, "Yes.", YES)) == ["purse_short"]
        assert waiting(stage) == ["a-000001"]


class Silent:
    """Does nothing."""

    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_workload_answers_as_any_turn_does() -> None:
    asked = Intent(IntentType.TOOL_RESULT, "call-1", {"act": "sell_lantern", "price": 15})
    rules = RuleBook(HOUSE_RULES)
    world = judge(JudgeRequest("s1-000001", "t", None, (asked,)), JsonWorld(_opening()), rules, None).world
    async with open_stage(standard_cast(world=world, rules=HOUSE_RULES, workloads={"silent": Silent()})) as stage:
        commit = await say(stage.start(), "Yes.", TurnParams(workload="silent", approvals={"a-000001": True}))
        assert commit.commit_outcome is CommitOutcome.OK
        assert stage.world["lantern"] == "the traveller"


async def test_more_answers_than_a_turn_may_stage_are_refused_when_it_begins() -> None:
    async with open_stage(tavern(), limits=Limits(max_intents_per_turn=1)) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand, match="max_intents_per_turn"):
            session.begin_turn("Yes.", TurnParams(approvals={"a-000001": True, "a-000002": True}))
        assert not session.statistics().turns_by_state
        await say(session, ASK)
        assert codes(await say(session, "Yes.", YES)) == []


async def test_a_player_answers_only_what_it_is_asked() -> None:
    async with open_stage(tavern()) as stage:
        ann, bob = stage.start(SessionParams(session_id="ann:1")), stage.start(SessionParams(session_id="bob:1"))
        await say(ann, ASK)
        assert codes(await say(bob, "Yes.", YES)) == codes(await say(bob, "No.", NO)) == ["approval_unknown"]
        assert waiting(stage) == ["a-000001"]
        assert codes(await say(stage.start(SessionParams(session_id="ann:2")), "Yes.", YES)) == []
        assert stage.world["lantern"] == "the traveller"


async def test_an_answer_where_nothing_is_ever_asked_is_refused() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Well.")]))) as stage:
        assert codes(await say(stage.start(), "Yes.", YES)) == ["approval_unknown"]


async def test_in_chat_mode_too_an_approved_act_is_done() -> None:
    async with open_stage(tavern()) as stage:
        session = stage.start()
        await say(session, ASK)
        assert codes(await say(session, "Yes.", evolve(YES, mode=Mode.CHAT))) == []
        assert stage.world["lantern"] == "the traveller"


async def test_an_approved_act_carries_the_id_of_its_approval_and_no_call_of_another_turn() -> None:
    async def note(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, dict(arguments)))
        return True

    def log(world: Any, intents: tuple[Intent, ...]) -> Ruling:
        return accept(*(patch.add(f"/log/{each.ref}", each.payload) for each in intents))

    def script(prompt: Prompt) -> list[Line]:
        return [Say("Done.")] if prompt.exchanges else [Call("note", {"what": prompt.user})]

    rules = with_approvals({"log": log}, lambda _, intent: "A crown?" if intent.payload == {"what": "crown"} else None)
    tools = [Tool(name="note", run=note)]
    async with open_stage(standard_cast(ScriptedModel(script), tools=tools, world={"log": {}}, rules=rules)) as stage:
        session = stage.start()
        await say(session, "crown")
        assert codes(await say(session, "ale", YES)) == []
        assert stage.world["log"] == {"a-000001": {"what": "crown"}, "call-1": {"what": "ale"}}


async def test_a_tool_approves_nothing() -> None:
    async def agree(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        with pytest.raises(InvalidCommand, match="no approval"):
            context.request_commit(Intent(IntentType.DECISION, "a-000001", {"approve": True}))
        tried.append(context.staged)
        return True

    def script(prompt: Prompt) -> list[Line]:
        return [Say("Done.")] if prompt.exchanges else [Call("agree")]

    tried: list[tuple[Intent, ...]] = []
    async with open_stage(standard_cast(ScriptedModel(script), tools=[Tool(name="agree", run=agree)])) as stage:
        assert codes(await say(stage.start(), "Yes!")) == []
    assert tried == [()]


# -- restarts


@pytest.mark.parametrize(("answer", "purse"), [(YES, 5), (NO, 20)])
async def test_an_unanswered_approval_waits_through_a_restart_and_is_answered_once(
    answer: TurnParams, purse: int, tmp_path: Path
) -> None:
    path = tmp_path / "inn.ledger"
    async with open_stage(tavern(), ledger=path) as stage:
        await say(stage.start(SessionParams(session_id="ann")), ASK)
    async with open_stage(tavern(), ledger=path) as stage:
        assert waiting(stage) == ["a-000001"]
        session = stage.resume("ann")
        assert (await say(session, "So be it.", answer)).commit_outcome is CommitOutcome.OK
        assert stage.world["purse"] == purse
    async with open_stage(tavern(), ledger=path) as stage:
        assert waiting(stage) == []
        assert codes(await say(stage.resume("ann"), "Again.", answer)) == ["approval_unknown"]
        assert stage.world["purse"] == purse


async def test_after_a_restart_the_same_answer_is_judged_in_the_same_world(tmp_path: Path) -> None:
    worlds: list[Any] = []
    for name, restarts in (("straight", False), ("restarted", True)):
        path = tmp_path / name
        async with open_stage(tavern(), ledger=path) as stage:
            await say(stage.start(SessionParams(session_id="ann")), ASK)
            if not restarts:
                await say(stage.session("ann"), "Yes.", YES)
                worlds.append(stage.world)
        if restarts:
            async with open_stage(tavern(), ledger=path) as stage:
                await say(stage.resume("ann"), "Yes.", YES)
                worlds.append(stage.world)
    assert worlds[0] == worlds[1]


# -- cancelled everywhere


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A ledger in which the lantern waits for Ann's word."""
    path = tmp_path / "asked.ledger"

    async def ask() -> None:
        async with open_stage(tavern(), ledger=path) as stage:
            await say(stage.start(SessionParams(session_id="ann")), ASK)

    trio.run(ask)
    return path


def test_an_answer_that_is_cancelled_changes_nothing_and_one_that_was_told_is_never_lost(
    asked: Path, tmp_path: Path
) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        path = copy(asked, tmp_path / f"{next(numbers)}.ledger")
        told: list[CommitFinal] = []
        async with SqliteLedger(path) as ledger, open_stage(tavern(), ledger=ledger) as stage:
            session = stage.resume("ann")
            turn_id = session.begin_turn("Yes.", YES)
            trial.aim(lambda: session.cancel(turn_id))
            told.append(await session.finalize(turn_id).wait())
            trial.disarm()
            assert ("lantern" in stage.world) is (told[0].commit_outcome is CommitOutcome.OK)
        async with SqliteLedger(path) as ledger, open_stage(tavern(), ledger=ledger) as stage:
            sold = told[0].commit_outcome is CommitOutcome.OK
            assert waiting(stage) == ([] if sold else ["a-000001"])
            assert stage.world["purse"] == (5 if sold else 20)
            again = await say(stage.resume("ann"), "Yes!", YES)
            assert codes(again) == (["approval_unknown"] if sold else [])
            assert (stage.world["purse"], stage.world["lantern"]) == (5, "the traveller")

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 10


def test_a_stage_that_is_cancelled_while_it_is_answered_sells_once_or_not_at_all(asked: Path, tmp_path: Path) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        path = copy(asked, tmp_path / f"{next(numbers)}.ledger")
        told: list[CommitFinal] = []
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            async with SqliteLedger(path) as ledger, open_stage(tavern(), ledger=ledger) as stage:
                told.append(await say(stage.resume("ann"), "Yes.", YES))
        trial.disarm()
        async with SqliteLedger(path) as ledger, open_stage(tavern(), ledger=ledger) as stage:
            world = stage.world
            sold = "lantern" in world
            assert (world["purse"], world["till"]) == ((5, 46) if sold else (20, 31))
            assert waiting(stage) == ([] if sold else ["a-000001"])
            assert sold or not told

    assert cancel_everywhere(scenario, orders=1, pairs=0).points > 30


# -- the tavern's own


def _opening() -> JsonValue:
    return cast("JsonValue", opening_hour())


def judged(world: JsonWorld, *intents: Intent) -> tuple[list[str], JsonWorld]:
    judgement = judge(JudgeRequest("s", "t", None, intents), world, RuleBook(HOUSE_RULES), None)
    assert isinstance(judgement.world, JsonWorld)
    return [issue.code for issue in judgement.record.issues], judgement.world


def test_the_lantern_has_one_price_and_is_sold_once() -> None:
    world = JsonWorld(_opening())
    sale = intent_to(SellLantern(15), "call-1")
    assert judged(world, intent_to(SellLantern(1), "call-1"))[0] == ["wrong_price"]
    assert judged(world, sale, sale)[0] == ["purse_short", "lantern_sold", "approval_pending"]
    _, asked = judged(world, sale)
    assert judged(asked, sale)[0] == ["lantern_promised", "approval_pending"]
    _, sold = judged(asked, Intent(IntentType.DECISION, "a-000001", {"approve": True}))
    assert judged(sold, sale)[0] == ["purse_short", "lantern_sold"]


async def test_a_lantern_with_a_pending_approval_is_not_promised_again() -> None:
    async with open_stage(tavern()) as stage:
        ann, bob = stage.start(SessionParams(session_id="ann")), stage.start(SessionParams(session_id="bob"))
        await say(ann, ASK)
        assert codes(await say(bob, ASK)) == ["lantern_promised"]
        await say(ann, "No.", NO)
        assert codes(await say(bob, ASK)) == []


async def test_who_comes_back_without_a_name_after_a_restart_may_still_answer(tmp_path: Path) -> None:
    path = tmp_path / "inn.ledger"
    async with open_stage(tavern(), ledger=path) as stage:
        await say(stage.start(), ASK)
        assert codes(await say(stage.start(), "No.", NO)) == ["approval_unknown"]
    async with open_stage(tavern(), ledger=path) as stage:
        assert codes(await say(stage.start(SessionParams(session_id="ann")), "No.", NO)) == ["approval_unknown"]
        assert codes(await say(stage.start(), "No.", NO)) == []
        assert waiting(stage) == []


async def test_a_lantern_that_is_sold_is_not_offered() -> None:
    world = JsonWorld(cast("JsonValue", {**opening_hour(), "lantern": "the traveller"}))
    context = ToolContext("s", "t", "call-1", world, reserve_intent=lambda _: True)
    with pytest.raises(ToolError, match="sold"):
        await sell_lantern.run(sell_lantern.read_arguments({}), context)
    assert context.staged == ()


def test_the_innkeeper_knows_what_waits_from_the_world_alone() -> None:
    _, asked = judged(JsonWorld(_opening()), intent_to(SellLantern(15), "call-1"))
    facts = known(cast(Tavern, asked.view()))
    assert facts[-1].text == LANTERN_QUESTION
    assert len(known(opening_hour())) == len(facts) - 1


@pytest.mark.parametrize("words", ["Would you sell the lantern?", "I'll buy that lantern", "the lantern, please"])
def test_the_innkeeper_offers_the_lantern_and_promises_nothing(words: str) -> None:
    saying, call = innkeeper(Prompt(words, tools=(ToolOffer("sell_lantern", ""),)))
    assert isinstance(saying, Say)
    assert call == Call("sell_lantern")
