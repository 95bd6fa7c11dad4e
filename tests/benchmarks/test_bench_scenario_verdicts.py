"""Verdicts: what a run says about a target, with how much certainty, and when it says nothing."""

from __future__ import annotations

from math import isclose
from random import Random
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from attrs import evolve

from footlights_bench.scenario.definition import Metric, Share, Target
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.intervals import of_percentile, of_share, ranks
from footlights_bench.scenario.report.ci import junit, markdown
from footlights_bench.scenario.report.text import table
from footlights_bench.scenario.verdict import Standing
from tests.benchmarks.test_bench_scenario_report import CHECKED, found

if TYPE_CHECKING:
    from footlights_bench.scenario.self_check import Checked

P99 = Target(name="tail", metric=Metric.FINAL, percentile=99, at_most_ms=1_000)
P50 = Target(name="middle", metric=Metric.FINAL, percentile=50, at_most_ms=1_000)


def late(seconds: float) -> Histogram:
    histogram = Histogram()
    histogram.record(seconds)
    return histogram


# -- certainty


def test_few_turns_leave_a_high_percentile_undecided() -> None:
    result = found(P99, seconds=[0.5] * 6)
    assert [each.standing for each in result.verdicts] == [Standing.UNDECIDED]
    assert result.exit_code() == 1
    assert result.exit_code(allow_undecided=True) == 0
    assert "Too few turns to decide: tail." in table(result)
    assert found(P99, seconds=[0.5] * 400).exit_code() == 0


def test_a_bound_inside_the_interval_is_undecided_and_one_outside_is_not() -> None:
    around = [0.9] * 50 + [1.1] * 50
    assert found(P50, seconds=around).verdicts[0].standing is Standing.UNDECIDED
    assert found(P50, seconds=[0.9] * 80 + [1.1] * 20).verdicts[0].standing is Standing.MET
    assert found(P50, seconds=[0.9] * 20 + [1.1] * 80).verdicts[0].standing is Standing.MISSED


@pytest.mark.parametrize(("turns", "share"), [(368, 0.99), (6, 0.5), (36, 0.9), (72, 0.95)])
def test_a_percentile_has_both_ends_from_so_many_turns_on(turns: int, share: float) -> None:
    assert None not in ranks(turns, share)
    assert None in ranks(turns - 1, share)


def test_the_interval_holds_the_true_percentile_as_often_as_it_says() -> None:
    chance, held = Random(1), 0
    for _ in range(300):
        histogram = Histogram()
        for _ in range(400):
            histogram.record(chance.random())
        sure = of_percentile(histogram, 90)
        held += sure.low <= 0.9 <= sure.high
    assert held >= 279, "95 % of 300 are 285; fewer than 279 would be chance in one case of a hundred"


def test_the_approximation_for_many_turns_agrees_with_the_exact_ranks() -> None:
    exact, near = ranks(20_000, 0.99), ranks(20_001, 0.99)
    for one, other in zip(exact, near, strict=True):
        assert one is not None
        assert other is not None
        assert abs(one - other) <= 2


def test_a_share_has_the_interval_of_wilson() -> None:
    assert isclose(of_share(0, 100).high, 0.037, abs_tol=5e-4)
    assert (of_share(0, 0).low, of_share(0, 0).high) == (0.0, 1.0)
    assert of_share(50, 100).low < 0.5 < of_share(50, 100).high


# -- shares


def test_turns_that_failed_never_pass_unless_a_target_allows_them() -> None:
    result = evolve(found(P50, seconds=[0.5] * 400), outcomes={"final": 399, "busy": 1}, failed=1)
    assert result.exit_code() == 1
    some = Target(name="few", metric=Share.FAILED_SHARE, at_most_share=0.05)
    allowed = evolve(result, scenario=evolve(result.scenario, targets=[P50, some]))
    assert allowed.exit_code() == 0
    none = evolve(some, at_most_share=0.0)
    assert evolve(result, scenario=evolve(result.scenario, targets=[none])).exit_code() == 1


@pytest.mark.parametrize(("slow", "standing"), [(0, Standing.MET), (80, Standing.MISSED)])
def test_goodput_is_the_rate_of_turns_that_met_every_bound(slow: int, standing: Standing) -> None:
    result = found(seconds=[0.5] * 100)
    goodput = Target(name="good", metric=Share.GOODPUT, at_least_per_second=8.0)
    good = [(100 - slow) // 10] * 10
    result = evolve(result, good=good, scenario=evolve(result.scenario, targets=[goodput]))
    (verdict,) = result.verdicts
    assert verdict.measured == (100 - slow) / 10
    assert verdict.standing is standing
    assert "≥ 8/s" in table(result)


# -- the harness


@pytest.mark.parametrize(
    ("checked", "why"),
    [
        (evolve(CHECKED, cpu=0.71), "used 71 % of a core"),
        (evolve(CHECKED, never_begun=3), "3 turns were never begun"),
        (
            evolve(CHECKED, lateness=late(0.101)),
            "101 ms late at p50, which is more than a tenth of the bound",
        ),
    ],
)
def test_a_run_in_which_the_harness_was_the_bottleneck_is_invalid(checked: Checked, why: str) -> None:
    result = found(P50, seconds=[0.5] * 400, checked=checked)
    assert result.exit_code() == 3
    assert why in table(result)
    assert "INVALID" in table(result)
    assert result.to_json()["harness"]["invalid"] is True
    shared = found(P50, seconds=[0.5] * 400, checked=evolve(checked, shares_loop=True))
    assert shared.exit_code() == 0, "in process the two cannot be told apart, so it is only said"
    assert f"beware: {shared.warnings[0]}" in table(shared)


def test_a_quiet_harness_is_not_mentioned() -> None:
    assert found(P50, seconds=[0.5] * 400).warnings == []


# -- for a CI


def test_junit_has_a_case_for_each_target_and_one_for_the_run() -> None:
    suite = ElementTree.fromstring(junit(found(P50, P99, seconds=[0.5] * 100)))
    assert {case.attrib["name"]: case.find("failure") is None for case in suite} == {
        "the run": True,
        "middle: final p50": True,
        "tail: final p99": False,
    }
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("3", "1")
    broken = evolve(found(P50), failed=2, outcomes={"final": 8, "busy": 2})
    assert ElementTree.fromstring(junit(broken)).find("testcase/failure") is not None
    assert ElementTree.fromstring(junit(found(P50, quick=True))).find("testcase/skipped") is not None


def test_markdown_has_the_tables_and_the_comparison() -> None:
    text = markdown(found(P50, seconds=[0.5] * 100), "final p50  slower")
    assert text.startswith("### <mine>\n\n2 players")
    assert "| middle: final p50 | ≤ 1,000 | 500 | 500 to 500 | yes |" in text
    assert "```text\nfinal p50  slower\n```" in text
