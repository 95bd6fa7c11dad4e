"""One turn, watched in every way that there is at once, on one running server: all of them tell the same story.

`Audience` says who watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights import EventType, ToolCallResult, TurnFinal
from footlights.authority import approval_news, decisions
from footlights.testing import only as only_payload
from tests.kit.peers.kgent_peer import only
from tests.kit.story_game import PROMPTS
from tests.kit.views.dexi_kit import output
from tests.kit.views.theatre import STRANGER, open_theatre, told_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.views.theatre import Audience, Story

QUESTION = "Buy the lantern of the house for 15 coins?"
ID = "a-000001"
WAITS = {"id": ID, "question": QUESTION}


@pytest.mark.shows("core-21")
async def test_a_turn_that_ends_well_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Hello there, my friend")
    said = only_payload(story.events, TurnFinal).text
    assert said == "Good evening. Hello there, my friend"
    assert output(story.run) == said
    (message,) = only(story.kgent, "message")
    assert (message["content"], message["turn_id"]) == (said, story.turn_id)
    assert message["tokens_used"] == only_payload(story.events, TurnFinal).output_tokens
    assert story.chat[-2:] == [said, "The turn is committed."]
    assert story.board == ["A turn is committed. Its changes are kept."]
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def test_a_turn_that_fails_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Please fail now")
    assert story.reason == "model_error"
    assert story.run[-1]["outcome"] == "failed"
    assert [each["event_type"] for each in story.kgent] == ["error", "done"]
    assert only(story.kgent, "error")[0]["code"] == "LLM_UNAVAILABLE"
    assert "Why (model_error): The model failed. The log says where." in story.summary
    assert story.chat[-2:] == [
        "The turn ended early. The model failed. The log says where.",
        "Nothing of the turn was committed.",
    ]
    assert story.board == ["A model failed. Nothing of it was committed."]
    assert (story.callouts[0]["event_type"], story.callouts[0]["classification"]) == ("threat_update", "critical")


@pytest.mark.shows("feed-43")
async def test_a_turn_that_is_canceled_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Please stay", EventType.TOKEN_DELTA)
    assert story.reason == "canceled"
    assert story.run[-1]["outcome"] == "canceled"
    assert story.summary == "The run was canceled, and nothing was committed. No tool was run. Steps: 1 completed."
    assert [each["event_type"] for each in story.kgent] == ["chunk", "done"]
    assert story.chat[-2:] == ["The turn was canceled.", "Nothing of the turn was committed."]
    assert story.board == ["The turn was canceled. Nothing of it was committed."]
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def test_a_turn_with_a_tool_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Look at the rooms")
    result = only_payload(story.events, ToolCallResult)
    assert (result.error, result.canceled) == (None, False)
    assert story.summary == "The run is completed. Done: Check rooms. Steps: 2 completed."
    assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
    assert story.chat[-3:] == ["The tool check_rooms is done.", "Let me see. There.", "The turn is committed."]
    assert story.board == ["A turn is committed. Its changes are kept."]


async def test_a_tool_that_answers_with_an_error_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Look in the drawer")
    error = only_payload(story.events, ToolCallResult).error
    assert error is not None
    assert story.summary == "The run is completed. Not done: Open drawer (failed). Steps: 1 completed, 1 failed."
    assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
    assert f"The tool open_drawer failed: {error.code}." in story.chat
    assert story.board == ["A tool failed. It gave no result.", "A turn is committed. Its changes are kept."]


async def test_a_tool_that_crashes_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Bring the tray")
    assert story.reason == "tool_error"
    assert story.run[-1]["outcome"] == "failed"
    why = "Why (tool_error): A tool crashed. The log says where."
    undone = "Not done: Drop tray (failed). Steps: 1 completed, 1 failed."
    assert story.summary == f"The run failed, and nothing was committed. {why} {undone}"
    assert [each["event_type"] for each in story.kgent] == ["chunk", "error", "done"]
    assert only(story.kgent, "error")[0]["message"].startswith("A tool that the answer needs failed.")
    assert story.chat[-2:] == [
        "The turn ended early. A tool crashed. The log says where.",
        "Nothing of the turn was committed.",
    ]
    assert story.board == ["A tool failed. It gave no result.", "A tool crashed. Nothing of it was committed."]


async def test_a_tool_that_is_cut_off_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Ring the bell", EventType.TOOL_CALL_STARTED)
    result = only_payload(story.events, ToolCallResult)
    assert (result.canceled, result.side_effects_may_have_occurred) == (True, True)
    assert story.run[-1]["outcome"] == "canceled"
    assert "The tool was canceled; it may have had side effects." in [each.get("summary") for each in story.run]
    assert [each["event_type"] for each in story.kgent] == ["chunk", "done"]
    assert "The tool ring_bell was canceled. It may have had an effect." in story.chat
    assert story.board == [
        "A tool was cut off while it worked. It may have done its work.",
        "The turn was canceled. Nothing of it was committed.",
    ]


@pytest.mark.shows("feed-25", "feed-41")
async def test_a_turn_that_the_rules_refuse_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Take the spoon")
    said = only_payload(story.events, TurnFinal).text
    assert said == "Let me see. There."
    (issue,) = story.commit.issues
    assert story.run[-1]["outcome"] == "failed"
    why = f"Why ({issue.code}): {issue.message}"
    assert story.summary == f"The run failed, and nothing was committed. {why} Done: Take spoon. Steps: 2 completed."
    assert [each["event_type"] for each in story.kgent] == ["chunk", "error", "done"]
    assert only(story.kgent, "error")[0]["message"].startswith("The answer was not committed, and does not count.")
    assert story.chat[-2:] == [said, f"Nothing of the turn was committed. {issue.message}"]
    assert story.board == [f"A turn was refused. Nothing of it was committed: {issue.code}."]
    assert (story.callouts[0]["event_type"], story.callouts[0]["classification"]) == ("threat_update", "warn")
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def asked(audience: Audience) -> Story:
    """The story of the turn that asks."""
    return await audience.watch("Sell me the lantern")


def narrated(story: Story) -> list[str]:
    return [each["content"] for each in story.run if each["type"] == "narration_delta"]


def news(story: Story) -> list[dict[str, str]]:
    return [{"id": each.id, "question": each.question, "state": each.state} for each in approval_news(story.commit)]


async def test_an_act_that_waits_for_an_approval_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        story = await asked(audience)
        assert only_payload(story.events, ToolCallResult).awaits_approval
        assert news(story) == only(story.kgent, "message")[0]["approvals"] == [{**WAITS, "state": "pending"}]
        assert story.run[-1]["outcome"] == "waiting"
        assert narrated(story)[-2:] == ["Sell lantern waits for approval.", f"{ID} waits for approval: {QUESTION}"]
        assert story.summary.startswith(f"The run waits for approval. Waiting: {ID}: {QUESTION} ")
        assert "Not done: Sell lantern (waits for approval)." in story.summary
        assert "1 completed, 2 waiting" in story.summary
        assert not any("finished" in each for each in [*narrated(story), story.summary])
        assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
        (result,) = [each for each in story.ag_ui if each["type"] == "TOOL_CALL_RESULT"]
        assert (result["content"], result["metadata"]["awaits_approval"]) == (
            "Waits for approval: the lantern, 15 coins",
            True,
        )
        interrupt = story.ag_ui[-1]["outcome"]["interrupts"][0]
        assert (interrupt["id"], interrupt["message"]) == (ID, QUESTION)
        assert "The tool sell_lantern waits for approval." in story.chat
        assert story.chat[-1] == f"Approval needed ({ID}): {QUESTION} Answer it in a new turn."
        assert story.board == [
            f"Somebody has to decide. {QUESTION}",
            "A turn is committed. Its changes are kept. An act waits for somebody's word.",
        ]
        assert "lantern" not in await audience.world()


async def test_an_act_that_is_approved_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await asked(audience)
        before = len(PROMPTS)
        story = await audience.watch("Gladly", approvals={ID: True})
        assert f"{ID}): Yes, to: {QUESTION}" in PROMPTS[before].system
        assert news(story) == only(story.kgent, "message")[0]["approvals"] == [{**WAITS, "state": "approved"}]
        assert story.run[-1]["outcome"] == "completed"
        assert "What was approved is done when the run ends" in story.run[1]["content"]
        assert narrated(story)[-1] == f"{ID} was approved, and is done: {QUESTION}"
        assert f"Approved and done: {ID}: {QUESTION} No tool was run." in story.summary
        assert story.ag_ui[-1]["outcome"] == {"type": "success"}
        assert story.chat[-1] == f"Approved ({ID}): {QUESTION}"
        assert story.board == [f"The answer was yes. {QUESTION}", "A turn is committed. Its changes are kept."]
        assert (await audience.world())["lantern"] == "the traveller"


async def test_an_act_that_is_denied_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await asked(audience)
        before = len(PROMPTS)
        story = await audience.watch("Rather not", approvals={ID: False})
        assert f"{ID}): No, to: {QUESTION}" in PROMPTS[before].system
        assert news(story) == only(story.kgent, "message")[0]["approvals"] == [{**WAITS, "state": "denied"}]
        assert story.run[-1]["outcome"] == "completed"
        assert narrated(story)[-1] == f"{ID} was denied, and is dropped: {QUESTION}"
        assert f"Denied and dropped: {ID}: {QUESTION} No tool was run." in story.summary
        assert story.ag_ui[-1]["outcome"] == {"type": "success"}
        assert story.chat[-1] == f"Denied ({ID}): {QUESTION}"
        assert story.board == [
            f"The answer was no. {QUESTION}",
            "A turn is committed. Its changes are kept. An act was refused.",
        ]
        world = await audience.world()
        assert ("lantern" in world, world["approvals"]["pending"]) == (False, {})


def check_refused(story: Story) -> None:
    """The answer had no effect, and everybody is told why."""
    why = "Nothing of that id waits for your answer."
    assert [each.code for each in story.commit.issues] == ["approval_unknown"]
    assert news(story) == []
    assert story.run[-1]["outcome"] == "failed"
    assert f"Why (approval_unknown): {why}" in story.summary
    (error,) = only(story.kgent, "error")
    assert error["cause"] == "approval_unknown"
    assert error["message"].startswith(f"The answer was not committed, and does not count. {why}")
    assert (story.ag_ui[-1]["code"], story.ag_ui[-1]["message"]) == ("approval_unknown", why)
    assert story.chat[-1] == f"Nothing of the turn was committed. {why}"
    assert story.board == ["A turn was refused. Nothing of it was committed: approval_unknown."]


async def test_an_answer_after_the_host_let_the_act_expire_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await asked(audience)
        await theatre.stage.commit(decisions({ID: False}), "nobody answered in time")
        before = len(PROMPTS)
        check_refused(await audience.watch("Gladly", approvals={ID: True}))
        assert QUESTION not in PROMPTS[before].system
        assert "lantern" not in await audience.world()


async def test_the_answer_of_a_stranger_is_the_same_story_everywhere_and_changes_nothing(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as theatre, theatre.audience() as audience:
        await asked(audience)
        before = len(PROMPTS)
        async with theatre.audience(STRANGER) as strangers:
            check_refused(await strangers.watch("Gladly", approvals={ID: True}))
        assert all(QUESTION not in prompt.system for prompt in PROMPTS[before:]), (
            "what waits is nothing of a stranger's"
        )
        assert list((await audience.world())["approvals"]["pending"]) == [ID]
        assert (await audience.watch("Gladly", approvals={ID: True})).run[-1]["outcome"] == "completed"
