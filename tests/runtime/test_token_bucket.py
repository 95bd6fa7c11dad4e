"""A token bucket gives what it has, says truly when it has more, and can be in debt."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from footlights.token_bucket import TokenBucket


def test_a_bucket_is_used_up_and_comes_back_with_time() -> None:
    bucket = TokenBucket(100, 10.0, now=0.0)
    assert bucket.take(100, 0.0)
    assert not bucket.take(1, 0.0)
    assert bucket.seconds_until(25, 0.0) == 3
    assert not bucket.take(25, 2.0)
    assert bucket.take(25, 3.0)
    assert bucket.left(1_000.0) == 100


def test_the_seconds_until_there_is_enough_are_true_to_the_second() -> None:
    for amount in range(1, 101):
        bucket = TokenBucket(100, 60.0, now=5.0)
        bucket.take(100, 5.0)
        seconds = bucket.seconds_until(amount, 5.0)
        assert not TokenBucket.take(bucket, amount, 5.0 + seconds - 1)
        assert bucket.take(amount, 5.0 + seconds)


@pytest.mark.parametrize("seconds", [7.0, 60.0, 600.0, 3_600.0])
def test_of_what_comes_back_slowly_the_seconds_are_true_too(seconds: float) -> None:
    bucket = TokenBucket(1, seconds, now=1e5)
    bucket.take(1, 1e5)
    for passed in range(int(seconds)):
        assert bucket.seconds_until(1, 1e5 + passed) == seconds - passed


@given(
    st.sampled_from([10, 777, 40_000]),
    st.sampled_from([3.7, 7.3, 600.0]),
    st.floats(0, 1e6),
    st.floats(0, 1.5),
    st.lists(st.floats(0, 1), max_size=3),
)
@example(10, 3.7, 38727.177787704946, 1.0, [0.7])
def test_a_client_that_waits_for_the_stated_time_is_not_refused(
    capacity: int, seconds: float, now: float, used: float, looks: list[float]
) -> None:
    bucket = TokenBucket(capacity, seconds, now)
    bucket.settle(0, used * capacity, now)
    for later in looks:
        now += later
        bucket.left(now)
    if not bucket.take(10, now):
        assert bucket.take(10, now + bucket.seconds_until(10, now))


def test_what_was_taken_is_settled_with_what_was_used() -> None:
    bucket = TokenBucket(100, 10.0, now=0.0)
    bucket.take(80, 0.0)
    bucket.settle(80, 10, 0.0)
    assert bucket.left(0.0) == 90
    bucket.settle(0, 200, 0.0)
    assert bucket.left(0.0) == -110
    assert bucket.seconds_until(1_000, 0.0) == 21, "no more than all of it can be waited for"
    bucket.settle(500, 0, 0.0)
    assert bucket.left(0.0) == 100


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(100, 10.0, now=50.0)
    bucket.take(100, 50.0)
    assert bucket.left(0.0) == 0
    assert bucket.left(50.0) == 0
    assert bucket.seconds_until(0, 50.0) == 1


def test_a_debt_is_paid_with_time_and_no_earlier() -> None:
    bucket = TokenBucket(100, 10.0, now=0.0)
    assert bucket.seconds_in_debt(0.0) == 0
    bucket.settle(0, 125, 0.0)
    assert bucket.seconds_in_debt(0.0) == 2.5
    assert bucket.seconds_in_debt(1.0) == 1.5
    assert bucket.seconds_in_debt(2.5) == 0
