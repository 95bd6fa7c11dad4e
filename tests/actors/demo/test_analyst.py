"""The analyst: it works when it is asked to and may, and what it leaves behind is what its commit names."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    Ext,
    InterruptReason,
    Mode,
    Prompt,
    RegistrationError,
    ToolCallResult,
    ToolCallStarted,
    ToolExchange,
    ToolOffer,
    ToolRequest,
    ToolRound,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.authority import SqliteLedger
from footlights.testing import cancel_everywhere, only, payloads, take_turn
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_actors.demo.analyst.cohort import CohortPlan, simulate
from footlights_actors.demo.analyst.report import report, sentence
from footlights_actors.demo.analyst.rules import ANALYST_RULES, artifact_of
from footlights_actors.demo.analyst.script import analyst
from footlights_actors.demo.analyst.tools import DOCUMENTS, analyst_tools
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.world import opening_hour

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import Cast, JsonValue, Stage, StreamEvent
    from footlights.testing import Trial
    from footlights_actors import Line

BOTH = "Search the documents for onboarding, then simulate 40 people over 6 weeks without reminders."
STUDY = simulate(CohortPlan(people=40, weeks=6, reminders=False))
ANALYST = TurnParams(persona="analyst")
CHAT = TurnParams(persona="analyst", mode=Mode.CHAT)
OFFERS = (ToolOffer("search_documents", ""), ToolOffer("simulate_cohort", ""))


def tavern(documents: Path = DOCUMENTS) -> Cast:
    return tavern_cast(pace=0, load_seconds=0, tool_seconds=0, documents=documents)


@asynccontextmanager
async def house(cast: Cast | None = None) -> AsyncGenerator[Stage]:
    async with open_stage(cast or tavern()) as stage:
        yield stage


async def asked(said: str, params: TurnParams = ANALYST, cast: Cast | None = None) -> list[StreamEvent]:
    async with house(cast) as stage:
        return await take_turn(stage.start(), said, params)


def text_of(events: list[StreamEvent]) -> str:
    return only(events, TurnFinal).text


def tools_of(events: list[StreamEvent]) -> list[str]:
    return [each.tool_name for each in payloads(events, ToolCallStarted)]


# -- work


@pytest.mark.parametrize(
    "said",
    [
        "Is there anything in the repository about reminders?",
        "Plot adherence by week for both arms",
        "What do we have in the archive on onboarding?",
    ],
)
async def test_a_question_that_needs_a_search_and_an_order_without_its_words_are_worked_on(
    said: str, quiet_clock: MockClock
) -> None:
    assert tools_of(await asked(said))


async def test_who_asks_what_it_can_do_is_told(quiet_clock: MockClock) -> None:
    assert text_of(await asked("What can you do?", CHAT)).startswith("I can search the documents, and simulate")


@pytest.mark.shows("narration-25", "narration-26")
async def test_search_and_simulation_are_two_steps_and_then_a_result(quiet_clock: MockClock) -> None:
    events = await asked(BOTH)
    kinds = [type(each.payload) for each in events if isinstance(each.payload, ToolCallStarted | ToolCallResult)]
    assert kinds == [ToolCallStarted, ToolCallResult] * 2, "one after the other"
    assert tools_of(events) == ["search_documents", "simulate_cohort"]
    assert text_of(events) == (
        "I found 2 of 6 documents: Onboarding and Running a cohort. The first says: Onboarding shows people how to "
        "begin: what to do on the first day, whom to ask, and what a good first week looks like... "
        f"{sentence(STUDY)} The table is kept as soon as this turn is committed."
    )


@pytest.mark.shows("narration-27")
async def test_every_artifact_is_announced_and_the_one_that_was_made_is_the_one_that_is_committed(
    quiet_clock: MockClock,
) -> None:
    async with house() as stage:
        events = await take_turn(stage.start(), BOTH, ANALYST)
        assert stage.world == opening_hour(), "a simulation changes nothing in the house"
    made = artifact_of(STUDY)
    searched, simulated = payloads(events, ToolCallResult)
    read: list[JsonValue] = [
        {"kind": "document", "identifier": name} for name in ("onboarding.md", "running-a-cohort.md")
    ]
    assert searched.ext == Ext("ext.footlights.artifacts", {"read": read, "generated": []})
    note: JsonValue = {"kind": "cohort_simulation", "identifier": made.ref, "summary": sentence(STUDY)}
    assert simulated.ext == Ext("ext.footlights.artifacts", {"read": [], "generated": [note]})
    assert (searched.summary, simulated.summary) == ("2 found in 6 documents", sentence(STUDY))
    commit = only(events, CommitFinal)
    assert (commit.commit_outcome, commit.artifact_refs) == (CommitOutcome.OK, (made.ref,))


async def test_the_artifact_can_be_read_in_the_ledger(tmp_path: Path, quiet_clock: MockClock) -> None:
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_stage(tavern(), ledger=ledger) as stage:
        events = await take_turn(stage.start(), BOTH, ANALYST)
        record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    [artifact] = record.artifacts
    assert artifact.data == report(STUDY)
    assert artifact.ref == artifact_of(STUDY).ref
    assert record.changes == ()


async def test_it_searches_the_folder_that_it_is_given(tmp_path: Path, quiet_clock: MockClock) -> None:
    (tmp_path / "zoo.md").write_text("# The zoo\n\nA zebra lives here.")
    events = await asked("Search the documents for a zebra", cast=tavern(tmp_path))
    assert text_of(events) == "I found 1 of 1 documents: The zoo. The first says: A zebra lives here."
    nothing = await asked("Search the documents for an okapi", cast=tavern(tmp_path))
    assert text_of(nothing) == "None of the 1 documents speaks of that."
    assert only(nothing, ToolCallResult).ext is None


async def test_a_refusal_of_a_tool_is_reported_and_the_other_step_still_runs(quiet_clock: MockClock) -> None:
    events = await asked("Search for onboarding, then simulate 3 people")
    searched, simulated = payloads(events, ToolCallResult)
    assert searched.error is None
    assert simulated.error is not None
    assert "I could not simulate a cohort. people must be from 8 to 2000." in text_of(events)
    assert only(events, CommitFinal).artifact_refs == ()


async def test_it_works_in_a_cast_of_another_kind(quiet_clock: MockClock) -> None:
    cast = standard_cast(ScriptedModel(analyst), tools=analyst_tools(), rules=ANALYST_RULES)
    events = await asked(BOTH, TurnParams(), cast)
    assert only(events, CommitFinal).artifact_refs == (artifact_of(STUDY).ref,)
    assert text_of(await asked("Hello", TurnParams(), cast)).startswith("I can search the documents")


async def test_the_innkeeper_has_the_tools_of_the_house_and_the_analyst_those_of_the_study() -> None:
    personas = tavern().personas
    assert personas["analyst"].tools == frozenset({"search_documents", "simulate_cohort"})
    assert personas["innkeeper"].tools == frozenset(
        {"check_rooms", "rent_room", "serve_order", "take_order", "recall_rumour", "sell_lantern"}
    )
    assert tavern_cast(with_tools=False).personas["innkeeper"].tools == frozenset()


def test_a_tavern_without_its_documents_cannot_open(tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="folder of documents"):
        tavern(tmp_path / "nowhere")


# -- words


@pytest.mark.shows("narration-14")
@pytest.mark.parametrize(
    ("said", "could"),
    [
        (BOTH, "search the documents and simulate a cohort"),
        ("Please search the documents for onboarding", "search the documents"),
        ("Generate a synthetic cohort of 100 people", "simulate a cohort"),
    ],
)
async def test_in_chat_it_only_says_what_it_could_do(said: str, could: str, quiet_clock: MockClock) -> None:
    events = await asked(said, CHAT)
    assert tools_of(events) == []
    assert text_of(events) == f"I could {could}. In this turn I may not, so nothing was run."
    assert only(events, CommitFinal).artifact_refs == ()


@pytest.mark.shows("narration-12")
@pytest.mark.parametrize("params", [CHAT, ANALYST], ids=["chat", "execution"])
@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("Explain what a cohort is", "A cohort is a group of people"),
        ("What does a simulation do?", "A simulation follows invented people"),
        ("What is adherence?", "Adherence is the share"),
        ("What is onboarding good for?", "Onboarding shows people how to begin"),
        ("Are reminders annoying?", "A reminder helps a little"),
        ("How are we doing?", "Till: 31 coins. Rooms"),
        ("Is the till still full?", "Till: 31 coins."),
        ("Please do not simulate anything, what is in the till?", "Till: 31 coins."),
    ],
)
async def test_what_asks_for_no_work_is_answered_in_words(
    said: str, meaning: str, params: TurnParams, quiet_clock: MockClock
) -> None:
    events = await asked(said, params)
    assert tools_of(events) == []
    assert text_of(events).startswith(meaning)


def test_blank_lines_between_the_facts_say_nothing() -> None:
    told = analyst(Prompt("What is in the purse?", "You are an analyst.\n\n   \npurse: 20 coins\n\u00a0\nrooms: 3"))
    assert list(told) == [Say("purse: 20 coins.")]


def test_work_that_is_not_named_is_asked_back() -> None:
    assert list(analyst(Prompt("Run it", tools=OFFERS))) == [
        Say("I can search the documents, and simulate a cohort. Tell me which, and of what.")
    ]


# -- what the tools are asked with


def first_line(said: str, *rounds: ToolRound) -> Line:
    [line] = analyst(Prompt(said, tools=OFFERS, rounds=rounds))
    return line


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("Simulate a cohort", {}),
        ("Simulate 300 people over 8 weeks", {"people": 300, "weeks": 8}),
        ("Run a 12-week simulation of 50 synthetic users with seed 7", {"people": 50, "weeks": 12, "seed": 7}),
        ("Simulate reminders for 20 people", {"people": 20, "onboarding": False}),
        ("Simulate onboarding and reminders", {}),
        ("Simulate 200 people, 12 weeks, onboarding and reminders", {"people": 200, "weeks": 12}),
        ("Simulate a cohort without onboarding", {"onboarding": False}),
        ("Simulate a cohort with no onboarding and without any reminders", {"onboarding": False, "reminders": False}),
        ("Simulate (40 people, 6 weeks)", {"people": 40, "weeks": 6}),
        ("Simulate 1,500 people with seed 1,000, over 10 weeks", {"people": 1500, "weeks": 10, "seed": 1000}),
        ("Simulate 1'500 people", {"people": 1500}),
        ("Simulate 1 500 people", {"people": 1500}),
        ("Simulate 1_500 people", {"people": 1500}),
        ("Simulate 1\u202f234\u202f567 people", {"people": 1_234_567}),
        ("Simulate with seed 3 200 people", {"people": 200, "seed": 3}),
        ("Simulate 000 people", {"people": 0}),
        (f"Simulate {'9' * 200_000} people", {"people": 999_999_999_999_999}),
        (f"Simulate {'9' * 200_000}", {}),
        (f"Simulate {'123 ' * 50_000}", {}),
        (f"Simulate {'twenty-' * 30_000}", {}),
        (f"Simulate {'(' * 100_000}", {}),
    ],
)
def test_a_simulation_is_asked_for_with_what_was_said(said: str, arguments: dict[str, JsonValue]) -> None:
    assert first_line(said) == Call("simulate_cohort", arguments)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Simulate 1234567890 people", "people must be from 8 to 2000."),
        (f"Simulate {'9' * 3000} people", "people must be from 8 to 2000."),
        ("Simulate 1,50 people", "people must be from 8 to 2000."),
        ("Simulate 1.500 people", "people must be from 8 to 2000."),
        ("Simulate -40 people", "people must be from 8 to 2000."),
        ("Simulate 2k people", "people must be from 8 to 2000."),
        ("Simulate two thousand people", "people must be from 8 to 2000."),
        ("Simulate a cohort for twenty-four weeks", "weeks must be from 1 to 52."),
        ("Simulate a cohort for 6-12 weeks", "weeks must be from 1 to 52."),
        ("Simulate a cohort with seed 7.5", "seed must be from 0 to 4294967295."),
    ],
)
async def test_a_number_that_cannot_be_simulated_or_read_is_reported_and_no_other_is_taken(
    said: str, what: str, quiet_clock: MockClock
) -> None:
    events = await asked(said)
    assert text_of(events) == f"I could not simulate a cohort. {what}"
    assert only(events, CommitFinal).artifact_refs == ()


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("Search the documents for onboarding", "onboarding"),
        ("Search for onboarding and run a simulation", "onboarding"),
        (BOTH, "onboarding"),
        ("Look up reminders, please", "reminders"),
        (
            "Please search our notes for onboarding, reminders and week-one habits",
            "our notes onboarding reminders week-one habits",
        ),
    ],
)
def test_a_search_is_asked_for_with_the_words_that_ask_for_it(said: str, query: str) -> None:
    assert first_line(said) == Call("search_documents", {"query": query})


def test_the_steps_come_in_the_order_of_the_message_and_each_once() -> None:
    said = "Simulate a cohort, then search the documents for reminders, then simulate a cohort"
    simulated = ToolRound("", (ToolExchange(ToolRequest("simulate_cohort", {}), {"summary": "Done."}),))
    searched = ToolRound("", (ToolExchange(ToolRequest("search_documents", {}), None, "No."),))
    assert first_line(said) == Call("simulate_cohort", {})
    assert first_line(said, simulated) == Call("search_documents", {"query": "reminders"})
    end = first_line(said, simulated, searched)
    assert end == Say(
        "Done. The table is kept as soon as this turn is committed. I could not search the documents. No."
    )


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("search_documents", {"query": "a", "limit": 0}, "limit must be from 1 to 20."),
        ("search_documents", {"query": "a", "limit": 21}, "limit must be from 1 to 20."),
        ("search_documents", {}, "The argument query is missing."),
        ("simulate_cohort", {"people": 2_001}, "people must be from 8 to 2000."),
        ("simulate_cohort", {"weeks": "12"}, "The argument weeks must be an integer."),
    ],
)
async def test_a_model_that_asks_wrongly_gets_an_error(
    name: str, arguments: dict[str, JsonValue], why: str, quiet_clock: MockClock
) -> None:
    model = ScriptedModel(lambda prompt: [Say("Ah.")] if prompt.exchanges else [Call(name, arguments)])
    events = await asked("Do it.", TurnParams(), standard_cast(model, tools=analyst_tools(), rules=ANALYST_RULES))
    result = only(events, ToolCallResult)
    assert result.error is not None
    assert result.error.message == why
    assert only(events, CommitFinal).artifact_refs == ()


# -- cancelled everywhere


def test_a_run_that_is_cancelled_anywhere_leaves_its_artifact_with_an_ok_commit_or_not_at_all(tmp_path: Path) -> None:
    made = artifact_of(STUDY).ref
    numbers = count()

    async def scenario(trial: Trial) -> None:
        async with (
            SqliteLedger(tmp_path / str(next(numbers))) as ledger,
            open_stage(tavern(), ledger=ledger, wall_clock=trio.current_time) as stage,
            (session := stage.start()).subscribe() as stream,
        ):
            turn_id = session.begin_turn(BOTH, ANALYST)
            trial.aim(lambda: session.cancel(turn_id))
            events = [event async for event in stream.until_commit(turn_id)]
            trial.disarm()
            interrupted = [each.reason for each in payloads(events, TurnInterrupted)]
            assert interrupted in ([], [InterruptReason.CANCELED])
            kept = [] if interrupted else [made]
            commit = only(events, CommitFinal)
            assert (commit.commit_outcome is CommitOutcome.OK, list(commit.artifact_refs)) == (not interrupted, kept)
            record = await ledger.find(session.session_id, turn_id)
            assert record is not None
            assert [artifact.ref for artifact in record.artifacts] == kept
            assert stage.world == opening_hour()
            results = payloads(events, ToolCallResult)
            assert [each.tool_call_id for each in payloads(events, ToolCallStarted)] == [
                r.tool_call_id for r in results
            ]
            assert all(each.ext is None for each in results if each.canceled)
            assert not any(each.side_effects_may_have_occurred for each in results)
            await trio.sleep(5)
            assert stage.statistics().tools_running == 0

    assert cancel_everywhere(scenario, orders=1, pairs=20).points > 50
