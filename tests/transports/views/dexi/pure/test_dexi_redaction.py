"""Redaction in narrated runs, and the check of each event against its schema."""

from __future__ import annotations

import pytest

from footlights.errors import InvalidEvent
from footlights.events import (
    ModelSelected,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
)
from footlights.redaction.patterns import SecretPattern
from footlights.redaction.redactor import Redactor
from footlights_transports.views.dexi.pure.narration import Narrator
from tests.kit.views.dexi_kit import (
    EXECUTION,
    HOT,
    OK,
    RUN,
    STARTED,
    TOOLS,
    artifacts,
    core_events,
    output,
    run_of,
)

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"


@pytest.mark.shows("narration-77")
def test_a_secret_in_a_result_is_redacted_and_the_event_says_so() -> None:
    leaked = ToolCallResult("call-1", "search_documents", False, summary=f"The key is {KEY}.")
    run = run_of(*HOT, STARTED, leaked, TurnFinal(""), OK)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert result["redactions_applied"] is True
    assert "[redacted]" in result["summary"]
    assert KEY not in str(run)


@pytest.mark.shows("narration-63", "narration-91")
def test_a_secret_anywhere_but_in_the_answer_is_redacted() -> None:
    ext = artifacts(
        read=[{"kind": "document", "identifier": "ann@example.org/inn.md"}],
        generated=[{"kind": "cohort", "identifier": "blake3:00", "summary": f"Made with {KEY}."}],
    )
    run = run_of(
        ModelSelected("ann@example.org", "default"),
        ToolCallStarted("call-1", KEY),
        ToolCallResult("call-1", KEY, False, summary="Done.", ext=ext),
        TurnFinal(""),
        OK,
        agent="bob@example.org",
        tools={KEY: f"Use {KEY}."},
    )
    assert KEY not in str(run)
    assert "example.org" not in str(run)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert result["redactions_applied"] is True
    assert "blake3:00" in str(run)


@pytest.mark.shows("narration-77")
def test_a_redaction_by_the_tool_itself_is_reported_too() -> None:
    result = ToolCallResult("call-1", "search_documents", False, summary="2 found, 1 shown with parts [redacted]")
    [told_of] = [event for event in run_of(STARTED, result, TurnFinal(""), OK) if event["type"] == "tool_result"]
    assert (told_of["summary"], told_of["redactions_applied"]) == ("2 found, 1 shown with parts [redacted]", True)


def test_a_host_can_add_secret_patterns() -> None:
    redactor = Redactor(patterns=[SecretPattern("the password", "swordfish")])
    leaked = ToolCallResult("call-1", "search_documents", False, summary="Say swordfish.")
    run = run_of(STARTED, leaked, TurnFinal(""), OK, redactor=redactor)
    assert "swordfish" not in str(run)


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit])
def test_text_that_a_host_s_redactor_fails_for_is_hidden(failure: type[BaseException]) -> None:
    def check(found: str) -> bool:
        raise failure(found)

    redactor = Redactor(patterns=[SecretPattern("the password", "swordfish", check)])
    leaked = ToolCallResult("call-1", "search_documents", False, summary="Say swordfish.")
    run = run_of(STARTED, leaked, TurnFinal(""), OK, redactor=redactor)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert (result["summary"], result["redactions_applied"]) == ("[redacted]", True)


def test_the_answer_is_not_redacted() -> None:
    assert output(run_of(*HOT, TokenDelta(KEY, 0), TurnFinal(KEY), OK)) == KEY


# -- the check against the schema


@pytest.mark.shows("narration-91", "narration-127")
def test_events_are_checked_against_their_schema_unless_switched_off() -> None:
    half_a_pair = core_events([*HOT, TurnFinal("\ud800")])
    for checked in (True, False):
        run = Narrator(RUN, EXECUTION, checked=checked, tools=TOOLS)
        run.begin(0)
        for event in half_a_pair[:-1]:
            run.take(event, 0)
        if checked:
            with pytest.raises(InvalidEvent, match="lone surrogates"):
                run.take(half_a_pair[-1], 0)
        else:
            assert [event.type for event in run.take(half_a_pair[-1], 0)] == ["step_end", "output_delta"]
