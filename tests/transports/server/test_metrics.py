"""Metrics: they count what happened, and contain only numbers and fixed labels."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights import CommitOutcome, Limits, MemoryLedger, SessionParams, TurnParams, open_stage
from footlights.testing.faults import FlakyLedger
from footlights.turn.summary import TurnSummary
from footlights_actors import Flood, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.server.measured_ledger import MeasuredLedger
from footlights_transports.server.metrics import Metrics
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import Ledger, Stage
    from footlights.authority.record import CommitRecord

ANN = User()


class ListingLedger(MemoryLedger):
    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        return ()


def read(metrics: Metrics, stage: Stage) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels."""
    families = text_string_to_metric_families(metrics.render([stage]).decode())
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def labelled(metrics: Metrics, stage: Stage) -> dict[str, set[str]]:
    """The labels of each sample, by its name. What is counted by kind has no sample before something happens."""
    families = text_string_to_metric_families(metrics.render([stage], {"none": 0}).decode())
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


async def test_incidents_are_counted_by_kind() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        text = Metrics().render([stage], {"ws_handshake_unauthorized": 3}).decode()
    assert 'footlights_incidents_total{kind="ws_handshake_unauthorized"} 3.0' in text


def summary(**times: int | None) -> TurnSummary:
    fields = {"accepted_ms": 0, "first_token_ms": None, "terminal_ms": 0, "committed_ms": 0, **times}
    return TurnSummary(session_id="s1", turn_id="t1", outcome="ok", output_tokens=None, **fields)  # type: ignore[arg-type]


@pytest.mark.shows("gateway-76")
async def test_a_turn_is_measured_from_its_acceptance_to_its_commit(quiet_clock: MockClock) -> None:
    metrics = Metrics()
    ledger = FlakyLedger(MemoryLedger(), delay=0.2)
    talking = ScriptedModel(lambda _: (Pause(1.5), Say("Good evening."), Pause(1.0)))
    async with open_stage(
        standard_cast(talking), ledger=metrics.watching(ledger), observe=metrics.turn_settled
    ) as stage:
        access = SessionAccess(stage, AccessPolicy(), watch=metrics)
        session = access.start(ANN, SessionParams())
        turn_id = access.begin_turn(ANN, session.session_id, "A room?", TurnParams())
        assert (await access.finalize(ANN, session.session_id, turn_id)).commit_outcome is CommitOutcome.OK
        now = read(metrics, stage)
    assert now["footlights_turns_total", "ok"] == 1
    assert now["footlights_turns_total", "canceled"] == 0
    assert now["footlights_turn_accept_seconds_count",] == 1
    assert now["footlights_turn_accept_seconds_sum",] == 0
    assert now["footlights_turn_first_token_seconds_sum",] == pytest.approx(1.5, abs=0.002)
    assert now["footlights_turn_commit_seconds_sum",] >= 0.2
    assert now["footlights_turn_part_seconds_sum", "first_token"] == pytest.approx(1.5, abs=0.002)
    assert now["footlights_turn_part_seconds_sum", "speaking"] == pytest.approx(1.0, abs=0.002)
    assert now["footlights_turn_part_seconds_sum", "write"] == pytest.approx(0.2, abs=0.002)
    assert now["footlights_turn_part_seconds_count", "tool"] == 0
    assert now["footlights_turn_cancel_seconds_count",] == 0
    assert now["footlights_output_tokens_total",] == 2
    assert now["footlights_ledger_batch_commits_count",] == now["footlights_ledger_batch_commits_sum",] == 1


async def test_a_cancel_is_measured_until_the_terminal_event(quiet_clock: MockClock) -> None:
    metrics = Metrics()
    async with open_stage(
        standard_cast(ScriptedModel(lambda _: (Pause(9.0), Say("Well.")))), observe=metrics.turn_settled
    ) as stage:
        access = SessionAccess(stage, AccessPolicy(), watch=metrics)
        session = access.start(ANN, SessionParams())
        turns = [access.begin_turn(ANN, session.session_id, "A room?", TurnParams()) for _ in range(3)]
        await trio.sleep(0.5)
        assert access.cancel(ANN, session.session_id, turns[0]) == (turns[0],)
        assert access.cancel(ANN, session.session_id, turns[0]) == ()
        assert access.cancel(ANN, session.session_id, None) == tuple(turns[1:])
        await access.finalize(ANN, session.session_id, turns[2])
        now = read(metrics, stage)
    assert now["footlights_turn_cancel_seconds_count",] == 3
    assert now["footlights_turn_cancel_seconds_bucket", "0.0025"] == 3
    assert now["footlights_turns_total", "canceled"] == 3
    assert now["footlights_turn_first_token_seconds_count",] == 0


async def test_open_and_waiting_turns_are_reported(quiet_clock: MockClock) -> None:
    metrics = Metrics()
    limits = Limits(best_effort_max_events_per_turn=16)
    flooding = ScriptedModel(lambda _: (Flood("x", 100), Pause(9.0)))
    async with open_stage(standard_cast(flooding), limits=limits) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            session.begin_turn("A room?")
            session.begin_turn("A beer?")
            await wait_all_tasks_blocked()
            now = read(metrics, stage)
            assert now["footlights_sessions",] == now["footlights_subscribers",] == 1
            assert now["footlights_turns_running",] == 1
            assert now["footlights_open_turns", "performing"] == now["footlights_open_turns", "accepted"] == 1
            assert now["footlights_events_waiting",] == 2 + 2 + 16  # both accepted, the model chosen and ready, deltas
            assert now["footlights_bytes_waiting",] > 16 * 200
            assert now["footlights_events_dropped_total", "best_effort"] == 84
            assert now["footlights_events_dropped_total", "bounded"] == 0
            assert now["footlights_commits_waiting",] == now["footlights_tools_running",] == 0
            while not stream.outbox.is_empty:
                await stream.receive_batch()
            assert read(metrics, stage)["footlights_events_waiting",] == 0


async def test_the_lag_of_the_event_loop_is_measured(mock_clock: MockClock) -> None:
    metrics = Metrics()
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(metrics.watch_event_loop)
        await wait_all_tasks_blocked()
        mock_clock.jump(0.7)
        await wait_all_tasks_blocked()
        now = read(metrics, stage)
        assert now["footlights_event_loop_lag_seconds_count",] == 1
        assert now["footlights_event_loop_lag_seconds_sum",] == pytest.approx(0.2)
        nursery.cancel_scope.cancel()


async def test_cancels_whose_end_is_never_reported_take_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_transports.server.metrics._MAX_CANCELS", 2)
    metrics = Metrics()
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        metrics.turns_canceled("s1", ["t1", "t2", "t3"], at=0.0)
        metrics.turn_settled(summary())  # of t1, which was forgotten
        assert read(metrics, stage)["footlights_turn_cancel_seconds_count",] == 0
        metrics.turns_canceled("s1", ["t1"], at=1.0)
        metrics.turn_settled(summary(terminal_ms=1_250))
        assert read(metrics, stage)["footlights_turn_cancel_seconds_sum",] == 0.25


@pytest.mark.shows("feed-50", "feed-51", "feed-52")
async def test_claims_to_remember_a_chat_are_counted_and_decide_nothing() -> None:
    metrics = Metrics()
    leaking = ScriptedModel(lambda _: (Say("As we discussed earlier, no. Based on previous messages, no."),))
    async with open_stage(standard_cast(leaking), observe=metrics.turn_settled) as stage:
        session = stage.start()
        assert read(metrics, stage)["footlights_memory_claims_total", "as_we_discussed"] == 0
        for _ in range(2):
            commit = await session.finalize(session.begin_turn("A room?")).wait()
            assert commit.commit_outcome is CommitOutcome.OK
        now = read(metrics, stage)
    claims = {labels[0]: value for (name, *labels), value in now.items() if name == "footlights_memory_claims_total"}
    assert claims == {"as_we_discussed": 2, "previous_messages": 2, "you_asked_before": 0}


async def test_two_servers_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.turn_accepted(0.1)
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        assert read(one, stage)["footlights_turn_accept_seconds_count",] == 1
        assert read(other, stage)["footlights_turn_accept_seconds_count",] == 0


@pytest.mark.parametrize("ledger", [MemoryLedger(), ListingLedger()])
async def test_a_measured_ledger_is_the_ledger_behind_it(ledger: Ledger) -> None:
    batches: list[int] = []
    measured = MeasuredLedger(ledger, batches.append)
    async with open_stage(standard_cast(ScriptedModel(lambda _: (Say("Hm."),))), ledger=measured) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        commit = await session.finalize(turn_id).wait()
        record = await measured.find(session.session_id, turn_id)
        assert record is not None
        assert record.commit_digest == commit.commit_digest
        assert await measured.last_digests([session.session_id]) == {session.session_id: commit.commit_digest}
    assert batches == [1]
    assert await measured.begin_tool("key") is None
    await measured.complete_tool("key", "ok")
    assert await measured.begin_tool("key") == await ledger.begin_tool("key")
    assert await measured.begin_tool("other") is None
    await measured.release_tool("other")
    assert await ledger.begin_tool("other") is None


async def test_what_was_not_written_is_not_counted() -> None:
    metrics = Metrics()
    failing = FlakyLedger(MemoryLedger(), failing_appends=[1])
    async with open_stage(
        standard_cast(ScriptedModel(lambda _: (Say("Hm."),))), ledger=metrics.watching(failing)
    ) as stage:
        session = stage.start()
        for _ in range(2):
            await session.finalize(session.begin_turn("A room?")).wait()
        assert read(metrics, stage)["footlights_ledger_batch_commits_count",] == 1


async def test_the_dashboard_asks_for_metrics_and_labels_that_exist() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        samples = labelled(Metrics(), stage)
    panels = json.loads((ROOT / "docs" / "deploy" / "grafana.json").read_text(encoding="utf-8"))["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(asked) > 12
    for each in asked:
        (name,) = re.findall(r"footlights_\w+", each)
        by = set(re.findall(r"by \((\w+)\)", each))
        assert name in samples, each
        assert by <= samples[name], each
