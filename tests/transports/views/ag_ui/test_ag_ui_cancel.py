"""AG-UI runs that are canceled, deserted and asked for again at every point: one end, one commit, one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import SideEffects, Tool, open_stage
from footlights.testing import cancel_everywhere
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.ag_ui.pure.request import read_request
from footlights_transports.views.ag_ui.runs import AgUiRuns
from tests.kit.views.ag_ui_kit import RUN, asking, bodies, lawful, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights import Cast, Prompt, Stage, ToolContext
    from footlights.events import JsonValue
    from footlights.testing import Trial
    from footlights_actors import Line
    from footlights_transports.views.ag_ui.runs import AgUiRun

ANN = User("ann")
ASKED = read_request(asking("A room?"))
SAID = "Let me see. Two."


def look_first() -> Cast:
    def script(prompt: Prompt) -> Iterable[Line]:
        return [Say(" Two.")] if prompt.rounds else [Say("Let me see."), Pause(1.0), Call("look")]

    async def look(arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        await trio.sleep(0.1)
        return "Two rooms."

    tool = Tool(name="look", run=look, cancel_safe=True, side_effects=SideEffects.NONE)
    return standard_cast(ScriptedModel(script), tools=[tool])


def check(run: AgUiRun) -> str:
    """Check the run; returns how it ended."""
    events = lawful(bodies(entry.event for entry in run.entries))
    assert SAID.startswith(text(events))
    end: str = events[-1]["outcome"]["type"]
    return end


async def open_runs(stage: Stage, nursery: trio.Nursery, grace: float = 5.0) -> AgUiRuns:
    access = SessionAccess(stage, AccessPolicy({"ann": "a-token-for-this-test-only"}))
    runs = AgUiRuns(access, grace, wall_clock=lambda: 1_700_000_000.0)
    await nursery.start(runs.keep)
    return runs


def test_a_run_that_is_canceled_anywhere_ends_once() -> None:
    ends: set[str] = set()

    async def scenario(trial: Trial) -> None:
        async with open_stage(look_first()) as stage, trio.open_nursery() as nursery:
            runs = await open_runs(stage, nursery)
            run, _ = await runs.open(ANN, "default", ASKED)
            won: list[bool] = []
            trial.aim(lambda: won.append(runs.cancel_by_id(ANN, "default", RUN)))
            await run.wait_over()
            trial.disarm()
            ends.add(end := check(run))
            assert (end == "cancelled") is any(won)
            assert len(await stage.ledger.latest(run.session_id, 9)) == 1
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=10).points > 20
    assert ends == {"success", "cancelled"}


def test_a_request_that_is_given_up_anywhere_can_be_made_again() -> None:
    """The second request gets the run of the first, if it began: never a second turn."""

    async def scenario(trial: Trial) -> None:
        async with open_stage(look_first()) as stage, trio.open_nursery() as nursery:
            runs = await open_runs(stage, nursery)
            with trio.CancelScope() as asking_first:
                trial.aim(asking_first.cancel)
                run, _ = await runs.open(ANN, "default", ASKED)
                with runs.read_by_client(run):
                    await run.wait_over()
            trial.disarm()
            again, place = await runs.open(ANN, "default", ASKED)
            with runs.read_by_client(again):
                await again.wait_over()
            assert (check(again), place) == ("success", 0)
            assert len(await stage.ledger.latest(again.session_id, 9)) == 1
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20


def test_a_run_that_is_deserted_anywhere_is_canceled_after_the_grace_period_and_not_before() -> None:
    ends: set[str] = set()

    async def scenario(trial: Trial) -> None:
        async with open_stage(look_first()) as stage, trio.open_nursery() as nursery:
            runs = await open_runs(stage, nursery, grace=0.5)
            run, _ = await runs.open(ANN, "default", ASKED)
            with trio.CancelScope() as reading, runs.read_by_client(run):
                trial.aim(reading.cancel)
                await run.wait_over()
            trial.disarm()
            left_at = trio.current_time()
            await run.wait_over()
            ends.add(end := check(run))
            if end == "cancelled":
                assert trio.current_time() >= left_at + 0.5
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
    assert ends == {"success", "cancelled"}


def test_a_server_that_closes_anywhere_ends_every_run() -> None:
    async def scenario(trial: Trial) -> None:
        async with open_stage(look_first()) as stage, trio.open_nursery() as nursery:
            runs = await open_runs(stage, nursery)
            run, _ = await runs.open(ANN, "default", ASKED)
            trial.aim(nursery.cancel_scope.cancel)
            await run.wait_over()
            trial.disarm()
            nursery.cancel_scope.cancel()
        lawful(bodies(entry.event for entry in run.entries))

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
