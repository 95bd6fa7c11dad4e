"""How much a model may say in one turn."""

from __future__ import annotations

from enum import StrEnum

from attrs import fields, frozen

from footlights.errors import RegistrationError


class BudgetTier(StrEnum):
    """How much a turn is worth."""

    DORMANT = "dormant"
    """Nothing is said."""
    WHISPER = "whisper"
    """A sentence or two."""
    DIALOGUE = "dialogue"
    """What an answer needs."""
    DEEP = "deep"
    """A long answer."""


_ENTROPY = {
    BudgetTier.DORMANT: 0.0,
    BudgetTier.WHISPER: 0.001,
    BudgetTier.DIALOGUE: 0.04,
    BudgetTier.DEEP: 0.08,
}


@frozen
class BudgetConfig:
    """The most tokens that a turn of each tier may say, all its rounds together.

    What it may be told is limited by the model's context window instead. Raises `RegistrationError` below 0.
    """

    dormant_max: int = 0
    whisper_max: int = 100
    dialogue_max: int = 4_000
    deep_max: int = 8_000

    def __attrs_post_init__(self) -> None:
        for tier in fields(type(self)):
            if getattr(self, tier.name) < 0:
                raise RegistrationError(f"{tier.name} must be at least 0.")

    def max_for_tier(self, tier: BudgetTier) -> int:
        """The most tokens that a turn of this tier may say."""
        tokens: int = getattr(self, f"{tier.value}_max")
        return tokens

    def entropy_for_tier(self, tier: BudgetTier) -> float:
        """What a turn of this tier takes from a dialogue's share of entropy."""
        return _ENTROPY[tier]
