"""Runs that are canceled at every point: each ends with a lawful and complete stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
import trio.testing

from footlights import SideEffects, Tool, WarmState, open_stage
from footlights.modes import ExecutionPolicy
from footlights.testing import cancel_everywhere
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.dexi.pure.events import to_json
from footlights_transports.views.dexi.runs import RunRequest, Runs
from tests.kit.views.dexi_kit import lawful, output, types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights import Cast, Prompt, Stage, ToolContext
    from footlights.events import JsonValue
    from footlights.testing import Trial
    from footlights_actors import Line
    from footlights_transports.views.dexi.run import Run

ANN = User("ann")
ASKED = RunRequest(message="Search and simulate it.", policy=ExecutionPolicy.AUTO)


def study(*, cold: bool = False, cancel_safe: bool = True) -> Cast:
    """A model that searches, then runs two simulations in parallel, with a silence long enough for a heartbeat."""

    def script(prompt: Prompt) -> Iterable[Line]:
        if not prompt.rounds:
            return [Say("Let me see."), Call("search_shelves")]
        if len(prompt.rounds) == 1:
            return [Say(" And now."), Call("simulate_one"), Call("simulate_two")]
        return [Say(" That is all.")]

    def tool(name: str, seconds: float) -> Tool:
        async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
            await trio.sleep(seconds)
            return name

        return Tool(name=name, run=run, cancel_safe=cancel_safe, side_effects=SideEffects.NONE if cancel_safe else None)

    warm = WarmState.COLD if cold else WarmState.HOT
    return standard_cast(
        ScriptedModel(script, warm_state=warm, load_seconds=0.1, load_steps=2),
        tools=[tool("search_shelves", 0.1), tool("simulate_one", 3.0), tool("simulate_two", 0.2)],
    )


def check(run: Run) -> str:
    """Check the run; returns its outcome."""
    events = lawful([to_json(entry.event) for entry in run.entries])
    assert types(events)[:2] == ["mode", "plan_narrative"]
    assert types(events).count("tool_start") == types(events).count("tool_result")
    assert "Let me see. And now. That is all.".startswith(output(events))
    outcome: str = events[-1]["outcome"]
    if outcome == "completed":
        assert output(events).endswith("all.")
    return outcome


def explore(make_cast: Callable[[], Cast], *, orders: int = 2, pairs: int = 10) -> set[str]:
    outcomes: set[str] = set()

    async def scenario(trial: Trial) -> None:
        async with open_stage(make_cast(), wall_clock=trio.current_time) as stage, trio.open_nursery() as nursery:
            access = SessionAccess(stage, AccessPolicy({"ann": "a-token-for-this-test-only"}))
            runs = Runs(access, wall_clock=lambda: 1_700_000_000.0)
            await nursery.start(runs.keep)
            run = await runs.begin(ANN, ASKED)
            won: list[bool] = []
            trial.aim(lambda: won.append(runs.cancel_run(run)))
            await run.wait_over()
            trial.disarm()
            outcome = check(run)
            assert (outcome == "canceled") == any(won)
            outcomes.add(outcome)
            await trio.testing.wait_all_tasks_blocked()
            assert stage.statistics().sessions == 0, "a run's own session is closed with it"
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=orders, pairs=pairs).points > 20
    return outcomes


def test_a_run_with_tools_is_lawful_wherever_it_is_canceled() -> None:
    assert explore(study) == {"completed", "canceled"}


def test_a_run_whose_tools_finish_and_whose_model_loads_is_lawful_wherever_it_is_canceled() -> None:
    assert explore(lambda: study(cold=True, cancel_safe=False), orders=1) == {"completed", "canceled"}


def test_a_run_is_lawful_wherever_its_stage_closes() -> None:
    async def scenario(trial: Trial) -> None:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as host:
                async with open_stage(study(), wall_clock=trio.current_time) as stage:
                    runs = Runs(SessionAccess(stage), wall_clock=lambda: 1_700_000_000.0)
                    await nursery.start(runs.keep)
                    run = await runs.begin(User(), ASKED)
                    trial.aim(host.cancel)
                    await run.wait_over()
                    trial.disarm()
            await run.wait_over()
            assert check(run) in ("completed", "canceled")
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20


def test_a_request_for_a_run_can_be_canceled_anywhere() -> None:
    """A run that has begun continues, and one that has not begun leaves no session."""

    async def scenario(trial: Trial) -> None:
        async with open_stage(study(), wall_clock=trio.current_time) as stage, trio.open_nursery() as nursery:
            runs = Runs(SessionAccess(stage), wall_clock=lambda: 1_700_000_000.0)
            await nursery.start(runs.keep)
            with trio.CancelScope() as asking:
                trial.aim(asking.cancel)
                run = await runs.begin(User(), ASKED)
                await run.wait_over()
            trial.disarm()
            while stage.statistics().sessions:  # noqa: ASYNC110 - a stage has no event for that
                await trio.sleep(1)
            found = runs.kept_of(User())
            assert len(found) == stage_turns(stage)
            assert [check(each) for each in found] == ["completed"] * len(found)
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20


def stage_turns(stage: Stage) -> int:
    return sum(stage.statistics().turns_settled.values())
