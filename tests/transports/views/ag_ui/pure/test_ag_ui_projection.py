"""Projection of turns to AG-UI runs: what each event becomes, and that a run continues from any position."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import Intent, IntentType
from footlights.authority import PendingApproval
from footlights.errors import InvalidCommand
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Issue,
    ModelLoading,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.testing.streams import Events, turns, views_of
from footlights_transports.views.ag_ui.pure.laws import check_ag_ui
from footlights_transports.views.ag_ui.pure.position import Position, read_position
from footlights_transports.views.ag_ui.pure.projection import AgUiProjection
from tests.kit.views.ag_ui_kit import RUN, THREAD, bodies, lawful, project, text, types
from tests.kit.views.dexi_kit import HOT, OK, core_events

REFUSED = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, (Issue("too_dear", "The purse has 3 coins."),))
CUT = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, (Issue("turn_interrupted", "It was."),))


FAILURES = ("model_error", "tool_error", "workload_error", "timeout", "stalled")


def said(events: Events) -> str:
    return "".join(event.payload.delta for event in events if isinstance(event.payload, TokenDelta))


def calls(events: Events) -> list[str]:
    return [each.event_type for each in events if isinstance(each.payload, (ToolCallStarted, ToolCallResult))]


def test_a_turn_with_a_tool_is_a_run_with_two_messages_and_a_call() -> None:
    events = core_events(
        [
            TurnAccepted(turns_ahead=1),
            HOT[0],
            ModelLoading("odo", cold_start=True),
            HOT[1],
            TokenDelta("Let me ", 0),
            TokenDelta("see.", 7),
            ToolCallStarted("call-1", "look"),
            ToolCallResult("call-1", "look", canceled=False, summary="Two rooms."),
            TokenDelta(" Two.", 11),
            TurnFinal("Let me see. Two.", output_tokens=5),
            OK,
        ]
    )
    run = lawful(bodies(project(events)))
    assert types(run) == [
        "RUN_STARTED",
        "queued",
        "model_selected",
        "model_loading",
        "model_ready",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "commit",
        "RUN_FINISHED",
    ]
    assert text(run) == "Let me see. Two."
    assert run[-1]["outcome"] == {"type": "success"}
    assert run[-1]["usage"] == [{"model": "odo", "outputTokens": 5}]
    (result,) = [each for each in run if each["type"] == "TOOL_CALL_RESULT"]
    assert (result["content"], result["metadata"]["canceled"]) == ("Two rooms.", False)


@pytest.mark.parametrize("reason", InterruptReason)
def test_what_was_stopped_is_cancelled_and_what_failed_is_an_error_with_its_reason(reason: InterruptReason) -> None:
    why = ErrorInfo("model_unreachable", "127.0.0.1:9 cannot be reached.") if reason in FAILURES else None
    cut = TurnInterrupted(reason, error=why)
    run = lawful(bodies(project(core_events([TurnAccepted(), TokenDelta("We", 0), cut, CUT]))))
    assert types(run)[-3:] == ["TEXT_MESSAGE_END", "commit", run[-1]["type"]]
    if run[-1]["type"] == "RUN_FINISHED":
        assert reason in ("canceled", "barge_in", "session_closed")
        assert run[-1]["outcome"] == {"type": "cancelled"}
    else:
        assert run[-1]["code"] == (reason if why is None else why.code)
        assert run[-1]["message"].endswith("." if why is None else why.message)


def test_a_turn_that_the_rules_refuse_is_an_error_that_says_why() -> None:
    run = lawful(bodies(project(core_events([TurnAccepted(), TokenDelta("Yours.", 0), TurnFinal("Yours."), REFUSED]))))
    assert text(run) == "Yours."
    assert (run[-1]["type"], run[-1]["code"], run[-1]["message"]) == ("RUN_ERROR", "too_dear", "The purse has 3 coins.")


def test_an_act_that_waits_for_an_approval_is_an_interrupt() -> None:
    asked = PendingApproval("a-000001", "Buy it?", Intent(IntentType.DECISION, "buy", {}), "s1")
    run = lawful(bodies(project(core_events([TurnAccepted(), TurnFinal(""), OK]), pending=[asked])))
    (interrupt,) = run[-1]["outcome"]["interrupts"]
    assert run[-1]["outcome"]["type"] == "interrupt"
    assert (interrupt["id"], interrupt["reason"], interrupt["message"]) == ("a-000001", "approval", "Buy it?")
    assert interrupt["responseSchema"]["required"] == ["approved"]


def test_a_tool_that_failed_or_was_canceled_says_so() -> None:
    failed = ToolCallResult("call-1", "look", canceled=False, error=ErrorInfo("dark", "It is dark."))
    stopped = ToolCallResult("call-2", "look", canceled=True, side_effects_may_have_occurred=True)
    calls = [ToolCallStarted("call-1", "look"), failed, ToolCallStarted("call-2", "look"), stopped]
    end = [TurnInterrupted(InterruptReason.CANCELED), CUT]
    run = lawful(bodies(project(core_events([TurnAccepted(), *calls, *end]))))
    results = [each for each in run if each["type"] == "TOOL_CALL_RESULT"]
    assert [each["content"] for each in results] == ["It is dark.", "The call was canceled."]
    assert results[0]["metadata"]["error"] == "dark"
    assert results[1]["metadata"]["side_effects_may_have_occurred"] is True


def test_a_text_that_was_cut_says_so_after_its_message() -> None:
    run = lawful(bodies(project(core_events([TurnAccepted(), TokenDelta("We", 0), TurnFinal("We", cut=True), OK]))))
    assert types(run)[-4:] == ["TEXT_MESSAGE_END", "text_cut", "commit", "RUN_FINISHED"]


@given(turns())
def test_every_turn_is_a_lawful_run_with_all_of_its_text(events: Events) -> None:
    assert text(lawful(bodies(project(events)))) == said(events)


@given(turns())
def test_a_run_continues_after_every_position(events: Events) -> None:
    run = project(events)
    for place, event in enumerate(run):
        assert project(events, event.position) == run[place + 1 :]


@given(st.data())
def test_a_run_with_joined_and_missed_events_continues_after_every_position(data: st.DataObject) -> None:
    """Another subscriber may get fewer events, joined in another way, or only what the ledger has."""
    whole = data.draw(turns())
    events, _ = data.draw(views_of(whole, least=1))
    run = project(whole)
    place = data.draw(st.integers(0, len(run) - 1))
    rest = project(events, run[place].position)
    both = [*bodies(run[: place + 1]), *bodies(rest)]
    broken = {each.law for each in check_ag_ui(both)}
    # The result of a tool may be among what is missing, and no event of AG-UI can declare that.
    assert broken <= ({"tool_closed"} if calls(events) != calls(whole) else set[str]())
    if any(isinstance(each.payload, TurnFinal) and not each.payload.text_forgotten for each in events):
        assert text(both) == said(whole)
    assert said(whole).startswith(text(both))


@given(turns())
def test_positions_are_read_as_they_are_written(events: Events) -> None:
    for event in project([evolve(each, turn_id="t12-000345") for each in events]):
        assert read_position(str(event.position)) == event.position


@pytest.mark.parametrize(
    "written",
    ["", "7", "t1-000001", "t1-000001.1.1.1.x", "t1-000001.-2.0.0.n", "t1-000001.1.1.1.n ", "t1-000001.1.1.1.m", "é"],
)
def test_an_id_that_is_no_position_is_refused(written: str) -> None:
    with pytest.raises(InvalidCommand, match="Last-Event-ID"):
        read_position(written)


def test_a_run_that_cannot_go_on_ends_lawfully_wherever_it_is() -> None:
    events = core_events([TurnAccepted(), TokenDelta("We", 0), TurnFinal("We"), OK])
    whole = project(events)
    for place in range(1, len(whole)):
        shown = whole[:place]
        ends = AgUiProjection(THREAD, RUN, Position("t1")).break_off(shown, 0.0)
        run = lawful([*bodies(shown), *bodies(ends)])
        assert run[-1]["code"] == "internal"
