"""Script of the analyst: searches and simulates on request, and otherwise explains or reports.

`footlights.modes` detects a request for work. Work is done one tool at a time, and then summarized from the tool
results. Without tools the analyst says what it could do. The same input in the same world always gives the same answer,
which never repeats the player's text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from footlights.models.mode_fact import NAME
from footlights.modes import Activity, ModeHints, detect
from footlights_actors.models.scripted import Call, Line, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from footlights.events import JsonValue
    from footlights.models.model import Prompt, ToolExchange

Arguments: TypeAlias = "Mapping[str, JsonValue]"


def analyst(prompt: Prompt) -> Iterable[Line]:
    """The script: see `footlights_actors.ScriptedModel`."""
    words = prompt.user.casefold()
    activities = detect(prompt.user, _HINTS).activities if re.search(_WORK, words) else ()
    steps = list(dict.fromkeys(_STEPS[each] for each in activities if each in _STEPS))
    if not steps:
        facts = [line for line in prompt.system.splitlines()[1:] if line.strip() and not line.startswith(f"{NAME}: ")]
        return [Say(_OFFER if activities else _answer(words, facts))]
    offered = {offer.name for offer in prompt.tools}
    if not all(step.tool_name in offered for step in steps):
        return [Say(f"I could {_listed([step.could for step in steps])}. In this turn I may not, so nothing was run.")]
    done = prompt.exchanges
    if len(done) < len(steps):
        step = steps[len(done)]
        return [Call(step.tool_name, step.arguments(words))]
    return [Say(" ".join(step.told(exchange) for step, exchange in zip(steps, done, strict=True)))]


# -- without tools


def _answer(words: str, facts: Sequence[str]) -> str:
    """The named facts, or the definition of a known word, or all facts."""
    asked_for = [fact for fact in facts if re.search(rf"\b{_begin_of_name(fact)}", words)]
    if asked_for:
        return f"{'. '.join(asked_for)}."
    meant = next((meaning for pattern, meaning in _MEANINGS.items() if re.search(pattern, words)), None)
    return meant or (f"{'. '.join(facts)}." if facts else _OFFER)


def _begin_of_name(fact: str) -> str:
    return re.escape(fact.casefold().split()[0].rstrip("s:"))


_OFFER = "I can search the documents, and simulate a cohort. Tell me which, and of what."
_MEANINGS = {
    r"\bwhat (can|do) you\b": _OFFER,
    r"\bcohorts?\b": "A cohort is a group of people who begin together and are followed for the same number of weeks.",
    r"\bsimulat(e|es|ed|ing|ion|ions)\b": "A simulation follows invented people week by week. The same seed gives the "
    "same people, and it is no evidence about real ones.",
    r"\badherence\b": "Adherence is the share of people who do in a week what they set out to do. Those who left count "
    "as not adherent.",
    r"\bonboarding\b": "Onboarding shows people how to begin. It helps most in the first weeks.",
    r"\breminders?\b": "A reminder helps a little, for as long as people notice it.",
}


# -- with tools


@frozen
class Step:
    tool_name: str
    could: str
    arguments: Callable[[str], Arguments]
    closing: Callable[[Mapping[str, JsonValue]], str]

    def told(self, exchange: ToolExchange) -> str:
        if exchange.error is not None:
            return f"I could not {self.could}. {exchange.error}"
        return self.closing(cast("Mapping[str, JsonValue]", exchange.value))


def _query(words: str) -> Arguments:
    """The input from the request for a search on, without the words of the request itself."""
    asking = [part for part in _PARTS.split(words) if re.match(_SEARCH, part)]
    return {"query": " ".join(_WORD.findall(_ASKING.sub(" ", "".join(asking) or words)))}


def _cohort(words: str) -> Arguments:
    # The part that requests a search does not describe the simulation.
    words = "".join(part for part in _PARTS.split(words) if not re.match(_SEARCH, part))
    numbers = {name: re.search(pattern, words) for name, pattern in _NUMBERS.items()}
    arguments: dict[str, JsonValue] = {name: _number(found[1]) for name, found in numbers.items() if found is not None}
    without = [kind for kind, word in _HELP.items() if re.search(rf"\b(no|without)( any)? {word}\b", words)]
    wanted = [kind for kind, word in _HELP.items() if re.search(rf"\b{word}\b", words) and kind not in without]
    for kind in _HELP:
        # An input that names one kind of help means only that one; without a name both are meant.
        if kind in without or (wanted and kind not in wanted):
            arguments[kind] = False
    return arguments


def _number(said: str) -> int:
    """The number in the input. A very long one is cut, and still exceeds the limits of every tool."""
    said = said.rstrip(",;:.)")
    digits = re.sub(_BETWEEN_THOUSANDS, "", said) if _IN_THOUSANDS.fullmatch(said) else said
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0") if digits.isdecimal() else _UNREADABLE


def _found(result: Mapping[str, JsonValue]) -> str:
    hits = cast("list[dict[str, str]]", result["hits"])
    if not hits:
        return f"None of the {result['documents']} documents speaks of that."
    titles = _listed([hit["title"] for hit in hits])
    return f"I found {len(hits)} of {result['documents']} documents: {titles}. The first says: {hits[0]['snippet']}"


def _simulated(result: Mapping[str, JsonValue]) -> str:
    return f"{result['summary']} The table is kept as soon as this turn is committed."


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


_SEARCH = r"\b(?:search|find|look (?:up|for|into|through)|retrieve|consult)\b"
_WORK = (
    rf"{_SEARCH}|\b(?:documents?|repositor|archive|simulat|cohort|adherence|dropout|arms?\b|plot|run|evaluat|analy[sz]e"
    r"|compare|generate|do it|go ahead)"
)
"""What a request for its work has in it, whatever else it says."""
_PARTS = re.compile(rf"(?={_SEARCH}|\b(?:simulate|run|generate|evaluate)\b)")
_ASKING = re.compile(rf"{_SEARCH}|\b(?:please|the|documents?|for|and|then)\b")
_WORD = re.compile(r"\w[\w'-]*")
_HELP = {"onboarding": "onboarding", "reminders": "reminders?"}
_UNREADABLE = -1
"""An invalid number, which the tool refuses with its limits, so that no other number is simulated instead."""
_MOST_DIGITS = 15
_BETWEEN_THOUSANDS = r"[,'\u2019_ \u00a0\u202f]"
_IN_THOUSANDS = re.compile(rf"\d{{1,3}}(?:{_BETWEEN_THOUSANDS}\d{{3}}){{1,6}}")
_IN_DIGITS = r"(?=[^\s\d(\"]*\d)[^\s(\"]+"
_IN_WORDS = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|dozens?|hundreds?|thousands?|millions?)"
)
_NUMBER = rf"(?<![^\s(\"])(?<!seed )({_IN_THOUSANDS.pattern}|{_IN_DIGITS}?|{_IN_WORDS})"
"""Any word in the place of a number, readable or not. Matching takes linear time."""
_NUMBERS = {
    "people": rf"{_NUMBER} (?:simulated |synthetic )?(?:people|persons|users|guests|members|participants|patients)\b",
    "weeks": rf"{_NUMBER}[ -]weeks?\b",
    "seed": rf"\bseed ({_IN_DIGITS})",
}
_SEARCHES = Step("search_documents", "search the documents", _query, _found)
_SIMULATES = Step("simulate_cohort", "simulate a cohort", _cohort, _simulated)
_STEPS: Mapping[str, Step] = {
    Activity.SEARCH: _SEARCHES,
    Activity.SIMULATE: _SIMULATES,
    Activity.EVALUATE: _SIMULATES,
    Activity.GENERATE: _SIMULATES,
}
_HINTS = ModeHints(tools={step.tool_name: step.could for step in (_SEARCHES, _SIMULATES)})
