"""Budget tier of a dialogue: chosen by mode and length, and lowered to what the budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.models.budget import BudgetTier
from footlights_transports.views.kgent.pure.messages import DialogueMode

if TYPE_CHECKING:
    from footlights.models.budget import BudgetConfig

FEW_WORDS = 3

_LARGEST_FIRST = (BudgetTier.DEEP, BudgetTier.DIALOGUE, BudgetTier.WHISPER)


def standard_tier(message: str, mode: DialogueMode) -> BudgetTier:
    """DEEP to explore, WHISPER for up to three words, otherwise DIALOGUE."""
    if mode is DialogueMode.EXPLORE:
        return BudgetTier.DEEP
    return BudgetTier.WHISPER if len(message.split()) <= FEW_WORDS else BudgetTier.DIALOGUE


def affordable(wanted: BudgetTier, budget: BudgetConfig, tokens: float, entropy: float) -> BudgetTier | None:
    """The wanted tier, or the next smaller one that the budget affords; None if it does not afford a whisper.

    DORMANT costs nothing.
    """
    if wanted is BudgetTier.DORMANT:
        return wanted
    for tier in _LARGEST_FIRST[_LARGEST_FIRST.index(wanted) :]:
        if budget.max_for_tier(tier) <= tokens and budget.entropy_for_tier(tier) <= entropy:
            return tier
    return None
