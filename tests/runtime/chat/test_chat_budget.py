"""What a dialogue may take: tiers, the time until there is enough again, templates, and the states of a flux."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from footlights import BudgetConfig, BudgetTier, IllegalTransition
from footlights.chat import (
    FLUX_TRANSITIONS,
    NO_TEMPLATES,
    STANDARD_TEMPLATES,
    Allowance,
    DialogueMode,
    FluxState,
    FluxStep,
    Templates,
    affordable,
    standard_tier,
)
from footlights.chat.flux_state import after

BUDGET = BudgetConfig()


@pytest.mark.parametrize(
    ("message", "mode", "tier"),
    [
        ("What should I focus on?", DialogueMode.REFLECT, BudgetTier.DIALOGUE),
        ("What should I do?", DialogueMode.ADVISE, BudgetTier.DIALOGUE),
        ("And now what?", DialogueMode.CHALLENGE, BudgetTier.WHISPER),
        ("Why?", DialogueMode.EXPLORE, BudgetTier.DEEP),
    ],
)
def test_a_message_is_worth_a_tier(message: str, mode: DialogueMode, tier: BudgetTier) -> None:
    assert standard_tier(message, mode) is tier


@pytest.mark.parametrize(
    ("wanted", "tokens", "entropy", "tier"),
    [
        (BudgetTier.DEEP, 8_000, 0.10, BudgetTier.DEEP),
        (BudgetTier.DEEP, 7_999, 0.10, BudgetTier.DIALOGUE),
        (BudgetTier.DEEP, 8_000, 0.079, BudgetTier.DIALOGUE),
        (BudgetTier.DIALOGUE, 8_000, 0.039, BudgetTier.WHISPER),
        (BudgetTier.DEEP, 100, 0.10, BudgetTier.WHISPER),
        (BudgetTier.WHISPER, 8_000, 0.10, BudgetTier.WHISPER),
        (BudgetTier.DIALOGUE, 99.9, 0.10, None),
        (BudgetTier.DORMANT, 0, 0.10, BudgetTier.DORMANT),
    ],
)
def test_a_tier_degrades_to_whisper_before_it_is_refused(
    wanted: BudgetTier, tokens: float, entropy: float, tier: BudgetTier | None
) -> None:
    assert affordable(wanted, BUDGET, tokens, entropy) is tier


def test_an_allowance_is_used_up_and_comes_back_with_time() -> None:
    allowance = Allowance(100, 10.0, now=0.0)
    assert allowance.take(100, 0.0)
    assert not allowance.take(1, 0.0)
    assert allowance.seconds_until(25, 0.0) == 3
    assert not allowance.take(25, 2.0)
    assert allowance.take(25, 3.0)
    assert allowance.left(1_000.0) == 100


def test_the_seconds_until_there_is_enough_are_true_to_the_second() -> None:
    for amount in range(1, 101):
        allowance = Allowance(100, 60.0, now=5.0)
        allowance.take(100, 5.0)
        seconds = allowance.seconds_until(amount, 5.0)
        assert not Allowance.take(allowance, amount, 5.0 + seconds - 1)
        assert allowance.take(amount, 5.0 + seconds)


@pytest.mark.parametrize("seconds", [7.0, 60.0, 600.0, 3_600.0])
def test_of_what_comes_back_slowly_the_seconds_are_true_too(seconds: float) -> None:
    allowance = Allowance(1, seconds, now=1e5)
    allowance.take(1, 1e5)
    for passed in range(int(seconds)):
        assert allowance.seconds_until(1, 1e5 + passed) == seconds - passed


@given(
    st.sampled_from([10, 777, 40_000]),
    st.sampled_from([3.7, 7.3, 600.0]),
    st.floats(0, 1e6),
    st.floats(0, 1.5),
    st.lists(st.floats(0, 1), max_size=3),
)
@example(10, 3.7, 38727.177787704946, 1.0, [0.7])
def test_whoever_waits_as_long_as_it_was_told_is_not_refused(
    capacity: int, seconds: float, now: float, used: float, looks: list[float]
) -> None:
    allowance = Allowance(capacity, seconds, now)
    allowance.settle(0, used * capacity, now)
    for later in looks:
        now += later
        allowance.left(now)
    if not allowance.take(10, now):
        assert allowance.take(10, now + allowance.seconds_until(10, now))


def test_what_was_taken_is_settled_with_what_was_used() -> None:
    allowance = Allowance(100, 10.0, now=0.0)
    allowance.take(80, 0.0)
    allowance.settle(80, 10, 0.0)
    assert allowance.left(0.0) == 90
    allowance.settle(0, 200, 0.0)
    assert allowance.left(0.0) == -110
    assert allowance.seconds_until(1_000, 0.0) == 21, "no more than all of it can be waited for"
    allowance.settle(500, 0, 0.0)
    assert allowance.left(0.0) == 100


def test_a_clock_that_goes_back_gives_nothing() -> None:
    allowance = Allowance(100, 10.0, now=50.0)
    allowance.take(100, 50.0)
    assert allowance.left(0.0) == 0
    assert allowance.left(50.0) == 0
    assert allowance.seconds_until(0, 50.0) == 1


def test_small_talk_is_answered_by_a_template_and_nothing_else_is() -> None:
    assert STANDARD_TEMPLATES.short_circuit("  Thank you! ") == "You are welcome."
    assert STANDARD_TEMPLATES.short_circuit("Thank you for the room") is None
    assert NO_TEMPLATES.short_circuit("hello") is None
    assert Templates({"Good EVENING.": "Yes."}).short_circuit("good evening") == "Yes."


def test_every_mode_has_a_fallback_but_where_there_are_no_templates() -> None:
    assert all(STANDARD_TEMPLATES.fallback(mode) for mode in DialogueMode)
    assert not any(NO_TEMPLATES.fallback(mode) for mode in DialogueMode)


def test_a_flux_goes_from_dormant_to_flowing_to_draining_to_stopped() -> None:
    states = [FluxState.DORMANT]
    for step in (FluxStep.BEGIN, FluxStep.DRAIN, FluxStep.RUN_DRY):
        states.append(after(states[-1], step))
    assert states == ["dormant", "flowing", "draining", "stopped"]


@pytest.mark.parametrize("state", FluxState)
@pytest.mark.parametrize("step", FluxStep)
def test_a_flux_takes_only_the_steps_of_its_table(state: FluxState, step: FluxStep) -> None:
    if step in FLUX_TRANSITIONS[state]:
        assert list(FluxState).index(after(state, step)) >= list(FluxState).index(state), "there is no way back"
    else:
        with pytest.raises(IllegalTransition):
            after(state, step)


def test_nothing_begins_once_a_flux_drains() -> None:
    assert [state for state in FluxState if FluxStep.BEGIN in FLUX_TRANSITIONS[state]] == ["dormant", "flowing"]
