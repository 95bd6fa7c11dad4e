"""Reports of a scenario: verdicts, table, JSON, page and comparison."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from attrs import evolve

from footlights.events import CommitFinal, CommitOutcome, EventType, InterruptReason
from footlights_bench.lib.machine import this_machine
from footlights_bench.scenario.definition import Load, Metric, Scenario, SystemKind, Target, Trouble, TurnShape
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.plan import Arrival
from footlights_bench.scenario.report.html import page
from footlights_bench.scenario.report.plots import percentile_curves, throughput, timelines
from footlights_bench.scenario.report.svg import linear_axis, log_axis, whole_axis
from footlights_bench.scenario.report.text import ms, table
from footlights_bench.scenario.result import result_of
from footlights_bench.scenario.run import Observed, Sample
from footlights_bench.scenario.self_check import Checked
from footlights_bench.scenario.systems.protocol import Depths
from footlights_bench.scenario.tally import SHOWN_OTHERS, SHOWN_SLOWEST, Marks, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.scenario.result import Result

LOAD = Load(sessions=2, turns_per_second=1.0, duration=10.0)
MET = Target(name="good", metric=Metric.FINAL, percentile=50, at_most_ms=1_000)
MISSED = Target(name="bad", metric=Metric.FINAL, percentile=100, at_most_ms=1_000)
TWICE = Target(name="twice", metric=Metric.FINAL, percentile=50, at_most_ratio=2.0)
NOWHERE = Target(name="none", metric=Metric.CANCEL, percentile=50, at_most_ms=1_000)


def turn(number: int, seconds: float) -> tuple[Arrival, Marks]:
    due = float(number)
    marks = Marks(accepted=due + 0.001, first_token=due + 0.01, ended=due + seconds, committed=due + seconds + 0.01)
    return Arrival(number=number, player=0, due=due), marks


AT = "2026-01-01T00:00:00+00:00"
CHECKED = Checked(cpu=0.1, pauses=Histogram(), lateness=Histogram(), never_begun=0, shares_loop=False)


def found(
    *targets: Target,
    seconds: Sequence[float] = (0.5,) * 9 + (2.0,),
    alone: float | None = None,
    quick: bool = False,
    checked: Checked = CHECKED,
) -> Result:
    tally = Tally(planned=len(seconds), warm_up=0.0, duration=10.0)
    for number, each in enumerate(seconds):
        tally.add(*turn(number, each))
    baseline = None
    if alone is not None:
        baseline = {Metric.FINAL: Histogram()}
        baseline[Metric.FINAL].record(alone)
    samples = [
        Sample(at=at, begun=5 * n, finished=4 * n, failed=0, events=9 * n, open_turns=n, depths=Depths(n, n, n))
        for n, at in enumerate((0.0, 5.0, 10.0, 10.0))
    ]
    scenario = Scenario(
        name="<mine>", about="A & B", load=LOAD, turn=TurnShape(), trouble=Trouble(), targets=list(targets)
    )
    lag = Histogram()
    lag.record(0.003)
    observed = Observed(
        tally=tally, samples=samples, lag=lag, baseline=baseline, gaps=3, turned_away=1, cuts=2, checked=checked
    )
    return result_of(scenario, SystemKind.NATIVE, "a stage", [(AT, observed)], this_machine(), quick=quick)


# -- targets


def test_a_target_that_is_met_is_no_failure() -> None:
    result = found(MET)
    assert [verdict.met for verdict in result.verdicts] == [True]
    assert result.exit_code() == 0


def test_one_missed_target_is_a_failure() -> None:
    result = found(MET, MISSED)
    assert [verdict.met for verdict in result.verdicts] == [True, False]
    assert result.verdicts[1].measured == pytest.approx(2_000, rel=2e-3)
    assert result.exit_code() == 1


@pytest.mark.parametrize(("alone", "met"), [(0.3, True), (0.2, False), (None, False)])
def test_a_ratio_is_to_the_median_of_turns_played_alone(alone: float | None, met: bool) -> None:
    (verdict,) = found(TWICE, alone=alone).verdicts
    assert verdict.met is met
    assert (verdict.bound is None) is (alone is None)
    assert ("≤ no baseline (2x alone)" in table(found(TWICE, alone=alone))) is (alone is None)


def test_a_target_without_measurements_is_missed() -> None:
    result = found(NOWHERE)
    assert result.exit_code() == 1
    assert table(result).splitlines()[-1].split()[-2:] == ["nothing", "NO"]


def test_a_quick_run_judges_nothing() -> None:
    result = found(MET, MISSED, quick=True)
    assert result.exit_code() == 0
    assert table(result).count("not judged") == 2


def test_too_many_failures_miss_every_bound() -> None:
    tally = Tally(planned=1, warm_up=0.0)
    tally.add(Arrival(number=0, player=0, due=0.0), Marks())
    scenario = evolve(found(MET).scenario, targets=[MET])
    result = result_of(
        scenario, SystemKind.STAGE, "a stage", [(AT, Observed(tally=tally))], this_machine(), quick=False
    )
    assert result.exit_code() == 1
    assert "1 failed (unfinished 1)" in table(result)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["verdicts"][0]["measured_ms"] is None
    ElementTree.fromstring(page(result))


# -- table


def test_the_table_shows_latencies_and_targets() -> None:
    lines = table(found(MET, MISSED)).splitlines()
    assert lines[0] == "<mine>: 2 players, 1 turns/s (poisson), 10 s"
    assert lines[1] == "against a stage: 10 turns, 0 failed, 0 before to warm up"
    assert lines[2].startswith("the harness began turns 3 ms late (p50), 3 (p99), 3 (max), used 10 % of a core")
    assert lines[4].split() == ["ms", "after", "it", "was", "due", "turns", "p50", "p90", "p99", "p99.9", "max"]
    assert lines[7].split() == [
        "final",
        "10",
        "500",
        "500",
        "2,001",
        "2,001",
        "2,001",
    ]  # to a thousandth, and never less
    assert lines[-1].split() == ["bad:", "final", "max", "≤", "1,000", "2,001", "2,001", "to", "2,001", "NO"]


def test_without_targets_there_is_no_table_of_them() -> None:
    assert "target" not in table(found())
    assert "targets" not in page(found())


@pytest.mark.parametrize(
    ("value", "text"), [(None, "failed"), (1234.5, "1,234"), (999.7, "1,000"), (12.34, "12.3"), (0.1234, "0.12")]
)
def test_milliseconds_have_three_significant_digits(value: float | None, text: str) -> None:
    assert ms(value) == text


def test_the_shown_turns_are_few_and_include_the_slowest() -> None:
    tally = Tally(planned=1_000, warm_up=0.0)
    for number in range(1_000):
        tally.add(*turn(number, 5.0 if number % 100 == 1 else 0.5))
    assert len(tally.shown) <= SHOWN_SLOWEST + SHOWN_OTHERS
    assert {record.number for record in tally.shown if record.latency == 5.0} == set(range(1, 1_000, 100))
    assert [record.number for record in tally.shown] == sorted(record.number for record in tally.shown)


def test_marks_record_the_first_token_and_ignore_other_events() -> None:
    from footlights.events import SCHEMA_V, ModelReady, StreamEvent, TokenDelta

    marks = Marks()
    for now, (kind, payload) in enumerate(
        [
            (EventType.MODEL_READY, ModelReady("m", 0, "hot")),  # type: ignore[arg-type]  # only its type matters
            (EventType.TOKEN_DELTA, TokenDelta("a", 0)),
            (EventType.TOKEN_DELTA, TokenDelta("b", 1)),
            (EventType.COMMIT_FINAL, CommitFinal("d", CommitOutcome.OK)),
        ]
    ):
        marks.see(StreamEvent(SCHEMA_V, "s", "t", now, 0, kind, payload), float(now))
    assert (marks.first_token, marks.committed, marks.ended) == (1.0, 3.0, None)


def test_a_turn_without_tokens_has_no_first_token() -> None:
    tally = Tally(planned=1, warm_up=0.0)
    arrival, marks = turn(0, 1.0)
    marks.first_token = None
    tally.add(arrival, marks)
    assert (tally.histograms[Metric.FIRST_TOKEN].count, tally.histograms[Metric.FINAL].count) == (0, 1)


# -- the page


def test_the_page_is_well_formed_and_has_no_external_resources() -> None:
    text = page(found(MET, MISSED, TWICE, alone=0.4))
    tree = ElementTree.fromstring(text)
    svg = "{http://www.w3.org/1999/xhtml}svg"
    assert len(list(tree.iter(svg))) == 7
    names = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert names.isdisjoint({"script", "link", "img", "image", "iframe", "object", "use", "foreignObject"})
    attributes = {name for element in tree.iter() for name in element.attrib}
    assert attributes.isdisjoint({"href", "src", "{http://www.w3.org/1999/xlink}href", "onload"})
    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/1999/xhtml"]
    assert "url(" not in text
    assert "@import" not in text


def test_on_a_narrow_screen_plots_scroll_instead_of_shrinking() -> None:
    style = page(found()).partition("<style>")[2].partition("</style>")[0]
    assert "figure { margin: 2rem 0; overflow-x: auto; }" in style
    assert "svg { width: 100%; min-width: 40rem;" in style


def test_on_a_narrow_screen_tables_scroll_and_the_page_does_not() -> None:
    text = page(found(MET))
    assert ".wide { margin: 1rem 0; overflow-x: auto; }" in text
    assert text.count("<table>") == text.count('<div class="wide"><table>') == 3


def test_the_page_shows_failed_turns_even_if_all_targets_are_met() -> None:
    failing = evolve(found(MET), outcomes={"final": 8, "busy": 1, "unfinished": 1}, failed=2)
    assert "2 failed (busy 1, unfinished 1)," in page(failing)
    assert '<p class="verdict bad">All targets met, though 2 turns failed</p>' in page(failing)
    assert '<p class="verdict good">All targets met</p>' in page(found(MET))


def test_the_page_shows_what_the_table_shows() -> None:
    text = page(found(MET, MISSED))
    assert "&lt;mine&gt;" in text
    assert "A &amp; B" in text
    assert "1 of 2 targets missed" in text
    assert '<td>2,001 to 2,001</td><td class="bad">NO</td>' in text
    assert "All targets met" in page(found(MET))
    assert "a smoke test, not a measurement" in page(found(MET, quick=True))
    assert this_machine().python in text


def test_the_plots_show_every_metric_and_the_queues() -> None:
    text = page(found())
    for name in ("accept", "first_token", "final", "commit", "due", "over", "waiting events"):
        assert f">{name}</text>" in text
    assert ">cancel</text>" not in text
    blind = found()
    blind = evolve(blind, samples=[evolve(sample, depths=None) for sample in blind.samples])
    assert "waiting events" not in page(blind)


def test_targets_are_brackets_over_the_curves_of_their_metrics() -> None:
    assert page(found()).count("its target</title>") == 0
    assert "brackets mark targets" not in page(found())
    assert page(found(MET, MISSED, NOWHERE, TWICE)).count("final: its target</title>") == 2, "twice of nothing is none"
    assert "brackets mark targets" in page(found(MET))


def test_a_rate_is_averaged_over_a_twentieth_of_the_run() -> None:
    result = found()
    # A turn ends in every other sample: 5 a second, and not 0 and 10 by turns.
    samples = [evolve(result.samples[0], at=each / 10, finished=each // 2, begun=each) for each in range(80)]
    svg = throughput(samples, 0.0)
    _, over = re.findall(r'points="([^"]*)"', svg)
    assert len({point.partition(",")[2] for point in over.split()}) == 1


def test_the_warm_up_is_shaded() -> None:
    result = found()
    assert ">warm-up</text>" not in page(result)
    warm = evolve(result, scenario=evolve(result.scenario, load=evolve(LOAD, warm_up=2.0)))
    assert page(warm).count(">warm-up</text>") == 5


def test_without_losses_a_sentence_replaces_the_plot() -> None:
    result = found()
    lossless = evolve(result, samples=[evolve(each, depths=Depths(1, 1, 0)) for each in result.samples])
    assert "No event was dropped, and no turn failed." in page(lossless)
    assert ">events dropped</text>" not in page(lossless)
    assert ">events dropped</text>" in page(result)


def test_drops_of_a_remote_server_are_reported_as_unknown() -> None:
    result = found()
    blind = evolve(result, samples=[evolve(each, depths=None) for each in result.samples])
    assert "No turn failed. Events that the server dropped cannot be seen from outside." in page(blind)
    failing = evolve(blind, samples=[evolve(each, failed=place) for place, each in enumerate(blind.samples)])
    assert ">turns failed</text>" in page(failing)
    assert "dropped</text>" not in page(failing)


def test_cuts_and_stalled_clients_are_shown_if_the_scenario_has_them() -> None:
    result = found()
    assert "connections were cut" not in page(result)
    assert "stalled clients" not in page(result)
    trouble = Trouble(cut_share=0.5, stalled_clients=4)
    troubled = page(evolve(result, scenario=evolve(result.scenario, trouble=trouble)))
    assert "2 connections were cut." in troubled
    assert (
        "4 stalled clients missed 3 events, or received them joined; the server refused 1 of the clients." in troubled
    )


def test_a_canceled_turn_has_a_colour_of_its_own() -> None:
    tally = Tally(planned=2, warm_up=0.0)
    tally.add(*turn(0, 1.0))
    assert "until canceled" not in timelines(tally.shown)
    arrival, marks = turn(1, 0.5)
    marks.reason = InterruptReason.CANCELED
    tally.add(evolve(arrival, cancel_due=1.4), marks)
    svg = timelines(tally.shown)
    assert "until canceled" in svg
    assert svg.count('<rect class="stopped"') == svg.count('<rect class="speak"') == 1


def test_a_curve_has_a_limited_number_of_points() -> None:
    curves = percentile_curves({Metric.FINAL: spread(1.0, count=20_000)})
    (points,) = re.findall(r'points="([^"]*)"', curves)
    assert 50 < len(points.split()) < 200


def test_a_curve_is_level_where_turns_have_the_same_latency() -> None:
    histogram = Histogram()
    for seconds in (0.45, 0.9, 2.5):
        for _ in range(20):
            histogram.record(seconds)
    (points,) = re.findall(r'points="([^"]*)"', percentile_curves({Metric.FINAL: histogram}))
    across, down = zip(*(point.split(",") for point in points.split()), strict=True)
    # Each from the middle of its first turn's place to that of its last: a slope in between would be no percentile.
    assert len(set(across)) == 6
    assert [down[place] == down[place + 1] for place in range(5)] == [True, False, True, False, True]


def test_a_failed_turn_is_marked_in_the_timelines() -> None:
    tally = Tally(planned=2, warm_up=0.0)
    tally.add(*turn(0, 1.0))
    tally.add(Arrival(number=1, player=3, due=1.0), Marks(accepted=1.5), "stalled")
    svg = timelines(tally.shown)
    assert svg.count('<g class="turn">') == svg.count('<g class="turn failed">') == 1
    assert "turn 1 of player 3, due at 1.00 s: stalled" in svg


def test_axes_end_at_round_numbers_or_at_the_highest_value() -> None:
    assert [tick for _, tick in linear_axis("", [11.0]).ticks] == ["0", "2", "4", "6", "8", "10", "12"]
    assert linear_axis("", [0.0]).high == 1.0
    assert [tick for _, tick in whole_axis("", [11.0]).ticks] == ["0", "2", "4", "6", "8", "10"]
    assert whole_axis("", [11.0]).high == 11.0
    assert whole_axis("", []).high == 1.0
    assert [tick for _, tick in log_axis("", [-1.5, 0.2]).ticks] == ["0.01", "0.1", "1", "10"]
    assert log_axis("", []).high == 1


# -- JSON


def test_the_json_has_exactly_these_parts() -> None:
    written = json.loads(json.dumps(found(MET, TWICE, alone=0.3).to_json(), allow_nan=False))
    assert written["format"] == 2, "a part that is gone or means something else is another format"
    assert " ".join(written) == (
        "format bench scenario system kind quick at aborted machine turns outcomes troubles failed in_warm_up goodput"
        " gaps turned_away cuts latencies parts baseline lag harness verdicts laps samples timelines"
    )
    assert " ".join(written["scenario"]) == "name about load turn trouble targets"
    assert " ".join(written["machine"]) == (
        "system architecture processor cpus load_average load_average_after python trio footlights"
    )
    assert list(written["latencies"]) == ["accept", "first_token", "final", "commit"]
    for histogram in (*written["latencies"].values(), *written["baseline"].values(), written["lag"]):
        assert list(histogram) == ["count", "failed", "ms", "counts"]
        assert list(histogram["ms"]) == ["p50", "p90", "p99", "p99.9", "max"]
    assert " ".join(written["verdicts"][0]) == "target turns measured_ms interval bound_ms met standing"
    assert " ".join(written["harness"]) == "invalid warnings laps"
    assert " ".join(written["harness"]["laps"][0]) == "cpu never_begun pauses lateness"
    assert " ".join(written["laps"][0]) == "at turns failed latencies parts"
    assert " ".join(written["samples"][0]) == "at begun finished failed events open_turns depths"
    assert " ".join(written["samples"][0]["depths"]) == "events_waiting commits_waiting dropped"
    assert " ".join(written["timelines"][0]) == ("number player due accepted first_token ended committed outcome")


def test_the_json_has_the_settings_that_applied_and_no_others() -> None:
    scenario = found(MET).to_json()["scenario"]
    assert "tokens" not in scenario["turn"], "a server decides how long its turns are"
    assert scenario["load"]["batch"] is False
    assert scenario["turn"]["says"] == [{"text": "Go on.", "weight": 1.0}]


def spread(middle: float, count: int = 1_000) -> Histogram:
    histogram = Histogram()
    for number in range(count):
        histogram.record(middle * (0.5 + number / count))
    return histogram
