"""Acts that wait for an approval, or were decided, as runs tell them."""

from __future__ import annotations

import pytest
from attrs import evolve

from footlights.authority import ApprovalNews, ApprovalState, approval_news
from footlights.authority.artifacts import news_ext
from footlights.events import CommitFinal, Ext, ToolCallResult, ToolCallStarted, TurnFinal
from footlights_transports.cli.run_view import RunView
from footlights_transports.cli.screen import Line
from footlights_transports.views.dexi.pure.schema import check_event
from tests.kit.views.dexi_kit import CHAT, HOT, OK, output, run_of, told

CALL = ToolCallStarted("call-1", "sell_horse")
WAITS = "The run waits for approval. Waiting: a-000001: Sell it?"
HELD = ToolCallResult("call-1", "sell_horse", canceled=False, awaits_approval=True)
ENDINGS = {
    ApprovalState.PENDING: ("waiting", "a-000001 waits for approval: Sell it?"),
    ApprovalState.APPROVED: ("completed", "a-000001 was approved, and is done: Sell it?"),
    ApprovalState.DENIED: ("completed", "a-000001 was denied, and is dropped: Sell it?"),
}


def commit(*states: ApprovalState) -> CommitFinal:
    news = [ApprovalNews(f"a-{number:06d}", "Sell it?", state) for number, state in enumerate(states, 1)]
    said = evolve(OK, ext=news_ext(each.artifact for each in news))
    assert approval_news(said) == tuple(news)
    return said


def test_a_call_whose_act_waits_is_not_told_as_finished() -> None:
    run = run_of(*HOT, CALL, HELD, TurnFinal(""), commit(ApprovalState.PENDING), tools={"sell_horse": ""})
    assert told(run)[-11:] == [
        ("step_start", "step-2", "Sell horse"),
        ("tool_start", "step-2", "sell_horse", "To carry out a part of the request."),
        ("narration_delta", "step-2", "Sell horse was requested."),
        ("tool_result", "step-2", "sell_horse", "Waits for approval.", False),
        ("narration_delta", "step-2", "Sell horse waits for approval."),
        ("step_end", "step-2", "waiting"),
        ("step_start", "step-3", "Wait for approval"),
        ("narration_delta", "step-3", "a-000001 waits for approval: Sell it?"),
        ("step_end", "step-3", "waiting"),
        ("summary", f"{WAITS} Not done: Sell horse (waits for approval). Steps: 1 completed, 2 waiting."),
        ("done", "waiting"),
    ]
    assert not any(isinstance(each, Line) for each in RunView().show(check_event(run[-1]))), "it did not fail"


@pytest.mark.parametrize("state", ApprovalState)
def test_a_decision_is_a_step_and_in_a_chat_a_remark(state: ApprovalState) -> None:
    outcome, sentence = ENDINGS[state]
    run = run_of(*HOT, TurnFinal("Well."), commit(state))
    (narration,) = [each for each in told(run) if each[0] == "narration_delta" and "a-000001" in each[2]]
    assert narration[2] == sentence
    assert run[-1]["outcome"] == outcome
    chat = run_of(*HOT, TurnFinal("Well."), commit(state), decision=CHAT)
    assert output(chat) == f"Well.\n\n({sentence})"
    assert chat[-1]["outcome"] == outcome


def test_a_run_waits_for_all_that_waits_of_it() -> None:
    run = run_of(*HOT, TurnFinal("Well."), commit(ApprovalState.APPROVED, ApprovalState.PENDING, ApprovalState.PENDING))
    told = "Waiting: a-000002: Sell it?; a-000003: Sell it? Approved and done: a-000001: Sell it?"
    assert run[-2]["content"].startswith(f"The run waits for approval. {told} No tool was run. Steps: ")


def test_the_ext_of_another_is_no_news() -> None:
    assert approval_news(evolve(OK, ext=Ext("ext.host.notes", [{"id": 7}]))) == ()
    assert approval_news(OK) == ()
