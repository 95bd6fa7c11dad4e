"""Core suite and the shared parts: the figures add up. Tests check no performance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights_bench.lib.machine import name_of_processor, this_machine
from footlights_bench.lib.percentiles import percentile
from suites.core.latency import time_calls
from suites.core.throughput import play_through_channel, race
from suites.lib.figures import Aim, Figure
from suites.lib.report import Report, print_table
from suites.lib.scripts import EVENTS_PER_TURN, flooding, whole_turn, whole_turn_yielding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights_actors import Script
    from tests.benchmarks.conftest import QuickRun


AIMS = {
    ("calls, 20 turns paced", "inside begin_turn, p99"),
    ("calls, 20 turns paced", "inside cancel, p99"),
    ("calls, 20 turns flooding", "inside begin_turn, p99"),
    ("calls, 20 turns flooding", "inside cancel, p99"),
    ("events, 1 turn at a time", "accounted for / channel"),
    ("events, 20 turns at once", "accounted for / channel"),
    ("memory, each of 20 idle sessions", "fresh"),
    ("memory, each of 20 active turns", "200 tokens taken"),
}


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("core")
    assert run.aims == AIMS
    assert run.machine["trio"] == trio.__version__
    assert all(figure["value"] > 0 for figure in run.figures)
    assert "measuring memory" in run.err


@pytest.mark.parametrize("script", [whole_turn, whole_turn_yielding])
async def test_every_event_of_a_lap_is_given_or_declared_as_joined(script: Script) -> None:
    result = await race(script, players=3, turns=2, laps=1)
    [lap] = result.ours
    assert lap.accounted == 3 * 2 * EVENTS_PER_TURN
    assert lap.given <= lap.accounted


async def test_the_channel_carries_as_many_items_as_a_turn_has_events() -> None:
    assert await play_through_channel(buffer=0, turns=2) == 2 * EVENTS_PER_TURN


async def test_both_buffers_are_measured_and_the_faster_counts() -> None:
    result = await race(whole_turn, players=1, turns=1, laps=3)
    assert set(result.channels) == {0, 1}
    assert all(len(laps) == 3 for laps in result.channels.values())
    assert result.channel is result.channels[result.best_buffer]


async def test_calls_are_timed_inside_and_until_the_subscriber_has_the_event() -> None:
    timings = await time_calls(flooding, turns=2, samples=6)
    for calls in (timings.begin_turn, timings.cancel):
        assert len(calls.inside) == len(calls.until_seen) == 6
        # The subscriber's task cannot run before the call has returned.
        assert all(inside < seen for inside, seen in zip(calls.inside, calls.until_seen, strict=True))


def test_a_percentile_is_a_value_that_was_measured() -> None:
    samples = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert percentile(samples, 50) == 3.0
    assert percentile(samples, 99) == 5.0
    assert percentile(samples, 0) == 1.0
    assert percentile([float(value) for value in range(1, 101)], 99) == 99.0


def test_an_aim_is_a_lower_or_an_upper_bound() -> None:
    below, at_least = Aim("below", 10), Aim("at least", 10)
    assert [below.is_met_by(value) for value in (9, 10)] == [True, False]
    assert [at_least.is_met_by(value) for value in (9, 10)] == [False, True]


def test_a_missed_aim_is_marked_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    missed = Figure("tea", "ratio", 1.5, "x", Aim("at least", 2.0), {"min": 1.0})
    met = Figure("tea", "weight", 1234, "bytes", Aim("below", 2000))
    report = Report("core", True, this_machine(), [missed, met])
    assert report.missed == [missed]
    assert report.exit_code(strict=True) == 1
    assert report.exit_code(strict=False) == 0
    print_table(report)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["what", "value", "also", "aim", "met"],
        ["tea"],
        ["ratio", "1.50", "x", "min", "1.00", "≥", "2.00", "NO"],
        ["weight", "1,234", "bytes", "<", "2,000", "yes"],
    ]


def test_the_machine_is_described_before_and_after_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = this_machine()
    assert before.load_average_after is None
    assert before.afterwards() == evolve(before, load_average_after=before.afterwards().load_average_after)
    monkeypatch.setattr("os.getloadavg", lambda: (1.2345, 0.0, 0.0))
    assert before.afterwards().load_average_after == 1.23
    monkeypatch.delattr("os.getloadavg")
    assert this_machine().load_average is None

    told = tmp_path / "processors"
    told.write_text("processor\t: 0\nmodel name\t: A Fine One\nmodel name\t: Another\n", encoding="utf-8")
    assert name_of_processor(told) == "A Fine One"
    told.write_text("processor\t: 0\n", encoding="utf-8")
    assert name_of_processor(told) is None
    monkeypatch.setattr("platform.processor", lambda: "")
    assert name_of_processor(tmp_path / "nothing") is None
