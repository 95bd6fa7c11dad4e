"""Mode decisions in the ledger: recorded with every turn, without any word of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from footlights import CommitOutcome, InvalidCommand, MemoryLedger, Mode, SideEffects, Tool, TurnParams, open_stage
from footlights.authority import SqliteLedger, recompute_digest
from footlights.modes import ExecutionPolicy, decide
from footlights.modes.decision_document import decision_document
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import Cast, Prompt, ToolContext
    from footlights.events import JsonValue
    from footlights_actors import Line

MESSAGE = "Search the swordfish files."


def cast() -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        if "wait" in prompt.user:
            return [Stall()]
        return [Call("look")] if prompt.tools and not prompt.rounds else [Say(str(len(prompt.rounds)))]

    async def look(arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        return "seen"

    tool = Tool(name="look", run=look, side_effects=SideEffects.NONE)
    return standard_cast(ScriptedModel(script), tools=[tool])


@pytest.mark.shows("narration-8", "narration-33")
@pytest.mark.parametrize("policy", ExecutionPolicy)
async def test_the_decision_is_recorded_and_sets_the_mode(policy: ExecutionPolicy, quiet_clock: MockClock) -> None:
    decision = decide(MESSAGE, policy)
    async with open_stage(cast()) as stage:
        session = stage.start()
        other = Mode.CHAT if decision.mode is Mode.EXECUTION else Mode.EXECUTION
        turn_id = session.begin_turn(MESSAGE, TurnParams(mode=other), decision=decision)
        async with session.subscribe() as stream:
            kinds = [event.event_type async for event in stream.until_commit(turn_id)]
        record = await stage.ledger.find(session.session_id, turn_id)
    assert record is not None
    assert record.mode_decision == decision.document
    assert ("tool_call_started" in kinds) is (decision.mode is Mode.EXECUTION)
    assert recompute_digest(record) == record.commit_digest
    assert b"swordfish" not in record.written.lower()


async def test_the_decision_of_an_interrupted_turn_is_recorded(quiet_clock: MockClock) -> None:
    decision = decide(MESSAGE, ExecutionPolicy.AUTO)
    async with open_stage(cast()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("wait", decision=decision)
        session.cancel(turn_id)
        await session.finalize(turn_id).wait()
        record = await stage.ledger.find(session.session_id, turn_id)
    assert record is not None
    assert record.outcome is CommitOutcome.FAIL_CLOSED
    assert record.mode_decision == decision.document


async def test_a_turn_without_a_decision_keeps_its_digest(quiet_clock: MockClock) -> None:
    digests: list[str] = []
    for decision in (None, decide("Hello.", ExecutionPolicy.AUTO), None):
        async with open_stage(cast(), ledger=MemoryLedger()) as stage:
            session = stage.start()
            turn_id = session.begin_turn("Hello.", TurnParams(mode=Mode.CHAT), decision=decision)
            digests.append((await session.finalize(turn_id).wait()).commit_digest)
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.shows("narration-37")
async def test_the_decision_is_read_back_from_a_file(tmp_path: Path, quiet_clock: MockClock) -> None:
    decision = decide(MESSAGE, ExecutionPolicy.DENY)
    path = tmp_path / "kept.ledger"
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
        session = stage.start()
        await session.finalize(session.begin_turn(MESSAGE, decision=decision)).wait()
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger):
        record = await ledger.find("s1-000001", "t1-000001")
    assert record is not None
    assert record.mode_decision == decision.document


BY_HAND: list[dict[str, Any]] = [
    {"rule_ids": ("what Ann told me",)},
    {"rule_ids": ("\ud800",)},
    {"rule_ids": ("x" * 129,)},
    {"rule_ids": ("x",) * 5_000},
    {"rule_ids": ({1, 2},)},
    {"features": ("",)},
    {"activities": ("Ann's",)},
    {"classifier": "my friend"},
    {"kind": "conversational"},
    {"vetoes": 5},
]


@pytest.mark.parametrize("wrong", BY_HAND)
async def test_a_decision_that_cannot_be_recorded_is_refused(wrong: dict[str, Any]) -> None:
    decision = decide(MESSAGE, ExecutionPolicy.AUTO)
    async with open_stage(cast()) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand) as refusal:
            session.begin_turn(MESSAGE, decision=evolve(decision, intent=evolve(decision.intent, **wrong)))
        assert "Ann" not in str(refusal.value)
        assert not session.statistics().turns_by_state
        commit = await session.finalize(session.begin_turn(MESSAGE, decision=decision)).wait()
        assert commit.commit_outcome is CommitOutcome.OK


@pytest.mark.parametrize("wrong", [{"mode": "chat"}, {"policy": None}, {"conditions": None}])
async def test_a_decision_with_values_of_other_types_is_refused(wrong: dict[str, Any]) -> None:
    decision = decide(MESSAGE, ExecutionPolicy.AUTO)
    async with open_stage(cast()) as stage:
        with pytest.raises(InvalidCommand):
            stage.start().begin_turn(MESSAGE, decision=evolve(decision, **wrong))
        not_one: Any = decision.document
        with pytest.raises(InvalidCommand, match="ModeDecision"):
            stage.start().begin_turn(MESSAGE, decision=not_one)


async def test_the_record_holds_a_copy_of_the_decision() -> None:
    rule_ids: Any = ["a.rule"]
    decision = decide(MESSAGE, ExecutionPolicy.AUTO)
    given: Any = evolve(decision, intent=evolve(decision.intent, activities=rule_ids))
    document = decision_document(given)
    rule_ids.append("what somebody said")
    assert document["intent"] == {**decision.intent.document, "activities": ["a.rule"]}
