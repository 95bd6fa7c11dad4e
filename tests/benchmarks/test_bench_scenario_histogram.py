"""Histogram: at most a thousandth above the measured latency, and never below it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights_bench.lib.percentiles import percentile
from footlights_bench.scenario.histogram import Histogram


def of(*latencies: float) -> Histogram:
    histogram = Histogram()
    for seconds in latencies:
        histogram.record(seconds)
    return histogram


@given(st.lists(st.integers(0, 10**10), min_size=1), st.sampled_from([0.1, 50, 90, 99, 99.9, 100]))
def test_a_percentile_is_at_most_a_thousandth_more_than_the_measured_value(micros: list[int], percent: float) -> None:
    exact = percentile(micros, percent)
    told = of(*(each / 1e6 for each in micros)).percentile(percent) * 1e6
    assert exact - 0.5 <= told <= exact * (1 + 1 / 1_024) + 0.5


def test_small_latencies_are_exact_to_the_microsecond() -> None:
    assert of(0.001234).percentile(100) == pytest.approx(0.001234)


def test_an_empty_histogram_has_no_percentile() -> None:
    assert math.isnan(Histogram().percentile(50))


def test_a_failure_is_slower_than_every_latency() -> None:
    histogram = of(0.001, 0.001)
    histogram.fail()
    assert (histogram.count, histogram.failed) == (3, 1)
    assert histogram.percentile(60) == pytest.approx(0.001)
    assert histogram.percentile(70) == math.inf


def test_a_negative_latency_counts_as_zero() -> None:
    assert of(-0.5).percentile(100) == 0


@given(st.lists(st.floats(0, 10_000)))
def test_a_histogram_can_be_rebuilt_from_its_counts(latencies: list[float]) -> None:
    histogram = of(*latencies)
    again = Histogram(histogram.counts, failed=2)
    assert list(again) == list(histogram)
    assert again.count == len(latencies) + 2
