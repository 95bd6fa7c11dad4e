"""`footlights run`: its output has all that the events say, and nothing else."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from rich.console import Console

from footlights import FootlightsError
from footlights.events import (
    ErrorInfo,
    Ext,
    InterruptReason,
    ModelReady,
    ModelSelected,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.modes import ExecutionPolicy
from footlights.redaction.redactor import Redacted
from footlights_actors.demo.tavern import cast as tavern
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.cli.run import run
from footlights_transports.cli.run_view import RunView
from footlights_transports.cli.screen import Line, PlainScreen, TerminalScreen
from footlights_transports.views.dexi.pure.events import RunOutcome, StepEnd, StepOutcome, StepStart, to_json
from footlights_transports.views.dexi.pure.schema import check_event
from footlights_transports.views.dexi.runs import RunRequest, RunSettings
from tests.kit.command import footlights
from tests.kit.views import dexi_kit
from tests.kit.views.dexi_kit import CHAT, EXECUTION, OK, REFUSED, Raw, lawful
from tests.kit.views.dexi_server import KEY, agency

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from trio.testing import MockClock

    from footlights.modes import ModeDecision
    from footlights_transports.cli.screen import Screen
    from footlights_transports.views.dexi.pure.events import DexiEvent

HOT = (ModelSelected("odo", "default"), ModelReady("odo", WarmState.HOT, 0))
NOTES = Ext(
    "ext.footlights.artifacts",
    {
        "read": [{"kind": "page", "identifier": "rain.md"}],
        "generated": [{"kind": "table", "identifier": "blake3:00", "summary": "Twelve rows."}],
    },
)
SEARCH = (
    ToolCallStarted("call-1", "search_shelves"),
    ToolCallResult("call-1", "search_shelves", False, summary="One page.", ext=NOTES),
)
SILENT = [0, 0, 0, 6]


def shown_on(screen: Screen, events: Sequence[Raw], out: io.StringIO) -> str:
    view = RunView()
    for event in events:
        for piece in view.show(check_event(event)):
            screen.show(piece)
    return out.getvalue()


def test_every_outcome_of_a_step_has_its_mark() -> None:
    for outcome in StepOutcome:
        view, at = RunView(), "2026-01-01T00:00:00.000Z"
        list(view.show(StepStart("step-1", "Sell", at)))
        (line,) = view.show(StepEnd("step-1", outcome, at))
        assert isinstance(line, Line)
        assert f"Sell: {outcome}, 0.0 s" in line.text


def on_paper(events: Sequence[Raw]) -> str:
    out = io.StringIO()
    return shown_on(PlainScreen(out, spaced=True), events, out)


def in_terminal(events: Sequence[Raw], width: int = 60) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, highlight=False)
    return shown_on(TerminalScreen(console, spaced=True), events, out)


run_of = partial(dexi_kit.run_of, tools={"search_shelves": "Search the shelves.", "weigh": "Weigh."})


def executed() -> list[Raw]:
    return run_of(*HOT, *SEARCH, TokenDelta("It rains.", 0), TurnFinal("It rains."), OK, pauses=SILENT)


@pytest.mark.shows("narration-102", "narration-103", "narration-104", "narration-106", "narration-108", "narration-110")
@pytest.mark.shows("narration-111", "narration-113", "narration-117", "narration-123")
def test_a_run_is_shown_with_plan_steps_activity_and_answer() -> None:
    assert on_paper(executed()).splitlines() == [
        "Plan: The agent will search, with Search shelves, and then answer.",
        "▸ Ask a model",
        "    Working: The model odo was selected.",
        "  ✓ Ask a model: completed, 0.0 s",
        "▸ Search shelves",
        "    · search_shelves: Search the shelves.",
        "    Working: Search shelves was requested.",
        "    · read page rain.md",
        "    · made table blake3:00: Twelve rows.",
        "    · search_shelves: One page.",
        "    Working: Search shelves finished. Artifacts: 1 read, 1 generated.",
        "  ✓ Search shelves: completed, 6.0 s",
        "",
        "It rains.",
        "",
        "Summary: The run is completed. Done: Search shelves. Steps: 2 completed. Artifacts: 1 read, 1 generated.",
    ]


@pytest.mark.shows("narration-101")
def test_a_chat_is_shown_as_words_and_nothing_else() -> None:
    chat = run_of(
        *HOT, TokenDelta("Good ", 0), TokenDelta("evening.", 5), TurnFinal("Good evening."), OK, decision=CHAT
    )
    assert on_paper(chat) == "Good evening.\n"
    assert in_terminal(chat) == "Good evening.\n"


def test_words_that_end_their_line_get_no_other_end() -> None:
    assert on_paper(run_of(TokenDelta("Hm.\n", 0), TurnFinal("Hm.\n"), OK, decision=CHAT)) == "Hm.\n"
    shown = on_paper(run_of(*HOT, TokenDelta("Hm.\n", 0), TurnFinal("Hm.\n"), OK))
    assert shown.endswith("\n\nHm.\n\nSummary: The run is completed. No tool was run. Steps: 1 completed.\n")


@pytest.mark.shows("narration-119", "narration-120")
def test_a_failed_step_stays_visible_and_the_end_says_so() -> None:
    failed = ToolCallResult("call-1", "search_shelves", False, error=ErrorInfo("tool_error", "No."))
    events = run_of(*HOT, SEARCH[0], failed, TurnInterrupted(InterruptReason.TOOL_ERROR), REFUSED)
    for shown in (on_paper(events), in_terminal(events)):
        assert "✗ Search shelves: failed, 0.0 s" in shown
        assert "The run ended: failed." in shown


@pytest.mark.shows("narration-120")
@pytest.mark.parametrize("decision", [EXECUTION, CHAT])
def test_a_run_that_failed_says_why(decision: ModeDecision) -> None:
    why = ErrorInfo("model_unreachable", "127.0.0.1:9 cannot be reached (ConnectError).")
    events = run_of(*HOT, TurnInterrupted(InterruptReason.MODEL_ERROR, error=why), REFUSED, decision=decision)
    for shown in (on_paper(events), in_terminal(events)):
        words = re.sub(r"\x1b\[[\d;]*m", "", shown).split()
        assert f"Why ({why.code}): {why.message}" in " ".join(words)


@pytest.mark.shows("narration-121")
def test_a_canceled_chat_keeps_its_words() -> None:
    events = run_of(TokenDelta("Once", 0), TurnInterrupted(InterruptReason.CANCELED), REFUSED, decision=CHAT)
    assert on_paper(events) == "Once\n\nThe run ended: canceled.\n"


@pytest.mark.shows("narration-109")
def test_what_belongs_to_another_step_than_the_last_one_says_so() -> None:
    other = (ToolCallStarted("call-2", "weigh"), ToolCallResult("call-2", "weigh", False))
    shown = on_paper(run_of(SEARCH[0], other[0], SEARCH[1], other[1], TurnFinal(""), OK))
    assert "    · read page rain.md (Search shelves)\n" in shown
    assert "    Working: Weigh finished.\n" in shown


def test_redaction_is_mentioned() -> None:
    leaky = ToolCallResult("call-1", "search_shelves", False, summary=f"The key is {KEY}.")
    shown = on_paper(run_of(*HOT, SEARCH[0], leaky, TurnFinal(""), OK))
    assert "search_shelves: The key is [redacted]. (parts were taken out)" in shown


@pytest.mark.shows("narration-115", "narration-116")
def test_only_a_heartbeat_moves_a_spinner_and_it_leaves_no_trace() -> None:
    shown = in_terminal(executed())
    frames = re.findall("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", shown)
    assert frames == ["⠙", "⠹"], "two heartbeats, two frames"
    assert shown.count("\r\x1b[2K") == 2
    assert not re.findall("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", in_terminal(run_of(*HOT, *SEARCH, TurnFinal(""), OK)))
    assert "running the tool" not in on_paper(executed())
    assert "running the tool" not in in_terminal(executed(), width=12), "a spinner never needs a second line"


@pytest.mark.shows("narration-95", "narration-112")
def test_no_label_speaks_of_reasoning() -> None:
    for shown in (on_paper(executed()), in_terminal(executed())):
        assert not re.search("reason|think|chain of thought", shown, re.IGNORECASE)


@pytest.mark.shows("narration-100", "narration-105", "narration-122")
def test_nothing_is_shown_that_did_not_come() -> None:
    events = executed()
    assert events[0]["type"] == "mode"
    assert on_paper(events[:1]) == ""
    whole = set(on_paper(events).splitlines())
    shown_of_its_own = {each["type"] for each in events} - {"mode", "heartbeat", "step_start", "step_end", "done"}
    for kind in shown_of_its_own:
        assert set(on_paper([each for each in events if each["type"] != kind]).splitlines()) < whole


@pytest.mark.shows("narration-114")
def test_control_characters_never_reach_the_terminal() -> None:
    events = run_of(
        ToolCallStarted("call-1", "look\x1b[2J"),
        ToolCallResult("call-1", "look\x1b[2J", False, summary="a\nb\x07"),
        TokenDelta("c\x1b]0;d", 0),
        TurnFinal("c\x1b]0;d"),
        OK,
    )
    shown = on_paper(events)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "a b" in shown


# -- in this process


async def shown_of(
    message: str, interrupts: AsyncGenerator[object] | None = None
) -> tuple[RunOutcome, list[DexiEvent]]:
    shown: list[DexiEvent] = []
    request = RunRequest(message=message, policy=ExecutionPolicy.AUTO, agent="clerk")
    return await run(agency(), request, shown.append, interrupts), shown


async def test_a_run_in_this_process_shows_every_event(quiet_clock: MockClock) -> None:
    outcome, shown = await shown_of("Search the shelves with search_slowly.")
    assert outcome is RunOutcome.COMPLETED
    assert [event.type for event in shown].count("heartbeat") == 4
    assert shown[-1].type == "done"


async def interrupts_at(*seconds: float) -> AsyncGenerator[object]:
    for each in seconds:
        await trio.sleep_until(each)
        yield signal.SIGINT


async def test_an_interrupt_cancels_the_run_and_its_end_is_shown(quiet_clock: MockClock) -> None:
    outcome, shown = await shown_of("Search the shelves with search_slowly.", interrupts_at(3))
    assert outcome is RunOutcome.CANCELED
    assert shown[-1].type == "done"
    assert trio.current_time() == pytest.approx(3)


async def test_a_second_interrupt_waits_for_nothing(quiet_clock: MockClock) -> None:
    outcome, shown = await shown_of("Search the shelves with search_slowly.", interrupts_at(3, 3))
    assert outcome is RunOutcome.CANCELED
    assert shown


async def test_a_run_whose_stream_fails_has_an_unknown_end_and_is_logged_without_a_word(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    class Broken:
        def text(self, text: str) -> Redacted:
            return Redacted("\ud800" if text == "search_shelves" else text, applied=False)

    shown: list[DexiEvent] = []
    request = RunRequest(message="Search the shelves.", policy=ExecutionPolicy.AUTO)
    settings = RunSettings(redactor=Broken())  # type: ignore[arg-type]
    assert await run(agency(), request, shown.append, settings=settings) is RunOutcome.UNKNOWN
    lawful([to_json(event) for event in shown])
    assert [event.type for event in shown[-3:]] == ["output_delta", "summary", "done"]
    [logged] = [record.getMessage() for record in caplog.records]
    assert logged.startswith("run_stream failed: invalid_event at ")
    assert "shelves" not in logged


async def test_a_broken_pipe_ends_the_run(quiet_clock: MockClock) -> None:
    def show(event: DexiEvent) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await run(agency(), RunRequest(message="Search the shelves.", policy=ExecutionPolicy.AUTO), show)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_pipe_that_is_closed_ends_the_command_quietly(options: list[str]) -> None:
    command = [sys.executable, "-m", "footlights_transports", "run", *options, "Search the documents about onboarding."]
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (1, b"")


async def test_what_is_refused_leaves_as_it_is(quiet_clock: MockClock) -> None:
    with pytest.raises(FootlightsError) as refused:
        await shown_of(" ")
    assert refused.value.code == "invalid_command"


# -- the command


def test_the_analyst_is_asked_and_what_it_does_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "run", "Search the documents about onboarding.") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Plan: analyst will search, with Search documents, and then answer.")
    assert "  ✓ Search documents: completed" in shown


def test_what_is_denied_is_explained_and_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "run", "--policy", "deny", "Simulate 200 people.") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("I have not run anything. I can simulate how many people")
    assert "▸" not in shown


def test_an_unknown_agent_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "run", "--agent", "nobody", "Hello.") == 2
    assert capsys.readouterr().err == "There is no agent of that name; there are: innkeeper, analyst.\n"


def test_the_events_themselves_are_lawful(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "run", "--json", "--policy", "force", "Good evening.") == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["mode"] == "execution"
    done = subprocess.run(
        [sys.executable, "-m", "footlights_transports", "laws", "--dialect", "dexi", "-"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("1 run: lawful\n")


def test_at_a_terminal_it_shows_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tavern, "tavern_cast", lambda: tavern_cast(pace=0, load_seconds=0, tool_seconds=0))
    master, slave = os.openpty()
    with os.fdopen(slave, "r", closefd=False) as keyboard, os.fdopen(slave, "w") as screen:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys, "stdout", screen)
        assert footlights(monkeypatch, "run", "Search the documents about onboarding.") == 0
        shown = os.read(master, 65_536)
        while b"Summary: " not in shown:
            shown += os.read(master, 65_536)
    os.close(master)
    assert b"\x1b[1mPlan: analyst will search" in shown
