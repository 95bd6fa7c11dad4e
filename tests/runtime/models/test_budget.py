"""Budget tiers: the number of tokens that a turn may generate."""

from __future__ import annotations

import pytest

from footlights import BudgetConfig, BudgetTier, RegistrationError


@pytest.mark.shows("gateway-31", "gateway-32")
def test_the_tiers_are_these() -> None:
    budget = BudgetConfig()
    assert {tier: (budget.max_for_tier(tier), budget.entropy_for_tier(tier)) for tier in BudgetTier} == {
        BudgetTier.DORMANT: (0, 0.0),
        BudgetTier.WHISPER: (100, 0.001),
        BudgetTier.DIALOGUE: (4_000, 0.04),
        BudgetTier.DEEP: (8_000, 0.08),
    }


def test_a_host_may_set_its_own() -> None:
    assert BudgetConfig(whisper_max=7).max_for_tier(BudgetTier.WHISPER) == 7


def test_less_than_nothing_is_refused() -> None:
    with pytest.raises(RegistrationError, match="deep_max"):
        BudgetConfig(deep_max=-1)
