"""Comparison of sets of runs: few false alarms, and real changes found."""

from __future__ import annotations

import json
from math import exp
from random import Random
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.result_file import UnreadableResult
from footlights_bench.scenario.compare import Recorded, Run, TooFewRuns, compared, read_set, recorded
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.parts import Part, grown
from tests.benchmarks.test_bench_scenario_report import MET, found

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from footlights_bench.scenario.result import Result

TURNS = 400


def run(chance: Random, noise: float = 0.05, times: float = 1.0, failed: int = 0) -> Run:
    """A run of the noise that real ones have: all of a run is slower or faster together, and its tail more so."""
    level, tail = exp(chance.gauss(0, noise)), exp(chance.gauss(0, 2 * noise))
    latencies: Mapping[Metric, Histogram] = {metric: Histogram() for metric in (Metric.ACCEPT, Metric.FINAL)}
    for metric, middle in ((Metric.ACCEPT, 0.002), (Metric.FINAL, 0.5)):
        for _ in range(TURNS):
            slow = tail if chance.random() < 0.02 else 1.0
            latencies[metric].record(times * level * slow * middle * chance.lognormvariate(0, 0.3))
    latencies[Metric.FINAL].failed = failed
    return Run(TURNS, failed, latencies, {Part.SPEECH: latencies[Metric.FINAL]})


def a_set(chance: Random, times: float = 1.0, runs: int = 5, noise: float = 0.02) -> Recorded:
    return Recorded("tea", {}, [run(chance, noise, times) for _ in range(runs)])


def test_unchanged_servers_are_seldom_said_to_have_changed_and_slower_ones_are_found() -> None:
    chance = Random(1)
    false = sum(bool(compared(a_set(chance), a_set(chance)).regressions) for _ in range(40))
    found_slower = sum(bool(compared(a_set(chance), a_set(chance, times=1.1)).regressions) for _ in range(40))
    assert (false <= 4, found_slower >= 36) == (True, True), (false, found_slower)


def test_more_noise_makes_for_no_more_alarms() -> None:
    chance = Random(2)
    alarms = [compared(a_set(chance, noise=0.2), a_set(chance, noise=0.2)).regressions for _ in range(40)]
    assert sum(map(bool, alarms)) <= 4


def test_a_faster_server_is_said_to_be_faster() -> None:
    chance = Random(3)
    changes = compared(a_set(chance), a_set(chance, times=0.7)).changes
    assert {each.verdict for each in changes} == {"faster"}
    assert all(each.share == pytest.approx(-0.3, abs=0.1) for each in changes)


def test_a_change_below_the_least_effect_is_none() -> None:
    chance = Random(4)
    before, after = a_set(chance, noise=0.001), a_set(chance, times=1.1, noise=0.001)
    assert "slower" in {each.verdict for each in compared(before, after).changes}
    assert {each.verdict for each in compared(before, after, 0.2).changes} == {"no change"}


def test_too_few_runs_have_no_verdict() -> None:
    chance = Random(5)
    comparison = compared(a_set(chance, runs=3), a_set(chance, times=2.0))
    assert {each.verdict for each in comparison.changes} == {"too few runs"}
    with pytest.raises(TooFewRuns, match="there are 3 and 5"):
        comparison.check_size()


def test_a_percentile_of_too_few_turns_is_not_compared() -> None:
    chance = Random(6)
    few = [Run(20, 0, {Metric.FINAL: spread(20)}, {}) for _ in range(5)]
    before = Recorded("tea", {}, few)
    assert [each.percent for each in compared(before, before).changes] == [50.0]
    assert len(compared(a_set(chance), a_set(chance)).changes) == 6


def spread(turns: int) -> Histogram:
    histogram = Histogram()
    for number in range(turns):
        histogram.record(0.5 + number / turns)
    return histogram


def test_a_set_in_which_turns_failed_never_passes() -> None:
    chance = Random(7)
    before = a_set(chance)
    failing = evolve(before, runs=[*before.runs[:-1], run(chance, failed=1)])
    assert compared(before, failing).regressions == ["1 turns failed"]
    assert compared(failing, before).regressions == []


def test_a_percentile_among_failed_turns_is_slower_than_any_other() -> None:
    chance = Random(8)
    broken = Recorded("tea", {}, [run(chance, failed=300) for _ in range(5)])
    comparison = compared(a_set(chance), broken)
    assert any(each.verdict == "slower" for each in comparison.changes)
    assert "failed" in comparison.text()


def test_an_invalid_run_never_passes() -> None:
    chance = Random(9)
    assert compared(a_set(chance), evolve(a_set(chance), invalid=True)).regressions == [
        "the harness was the bottleneck in at least one of the runs"
    ]


def test_the_part_that_grew_is_named() -> None:
    chance = Random(10)
    assert "the part that grew the most: speech, by" in compared(a_set(chance), a_set(chance, times=2.0)).text()


def of_ms(**parts: list[float]) -> dict[Part, Histogram]:
    found: dict[Part, Histogram] = {}
    for name, all_ms in parts.items():
        histogram = found[Part(name)] = Histogram()
        for each in all_ms:
            histogram.record(each / 1e3)
    return found


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ({"tool": [150] * 20, "loop": [0] * 20, "network": [1] * 20}, Part.TOOL),
        ({"tool": [150] * 20, "loop": [0] * 12 + [90] * 8, "network": [1] * 20}, Part.LOOP),
        ({"tool": [50] * 20, "loop": [0] * 18 + [30] * 2, "network": [41] * 20}, Part.NETWORK),
        ({"tool": [50] * 18 + [80] * 2, "loop": [0] * 20, "network": [1] * 20}, Part.TOOL),
        ({"tool": [51] * 20, "loop": [0] * 20, "network": [1] * 20}, None),
    ],
)
def test_a_blocked_loop_is_named_before_what_it_delays(after: dict[str, list[float]], named: Part | None) -> None:
    before = of_ms(tool=[50] * 20, loop=[0] * 20, network=[1] * 20)
    found = grown(before, of_ms(**after))
    assert (None if found is None else found[0]) is named


def test_the_same_sets_give_the_same_verdicts() -> None:
    before, after = a_set(Random(11), runs=12), a_set(Random(12), runs=12)
    assert compared(before, after).text() == compared(before, after).text()


# -- files


def write(result: Result, file: Path) -> Path:
    file.write_text(json.dumps(result.to_json(), allow_nan=False), encoding="utf-8")
    return file


def test_a_set_is_read_as_it_was_written_from_a_file_or_a_folder(tmp_path: Path) -> None:
    result = found(MET)
    read = read_set(write(result, tmp_path / "a.json"))
    assert read.name == "<mine>"
    assert read.facts["python"] == this_machine().python
    (only,) = read.runs
    assert (only.turns, only.failed) == (10, 0)
    assert {metric: list(each) for metric, each in only.latencies.items()} == {
        metric: list(each) for metric, each in result.latencies.items() if each.count
    }
    write(result, tmp_path / "b.json")
    assert len(read_set(tmp_path).runs) == 2
    assert recorded(result).facts == result_facts(result)


def result_facts(result: Result) -> Mapping[str, object]:
    written = result.to_json()
    return {
        **written["machine"],
        "against": written["system"],
        **{
            f"{part}.{name}": value
            for part in ("load", "turn", "trouble")
            for name, value in written["scenario"][part].items()
        },
    }


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1}', '{"format": 2, "laps": {"x": {}}}'])
def test_a_file_that_is_not_a_result_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResult, match=r"a\.json"):
        read_set(file)


def test_a_missing_file_an_empty_folder_and_a_mixture_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableResult, match="cannot be read"):
        read_set(tmp_path / "nothing.json")
    with pytest.raises(UnreadableResult, match="has no results"):
        read_set(tmp_path)
    result = found(MET)
    write(result, tmp_path / "a.json")
    write(evolve(result, scenario=evolve(result.scenario, name="other")), tmp_path / "b.json")
    with pytest.raises(UnreadableResult, match="different scenarios"):
        read_set(tmp_path)


def test_a_comparison_lists_what_else_differs() -> None:
    result = found(MET)
    before = recorded(result)
    assert "before," not in compared(before, before).text().partition("1 after")[2]
    machine = evolve(result.machine, system="Linux 6.0")
    scenario = evolve(result.scenario, name="other", load=evolve(result.scenario.load, sessions=9))
    told = compared(before, recorded(evolve(result, machine=machine, scenario=scenario, quick=True))).text()
    assert told.startswith("These are different scenarios: <mine> and other.")
    assert "load.sessions: 2 before, 9 after" in told
    assert f"system: {result.machine.system} before, Linux 6.0 after" in told
    assert "a smoke test, not a measurement." in told
