"""Which tier a dialogue gets: what its message is worth, or the most that can be afforded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.models.budget import BudgetTier
from footlights_transports.views.kgent.pure.messages import DialogueMode

if TYPE_CHECKING:
    from footlights.models.budget import BudgetConfig

FEW_WORDS = 3

_FROM_THE_MOST = (BudgetTier.DEEP, BudgetTier.DIALOGUE, BudgetTier.WHISPER)


def standard_tier(message: str, mode: DialogueMode) -> BudgetTier:
    """Exploring is worth a long answer, and a few words are worth a few."""
    if mode is DialogueMode.EXPLORE:
        return BudgetTier.DEEP
    return BudgetTier.WHISPER if len(message.split()) <= FEW_WORDS else BudgetTier.DIALOGUE


def affordable(wanted: BudgetTier, budget: BudgetConfig, tokens: float, entropy: float) -> BudgetTier | None:
    """The tier that is wanted, or the next smaller one that there is enough for; None if a whisper is too much.

    What is wanted may be DORMANT: that takes nothing.
    """
    if wanted is BudgetTier.DORMANT:
        return wanted
    for tier in _FROM_THE_MOST[_FROM_THE_MOST.index(wanted) :]:
        if budget.max_for_tier(tier) <= tokens and budget.entropy_for_tier(tier) <= entropy:
            return tier
    return None
