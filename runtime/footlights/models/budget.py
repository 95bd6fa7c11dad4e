"""Output budget of a turn, by tier."""

from __future__ import annotations

from enum import StrEnum

from attrs import fields, frozen

from footlights.errors import RegistrationError


class BudgetTier(StrEnum):
    """Tier of a turn's output budget."""

    DORMANT = "dormant"
    """No output."""
    WHISPER = "whisper"
    """A sentence or two."""
    DIALOGUE = "dialogue"
    """A normal answer."""
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
    """Maximum output tokens of a turn by tier, over all its rounds. Raises `RegistrationError` for a negative number.

    The prompt is limited by the model's context window instead.
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
        """Maximum output tokens of a turn of this tier."""
        tokens: int = getattr(self, f"{tier.value}_max")
        return tokens

    def entropy_for_tier(self, tier: BudgetTier) -> float:
        """Share of a dialogue's entropy that a turn of this tier takes."""
        return _ENTROPY[tier]
