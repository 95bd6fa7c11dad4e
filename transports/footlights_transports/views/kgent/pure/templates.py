"""Answer templates: for small talk, and as a fallback when no model can answer.

Every answer of a template is marked as one.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights_transports.views.kgent.pure.messages import DialogueMode

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = re.compile(r"[\w']+")


class TemplateUse(StrEnum):
    """Why a template answered."""

    SHORT_CIRCUIT = "short_circuit"
    """The message was small talk: no model was asked."""
    FALLBACK = "fallback"
    """No model could answer."""


def _normal(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _normalized(answers: Mapping[str, str]) -> Mapping[str, str]:
    return {_normal(said): answer for said, answer in answers.items()}


@frozen
class Templates:
    """Answers by message and by mode. Case and punctuation do not matter; every word does."""

    small_talk: Mapping[str, str] = field(factory=dict[str, str], converter=_normalized)
    """Whole messages, and the answer to each."""
    fallbacks: Mapping[DialogueMode, str] = field(factory=dict[DialogueMode, str])
    """The answer in each mode when no model can answer."""

    def short_circuit(self, message: str) -> str | None:
        """The answer to small talk; None if a model should be asked."""
        return self.small_talk.get(_normal(message))

    def fallback(self, mode: DialogueMode) -> str | None:
        """The answer when no model can; None if this mode has none."""
        return self.fallbacks.get(mode)


NO_TEMPLATES = Templates()

STANDARD_TEMPLATES = Templates(
    {
        "hello": "Hello. What is on your mind?",
        "hi": "Hello. What is on your mind?",
        "thanks": "You are welcome.",
        "thank you": "You are welcome.",
        "bye": "Goodbye.",
        "goodbye": "Goodbye.",
    },
    {
        DialogueMode.REFLECT: "I cannot think with you right now. What would you say to a friend who asked you this?",
        DialogueMode.ADVISE: "I cannot advise you right now. Please ask me again in a while.",
        DialogueMode.CHALLENGE: "I cannot argue right now. What is the best reason against it that you know?",
        DialogueMode.EXPLORE: "I cannot go further with you right now. Please ask me again in a while.",
    },
)
"""Small talk, and a fallback for every mode."""
