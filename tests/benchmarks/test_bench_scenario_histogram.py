"""The histogram tells every latency to within a thousandth, and never less than it was."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights_bench.lib.figures import percentile
from footlights_bench.scenario.histogram import Histogram


def of(*latencies: float) -> Histogram:
    histogram = Histogram()
    for seconds in latencies:
        histogram.record(seconds)
    return histogram


@given(st.lists(st.integers(0, 10**10), min_size=1), st.sampled_from([0.1, 50, 90, 99, 99.9, 100]))
def test_each_percentile_is_a_measured_one_and_a_thousandth_more_at_most(micros: list[int], percent: float) -> None:
    exact = percentile(micros, percent)
    told = of(*(each / 1e6 for each in micros)).percentile(percent) * 1e6
    assert exact - 0.5 <= told <= exact * (1 + 1 / 1_024) + 0.5


def test_milliseconds_are_told_to_the_microsecond() -> None:
    assert of(0.001234).percentile(100) == pytest.approx(0.001234)


def test_nothing_has_no_percentile() -> None:
    assert math.isnan(Histogram().percentile(50))


def test_what_failed_is_slower_than_everything() -> None:
    histogram = of(0.001, 0.001)
    histogram.fail()
    assert (histogram.count, histogram.failed) == (3, 1)
    assert histogram.percentile(60) == pytest.approx(0.001)
    assert histogram.percentile(70) == math.inf


def test_a_clock_that_steps_back_is_no_negative_latency() -> None:
    assert of(-0.5).percentile(100) == 0


@given(st.lists(st.floats(0, 10_000)))
def test_its_counts_make_the_same_again(latencies: list[float]) -> None:
    histogram = of(*latencies)
    again = Histogram(histogram.counts, failed=2)
    assert list(again) == list(histogram)
    assert again.count == len(latencies) + 2
