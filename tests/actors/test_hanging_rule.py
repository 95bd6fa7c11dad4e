"""A rule that does not return: all but the commits goes on, whoever waits is told, and the stage closes in time."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import Factory, define
from trio.testing import wait_all_tasks_blocked

from footlights import (
    Busy,
    BusyRule,
    CommitOutcome,
    CommitUnknown,
    EventType,
    Intent,
    IntentType,
    Limits,
    TurnParams,
    open_stage,
)
from footlights.authority import Ruling, SqliteLedger, accept, patch
from footlights.testing import Gate, cancel_everywhere
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from tests.kit.peers.http_peer import open_house

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import Cast, CommitHandle, InteractionContext, Stage
    from footlights_kit.trial import Trial

NOTE = TurnParams(workload="note", busy=BusyRule.CONCURRENT)


@define
class Inn:
    """A cast whose rule waits at a gate for the note "hang"."""

    gate: Gate = Factory(Gate)
    asked: list[str] = Factory(list[str])

    def write_down(self, world: list[str], intents: tuple[Intent, ...]) -> Ruling:
        self.asked += [intent.ref for intent in intents]
        if any(intent.ref == "hang" for intent in intents):
            self.gate.wait()
        return accept(*(patch.add("/-", intent.ref) for intent in intents))

    def cast(self) -> Cast:
        model = ScriptedModel(lambda _: [Say("So it is."), Stall()], pace=0.1)
        return standard_cast(model, world=[], rules={"write_down": self.write_down}, workloads={"note": Note()})


class Note:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.TURN_FINALIZE, context.input))
        await trio.lowlevel.checkpoint()


def begin(stage: Stage, said: str) -> CommitHandle:
    session = stage.start()
    return session.finalize(session.begin_turn(said, NOTE))


async def test_streams_cancels_and_the_ledger_go_on(
    tmp_path: Path, quiet_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    inn = Inn()
    async with SqliteLedger(tmp_path / "ledger") as ledger, open_stage(inn.cast(), ledger=ledger) as stage:
        await begin(stage, "before").wait()
        hanging = begin(stage, "hang")
        overdue: list[str | None] = []
        for seconds in (1.9, 0.2):
            await trio.sleep(seconds)
            overdue.append(stage.overdue_rule)
        assert overdue == [None, "write_down"]
        talking = stage.start()
        async with talking.subscribe() as stream:
            talk = talking.begin_turn("Is it so?")
            while (await anext(stream)).event_type is not EventType.TOKEN_DELTA:
                pass
            assert talking.cancel(talk) == (talk,)
            while (await anext(stream)).event_type is not EventType.TURN_INTERRUPTED:
                pass
        assert await ledger.find("s1-000001", "t1-000001") is not None
        assert await ledger.begin_tool("bell") is None
        await trio.sleep(3)
        assert stage.statistics().commits_waiting == 2
        assert hanging.commit is None
        inn.gate.open()
        assert (await hanging.wait()).commit_outcome is CommitOutcome.FAIL_CLOSED
        assert (await talking.finalize(talk).wait()).commit_outcome is CommitOutcome.FAIL_CLOSED
        await begin(stage, "after").wait()
        assert stage.overdue_rule is None
        assert stage.world == ["before", "after"]
        assert inn.asked == ["before", "hang", "after"]
    assert caplog.text.count("write_down has not returned") >= 1
    assert "the rule write_down took" in caplog.text


async def test_turns_are_refused_when_as_many_as_may_be_open_wait_for_it(quiet_clock: MockClock) -> None:
    inn = Inn()
    async with open_stage(inn.cast(), limits=Limits(max_open_turns=3, rule_budget=60.0)) as stage:
        handles = [begin(stage, said) for said in ("hang", "a", "b")]
        await trio.sleep(5)
        with pytest.raises(Busy):
            begin(stage, "c")
        inn.gate.open()
        assert [(await handle.wait()).commit_outcome for handle in handles] == [CommitOutcome.OK] * 3
        await begin(stage, "c").wait()
        assert sorted(stage.world) == ["a", "b", "c", "hang"]


async def test_the_stage_closes_in_its_time_and_nothing_of_the_batch_is_written(
    tmp_path: Path, quiet_clock: MockClock
) -> None:
    inn = Inn()
    async with SqliteLedger(tmp_path / "ledger") as ledger:
        async with open_stage(inn.cast(), ledger=ledger, limits=Limits(shutdown_deadline=4)) as stage:
            hanging, behind = begin(stage, "hang"), begin(stage, "behind")
            await trio.sleep(1)
        assert trio.current_time() == pytest.approx(5)
        for handle in (hanging, behind):
            with pytest.raises(CommitUnknown):
                await handle.wait()
        inn.gate.open()
        await wait_all_tasks_blocked()
        await trio.sleep(1)
        assert await ledger.find("s1-000001", "t1-000001") is None
        async with open_stage(inn.cast(), ledger=ledger) as stage:
            assert stage.world == []


async def test_whoever_waits_for_a_commit_is_told_that_it_is_pending_and_the_server_is_not_ready(
    quiet_clock: MockClock,
) -> None:
    inn = Inn()
    async with open_house(cast=inn.cast(), limits=Limits(shutdown_deadline=1)) as house:
        session = (await house.client.post("/v1/sessions")).json()["session_id"]
        turn = {"input": "hang", "params": {"workload": "note"}}
        turn_id = (await house.client.post(f"/v1/sessions/{session}/turns", json=turn)).json()["turn_id"]
        answer = await house.client.post(f"/v1/sessions/{session}/turns/{turn_id}/finalize")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "commit_pending")
        assert "write_down" in answer.json()["error"]["message"]
        ready = await house.client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {"status": "not_ready", "reasons": ["rule"], "rule": "write_down"}
        inn.gate.open()
        answer = await house.client.post(f"/v1/sessions/{session}/turns/{turn_id}/finalize")
        assert answer.json()["commit_outcome"] == "fail_closed"
        assert (await house.client.get("/readyz")).status_code == 200


def test_a_stage_that_closes_anywhere_while_a_rule_judges_commits_a_turn_or_leaves_it_in_doubt(tmp_path: Path) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        inn, path = Inn(), tmp_path / str(next(numbers))
        told: list[str] = []
        async with SqliteLedger(path) as ledger, trio.open_nursery() as nursery:

            async def watch(handle: CommitHandle) -> None:
                try:
                    told.append((await handle.wait()).commit_outcome)
                except CommitUnknown:
                    told.append("unknown")

            with trio.CancelScope() as scope:
                async with open_stage(inn.cast(), ledger=ledger, limits=Limits(shutdown_deadline=1)) as stage:
                    for said in ("a", "hang", "b"):
                        nursery.start_soon(watch, begin(stage, said))
                    trial.aim(scope.cancel)
                    await trio.sleep(0.5)
                    inn.gate.open()
                    await trio.sleep(0.5)
            trial.disarm()
            await trio.sleep(2)
            inn.gate.open()
            await wait_all_tasks_blocked()
            opening = await ledger.begin_epoch(inn.cast().world)
        world = opening.world.view()
        assert len(told) == 3
        assert told.count("ok") <= len(world) <= 3

    assert cancel_everywhere(scenario, pairs=0).points > 20
