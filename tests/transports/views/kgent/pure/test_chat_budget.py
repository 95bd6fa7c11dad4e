"""Tiers and templates."""

from __future__ import annotations

import pytest

from footlights import BudgetConfig, BudgetTier
from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.templates import NO_TEMPLATES, STANDARD_TEMPLATES, Templates
from footlights_transports.views.kgent.pure.tiers import affordable, standard_tier

BUDGET = BudgetConfig()


@pytest.mark.shows("gateway-91")
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


@pytest.mark.shows("gateway-101")
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


def test_templates_answer_only_small_talk() -> None:
    assert STANDARD_TEMPLATES.short_circuit("  Thank you! ") == "You are welcome."
    assert STANDARD_TEMPLATES.short_circuit("Thank you for the room") is None
    assert NO_TEMPLATES.short_circuit("hello") is None
    assert Templates({"Good EVENING.": "Yes."}).short_circuit("good evening") == "Yes."


def test_every_mode_has_a_fallback() -> None:
    assert all(STANDARD_TEMPLATES.fallback(mode) for mode in DialogueMode)
    assert not any(NO_TEMPLATES.fallback(mode) for mode in DialogueMode)
