"""Runs without an HTTP server: detached subscriptions, closing, settings, and access."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    DetachReason,
    Limits,
    MemoryLedger,
    Persona,
    RegistrationError,
    SessionClosed,
    SideEffects,
    Tool,
    open_stage,
)
from footlights.modes import ExecutionPolicy, ModeHints
from footlights.redaction.redactor import Redacted
from footlights.testing.faults import FlakyLedger
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.base.run_keeper import UnknownRun
from footlights_transports.views.dexi.pure.events import to_json
from footlights_transports.views.dexi.runs import RunRequest, Runs, RunSettings
from tests.kit.views.dexi_kit import lawful, output, types
from tests.kit.views.dexi_server import agency

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import JsonValue, Prompt, Stage, ToolContext
    from footlights.modes import Classifier, Intent
    from footlights_transports.views.dexi.run import Run
    from tests.kit.views.dexi_kit import Raw

ME = User()
SLOW = RunRequest(message="Search the shelves with search_slowly.", policy=ExecutionPolicy.AUTO)


@asynccontextmanager
async def keeping(stage: Stage, settings: RunSettings | None = None) -> AsyncGenerator[Runs]:
    async with trio.open_nursery() as nursery:
        runs = Runs(SessionAccess(stage), settings)
        await nursery.start(runs.keep)
        yield runs
        nursery.cancel_scope.cancel()


def events_of(run: Run) -> list[Raw]:
    return [to_json(entry.event) for entry in run.entries]


async def test_a_run_continues_after_its_subscription_is_detached(quiet_clock: MockClock) -> None:
    async with open_stage(agency()) as stage, keeping(stage) as runs:
        run = await runs.begin(ME, SLOW)
        for _ in range(3):
            await trio.sleep(2)
            [outbox] = stage.session(run.session_id)._core.outboxes
            outbox.detach(DetachReason.STALLED)
        await run.wait_over()
        whole = lawful(events_of(run))
        undisturbed = await runs.begin(ME, SLOW)
        await undisturbed.wait_over()
    assert types(whole) == types(events_of(undisturbed))


async def test_a_run_whose_commit_is_in_doubt_ends_as_unknown(quiet_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        limits = Limits(shutdown_deadline=5)
        async with open_stage(agency(), ledger=FlakyLedger(MemoryLedger(), delay=inf), limits=limits) as stage:
            runs = Runs(SessionAccess(stage))
            await nursery.start(runs.keep)
            run = await runs.begin(ME, RunRequest(message="Good evening.", policy=ExecutionPolicy.FORCE))
            await trio.testing.wait_all_tasks_blocked()
            assert not run.is_over
        await run.wait_over()
        nursery.cancel_scope.cancel()
    events = lawful(events_of(run))
    assert [event["outcome"] for event in events if event["type"] in ("step_end", "done")] == ["completed", "unknown"]


async def test_no_run_begins_after_the_server_has_closed(quiet_clock: MockClock) -> None:
    async with open_stage(agency()) as stage:
        async with keeping(stage) as runs:
            run = await runs.begin(ME, SLOW)
        assert run.is_over, "so that readers end too"
        with pytest.raises(SessionClosed):
            await runs.begin(ME, SLOW)


async def test_a_host_can_set_hints_and_the_chat_agent(quiet_clock: MockClock) -> None:
    settings = RunSettings(hints=ModeHints(work=["Divine the weather for me."]), chat_agent="porter")
    async with open_stage(agency()) as stage, keeping(stage, settings) as runs:
        run = await runs.begin(ME, RunRequest(message="Divine the weather for me!", policy=ExecutionPolicy.AUTO))
        await run.wait_over()
    events = lawful(events_of(run))
    assert events[1]["content"].startswith("The agent has no tools, so it cannot")
    assert "tool_start" not in types(events), "the porter has no tools"


@pytest.mark.shows("narration-49")
async def test_what_is_denied_says_so_to_a_person_and_the_hint_for_a_client_is_beside_it(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(agency()) as stage, keeping(stage) as runs:
        run = await runs.begin(ME, RunRequest(message="Search the shelves for rain.", policy=ExecutionPolicy.DENY))
        await run.wait_over()
        talk = await runs.begin(ME, RunRequest(message="Good evening.", policy=ExecutionPolicy.DENY))
        await talk.wait_over()
    answer = run.answer()
    assert str(answer["message"]).startswith("I have not run anything. I can search the shelves if you allow it.")
    assert "execution_policy" not in str(answer["message"])
    assert answer["allow"] == run.description()["allow"] == {"execution_policy": "auto"}
    assert talk.answer()["allow"] is None


@pytest.mark.shows("narration-126")
@pytest.mark.parametrize(
    ("policy", "agent", "told"),
    [
        (ExecutionPolicy.AUTO, "clerk", ["execution. Your tools: look.", "Only what a tool has returned"]),
        (ExecutionPolicy.DENY, "clerk", ["Nothing was run", "With leave you could use: look.", "execution_policy"]),
        (ExecutionPolicy.DENY, "porter", ["Nothing was run", "You have no tools."]),
    ],
)
async def test_the_model_is_told_what_it_may_do_and_what_was_not_done(
    policy: ExecutionPolicy, agent: str, told: list[str], quiet_clock: MockClock
) -> None:
    prompts: list[Prompt] = []

    def script(prompt: Prompt) -> list[Say]:
        prompts.append(prompt)
        return [Say("Well.")]

    async def look(arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        return "seen"

    cast = standard_cast(
        ScriptedModel(script),
        tools=[Tool(name="look", run=look, side_effects=SideEffects.NONE)],
        personas={"clerk": Persona(text="You are a clerk."), "porter": Persona(tools=frozenset())},
    )
    async with open_stage(cast) as stage, keeping(stage) as runs:
        run = await runs.begin(ME, RunRequest(message="Search the archive for rain.", policy=policy, agent=agent))
        await run.wait_over()
    [fact] = [line for line in prompts[0].system.splitlines() if line.startswith("This turn: ")]
    for each in told:
        assert each in fact


@pytest.mark.shows("narration-23", "narration-40")
async def test_a_message_that_names_a_tool_of_the_cast_asks_for_it(quiet_clock: MockClock) -> None:
    async with open_stage(agency()) as stage, keeping(stage) as runs:
        name = stage.tools[0]
        request = RunRequest(message=f"Use {name}, please.", policy=ExecutionPolicy.AUTO)
        run = await runs.begin(ME, request)
        await run.wait_over()
    events = lawful(events_of(run))
    assert (events[0]["mode"], "tool_start" in types(events)) == ("execution", True)


async def test_a_run_is_found_only_for_its_user(quiet_clock: MockClock) -> None:
    async with open_stage(agency()) as stage, keeping(stage) as runs:
        run = await runs.begin(ME, SLOW)
        assert await runs.recall(ME, run.run_id) is run
        with pytest.raises(UnknownRun):
            await runs.recall(User("ann"), run.run_id)
        assert runs.cancel_run(run) is True
        assert runs.cancel_run(run) is False
        await run.wait_over()


async def test_a_run_ends_when_the_server_closes_even_if_its_narration_fails_then(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    class Broken:
        def text(self, text: str) -> Redacted:
            return Redacted("\ud800" if "not seen" in text else text, applied=False)

    settings = RunSettings(redactor=Broken())  # type: ignore[arg-type]
    async with open_stage(agency()) as stage:
        async with keeping(stage, settings) as runs:
            run = await runs.begin(ME, SLOW)
            await trio.sleep(1)
        assert lawful(events_of(run))[-1]["outcome"] == "unknown"
    assert [record.getMessage()[:17] for record in caplog.records] == ["run_stream failed"]


async def test_a_secret_in_a_document_is_in_no_event_of_a_run(tmp_path: Path, quiet_clock: MockClock) -> None:
    (tmp_path / "keys.md").write_text("# Rain\nThe rain api_key: zz99secret, and mail bob@example.com about the rain.")
    cast = tavern_cast(documents=tmp_path)
    async with open_stage(cast) as stage, keeping(stage) as runs:
        request = RunRequest(message="Search the documents about rain.", policy=ExecutionPolicy.AUTO, agent="analyst")
        run = await runs.begin(ME, request)
        await run.wait_over()
    events = lawful(events_of(run))
    [result] = [event for event in events if event["type"] == "tool_result"]
    assert result["redactions_applied"] is True
    assert "[redacted]" in output(events)
    assert "zz99secret" not in str(events)
    assert "bob@" not in str(events)


class Unnamed:
    @property
    def id(self) -> str:
        raise RuntimeError

    def classify(self, message: str, intent: Intent) -> None:
        return None


class Misnamed:
    id = "Bad Id"

    def classify(self, message: str, intent: Intent) -> None:
        return None


@pytest.mark.parametrize("classifier", [Unnamed(), Misnamed()])
def test_settings_refuse_a_classifier_whose_id_cannot_be_recorded(classifier: Classifier) -> None:
    with pytest.raises(RegistrationError, match="id is lower-case"):
        RunSettings(classifier=classifier)
    with pytest.raises(RegistrationError, match="id is lower-case"):
        Persona(classifier=classifier)


@pytest.mark.parametrize(
    ("message", "policy", "tools"),
    [
        ("I want to rent the attic", ExecutionPolicy.AUTO, ["rent_room"]),
        ("two stews and three ales", ExecutionPolicy.AUTO, ["take_order"]),
        ("I want to rent the attic", ExecutionPolicy.DENY, []),
        ("how much do I have?", ExecutionPolicy.AUTO, []),
    ],
)
async def test_the_innkeeper_says_which_requests_need_his_tools(
    message: str, policy: ExecutionPolicy, tools: list[str], quiet_clock: MockClock
) -> None:
    async with open_stage(tavern_cast()) as stage, keeping(stage) as runs:
        run = await runs.begin(ME, RunRequest(message=message, policy=policy, agent="innkeeper"))
        await run.wait_over()
        assert (stage.world["purse"] < 20) is bool(tools)
    events = lawful(events_of(run))
    assert [event["tool_name"] for event in events if event["type"] == "tool_result"] == tools
    assert not tools or output(events)


async def test_another_agent_is_not_asked_what_the_innkeeper_would_do(quiet_clock: MockClock) -> None:
    async with open_stage(tavern_cast()) as stage, keeping(stage) as runs:
        request = RunRequest(message="I rent the attic", policy=ExecutionPolicy.AUTO, agent="analyst")
        run = await runs.begin(ME, request)
        await run.wait_over()
    assert events_of(run)[0]["mode"] == "chat"
