"""Rules: what is certain about the words of a sentence, whatever they are about. They have the last word.

A rule takes out the part of a sentence that asks for nothing: a ban, what somebody else said, a question about a thing,
a mere thought. A veto forbids any execution, or takes back what was asked before it. They are for English.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.modes.words import MARKS, sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_BEGIN = r"(?:(?<=, )|(?<= but )|^)(?:(?:please|just|so|and|ok|okay|well|no|just) )*"
_END = r"(?:(?! , | but | and then | then ).)*"
_BANS = (
    r"(?:(?:do not|don't|dont|never|you (?:must|should|may|can)(?: not|n't)|let's not|try not to|"
    r"refrain from|avoid|hold off|"
    r"(?:there(?:'s| is) )?no need (?:to|for)|(?:you )?do(?: not|n't) (?:need|have) to|i (?:do not|don't) want you to|"
    r"i (?:would|'d) rather (?:you )?not|i'd rather (?:not|you did(?: not|n't))|instead of|rather than|"
    r"under no circumstances|"
    r"nobody asked you to)\b(?! (?:forget|hesitate|worry|bother|mind)))"
)
_ABOUT = (
    r"(?:(?:can|could|would|will) you )?(?:please )?(?:explain|define|describe|teach me|tell me (?:why|how to|about|a)|"
    r"what (?:is|are|was) (?:an?|your|the (?:difference|point|idea|purpose|meaning|best way))|"
    r"what's (?:an?|your|the (?:difference|point|idea|purpose|meaning|best way))|what (?:does|do) .* mean|"
    r"how (?:do|does|would|should) (?:i|you|we|one|people)|how (?:does|do) (?!(?:the|our|my) )|how to|why would|"
    r"why do people|is it (?:possible|wise|a good idea|hard|safe) to|"
    r"are you able to|are you allowed to|do you know how)\b"
)
_OTHERS = (
    r"(?:he|she|they|my (?!name)\w+|the (?:manual|note|sign|button|poster|label)) (?:\w+ )?"
    r"(?:said|says|say|told|tells|asked|asks|wants|wanted|reads|goes)\b"
)
_GREETING = r"(?:(?:hi|hello|hey|so|and|ok|please|but|in plain words) ?(?: , )?)"
_THOUGHTS = r"(?:what if|suppose|supposing|imagine|pretend|let's say|say i (?:were|was)|were i|if i were|if i asked)\b"

_RULES: Mapping[str, re.Pattern[str]] = {
    "rule.ban": re.compile(f"{_BEGIN}{_BANS}{_END}|(?:^| )without (?:actually |even )?\\w+ing\\b{_END}"),
    "rule.others": re.compile(_BEGIN + _OTHERS + _END),
    "rule.about": re.compile(f"^{_GREETING}*{_ABOUT}(?:(?! and then | then ).)*"),
    "rule.thought": re.compile(f"^{_THOUGHTS}.*"),
}
"""By id, the part of a sentence that asks for nothing."""

VETOES: Mapping[str, tuple[str, ...]] = {
    "veto.no_tools": (
        r"(?:no|without|without any|without using|without using any) tools?(?: calls?)?",
        r"(?:don't|do not) (?:use|call) (?:any )?tools",
        "no-tools?",
    ),
    "veto.run_nothing": (
        r"(?:don't|do not|dont) (?:run|execute|start|do) anything(?: yet)?",
        r"without (?:running|executing) anything",
        "no execution",
        "run nothing",
        "execute nothing",
    ),
    "veto.only_talk": (r"(?:just|only) (?:chat|talk)", "words only"),
}
"""By id, what forbids any execution, wherever it stands."""
_TAKEN_BACK = re.compile(
    r"(?:^| )(?:never mind|nevermind|forget (?:it|that)|scratch that|just kidding|(?:don't|do not) (?:actually )?"
    r"run it|"
    r"without (?:actually )?(?:running|executing) it|on second thoughts? no|not)"
    r"(?: (?:thanks|thank|you|please|then|now|,))*$"
)
"""What takes back the request before it, at the end of a sentence."""
_REFUSED = re.compile(
    r"(?=.*\b(?:no|nope|nah|not|don't|dont|second|stop)\b)(?:(?:no|nope|nah|not (?:now|yet|today)|"
    r"(?:don't|do not|dont)(?: do (?:it|that))?|on second thoughts?|stop|wait|thanks|thank you|please|"
    r"way|actually|sorry|,|!)"
    r"(?: |$))+"
)
"""A sentence that says nothing else takes back what was asked before."""
_FOLLOWING = re.compile(r"^(?:(?:,|and|but|then|so) )+")


@frozen(kw_only=True)
class ModeHints:
    """What a host adds to the judgement of a message. Raises `RegistrationError` for examples that have no words."""

    work: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    """Messages that ask for work. A message that is much like one of them does too."""
    chat: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    """Messages that ask for words only."""
    veto: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    """Words that forbid any execution, wherever they stand."""
    tools: Mapping[str, str] = field(factory=dict[str, str])
    """The agent's tools, and their descriptions. A request in their words is more likely work."""

    def __attrs_post_init__(self) -> None:
        for each in (*self.work, *self.chat, *self.veto):
            if not sentences(each):
                raise RegistrationError("An example or a veto must hold words.")

    @cached_property
    def told(self) -> frozenset[str]:
        """The words of the tools' names and descriptions."""
        texts = [part for name, about in self.tools.items() for part in (name.replace("_", " "), about)]
        return frozenset(word for text in texts for sentence in sentences(text) for word in sentence if word.isalnum())


NO_HINTS = ModeHints()


def vetoes_in(text: str, hints: ModeHints) -> Iterator[str]:
    """The ids of the vetoes in a sentence."""
    for name, forms in VETOES.items():
        if any(re.search(rf"(?<!\w){form}(?!\w)", text) for form in forms):
            yield name
    if any(f" {' '.join(words)} " in f" {text} " for each in hints.veto for words in sentences(each)):
        yield "veto.host"


def is_taken_back(text: str) -> bool:
    """Whether a sentence takes back what was asked before it."""
    return bool(_TAKEN_BACK.search(text) or _REFUSED.fullmatch(text))


def asking_part(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a sentence that may ask for something, and the ids of the rules that took out the others."""
    text, found = " ".join(words), list[str]()
    for name, pattern in _RULES.items():
        left = pattern.sub("", text, count=4)
        if left != text:
            found.append(name)
            text = _FOLLOWING.sub("", " ".join(left.split()))
    left_words = text.split()
    return (left_words if any(each not in MARKS for each in left_words) else []), found
