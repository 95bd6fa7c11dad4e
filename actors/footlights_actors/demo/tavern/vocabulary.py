"""Vocabulary of the tavern: turns a player's line into plain words that patterns can match.

    plain("Gimme two bowls o' stw, plz!")   # "give me 2 bowl of stew , please !"

Contractions are written out, numbers become digits, and what the house has gets one name each: `ale`, `bread`, `stew`,
`wine`, `attic`, `gable`, `garden`, `chamber`, `room`, `lantern`, `rumour`, also if it is misspelt by one letter. Words
and punctuation are separated by single spaces. The tables of words are in `words.toml`.
"""

from __future__ import annotations

import re
from unicodedata import combining, normalize

from footlights_actors.demo.tavern.tables import by_word, replacements, tables

DISHES = ("ale", "bread", "stew", "wine")
ROOMS = ("attic", "gable", "garden", "chamber")


def plain(line: str) -> str:
    """The line in plain words, in the same order. What is named by a property gets its name: "a cheap drink" is ale."""
    text = normalize("NFC", line).casefold().replace("\u2019", "'").replace("\u2018", "'")
    text = _STRETCHED.sub(r"\1\1", text)
    for pattern, written_out in _CONTRACTIONS:
        text = pattern.sub(written_out, text)
    found: list[str] = _TOKEN.findall(text)
    for marks, meanings in _LANGUAGES:
        if not marks.isdisjoint(found):
            found = [meanings.get(word, word) for word in found]
    text = " ".join(map(_one_name, found))
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    text = _DOZENS.sub(lambda many: str(int(many[1]) * 12), " ".join(text.split()))
    return _RANKED_THING.sub(lambda ranked: _by_property(ranked, text), text)


def _by_property(ranked: re.Match[str], text: str) -> str:
    """The name of "something cheap", if the line says whether it is to be drunk, eaten or slept in."""
    uses = {match.lastgroup for match in _USES.finditer(ranked["use"] or text)}
    names = _RANKED[ranked["rank"].removesuffix("est")]
    return f"{ranked['article'] or 'a '}{names[uses.pop() or '']}" if len(uses) == 1 else ranked[0]


def _one_name(word: str) -> str:
    """The one name of a word of the house, or the word itself."""
    word = "".join(letter for letter in normalize("NFD", word) if not combining(letter))
    forms = (word, word.removesuffix("'s"), word.removesuffix("s") if len(word) > _SHORT - 1 else word)
    if word in _SPELT:
        return _SPELT[word]
    for form in forms:
        if form in _NAMES:
            return _NAMES[form]
    if not word.isalpha() or word in _NO_TYPOS or not 3 <= len(word) <= 9:
        return word.removesuffix("'s")
    return next(
        (_NAMES[name] for name in _MISSPELT if _is_misspelt(word, name) or _is_misspelt(word, f"{name}s")), word
    )


def _is_misspelt(word: str, name: str) -> bool:
    """Whether it is the name with one letter missing, doubled, swapped, or, in a long name, wrong or added."""
    is_long = len(name.removesuffix("s")) > _SHORT
    if word[0] != name[0] or abs(len(word) - len(name)) > 1:
        return False
    shorter = min(len(word), len(name))
    at = next((at for at in range(shorter) if word[at] != name[at]), shorter)
    if len(word) < len(name):
        return word[at:] == name[at + 1 :]
    if len(word) > len(name):
        is_doubled = word[at : at + 1] == word[at - 1 : at]
        return word[at + 1 :] == name[at:] and (is_doubled or is_long)
    is_swapped = word[at : at + 2] == name[at : at + 2][::-1] and word[at + 2 :] == name[at + 2 :]
    return is_swapped or (is_long and word[at + 1 :] == name[at + 1 :])


_SHORT = 4
"""Names of so few letters have too many neighbours: `wine` is not meant by wing, wind or wife."""

_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_TOKEN = re.compile(r"(?<![\w-])-\d+|\d+[.]\d+|\d+|[^\W\d_]+(?:'[^\W\d_]+)?|[.!?;,:+&\"*]")

_WORDS = tables("words")
_NAMES, _SPELT = by_word(_WORDS["names"]), by_word(_WORDS["spelt"])
_MISSPELT, _NO_TYPOS = _WORDS["misspelt"].split(), frozenset(_WORDS["no_typos"].split())
_LANGUAGES = [(frozenset(each["marks"].split()), by_word(each["words"])) for each in _WORDS["languages"]]
_CONTRACTIONS, _PHRASES = replacements(_WORDS["contractions"]), replacements(_WORDS["phrases"])
_RANKED_THING = re.compile(
    r"\b(?P<article>an? |the |your |some )?(?P<thing>something |anything |thing "
    r"|whatever is )?(?P<rank>cheap(?:est)?|finest)\b(?! room)"
    r"(?P<more>(?>(?: (?:thing|stuff|something|you have(?: got)?|you got))*))(?: (?:to )?(?P<use>drink|beverage"
    r"|booze|eat|food|meal|dish))?"
    r"(?: you have(?: got)?| you got)?(?(thing)|(?(use)|(?<! cheap)(?<! cheapest)(?<! finest)))"
    r"(?= (?:[.,!?;]|please|and|for|then|now)|$)"
)
_USES = re.compile(
    r"\b(?:(?P<drink>drink|beverage|booze|pour|parched|thirsty|thirst|throat|quench|swig|sip)"
    r"|(?P<eat>eat|food|meal|dish|hungry|starving|famished|hunger|belly|stomach|peckish|feed|bite)"
    r"|(?P<sleep>sleep|room|tired|weary|stay|night))\b"
)
_RANKED = {
    "cheap": {"drink": "ale", "eat": "bread", "sleep": "cheapest room"},
    "fin": {"drink": "wine", "eat": "stew", "sleep": "finest room"},
}
"""The cheap and the fine thing to drink, to eat and to sleep in."""
_DOZENS = re.compile(r"\b(\d{1,3}) dozen\b")
