"""Lexicon: classes of words that occur whatever the subject is, such as verbs of work, in seven languages.

`lexicon.txt` holds them. A class says what a word usually is, and never decides: its weight is learned.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COURTESY = "courtesy"
"""The class of words that stand before a request."""
ORDER = "do"
"""The class of verbs of work, as an order begins with them."""
_ENCLITICS = ("me", "te", "lo", "la", "los", "las", "nos", "le", "mi", "ci", "ti", "li")
"""Pronouns at the end of a verb, as in `reservame`."""


def class_of(word: str) -> str | None:
    """The class of a word, if it has one."""
    known = _classes()
    return next((known[form] for form in _forms(word) if form in known), None)


def _forms(word: str) -> Iterator[str]:
    yield word
    yield word.partition("-")[0]
    yield word.rpartition("'")[2]
    for ending in _ENCLITICS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            yield word.removesuffix(ending)


@cache
def _classes() -> Mapping[str, str]:
    """By word, its class."""
    known: dict[str, str] = {}
    name, endings = "", [""]
    for line in files("footlights.modes").joinpath("lexicon.txt").read_text(encoding="utf-8").splitlines():
        if line.endswith(":"):
            name, *given = line[:-1].split()
            endings = ["" if ending == "-" else ending for ending in given] or [""]
        elif not line.startswith("#"):
            for stem in line.split():
                for ending in endings:
                    known.setdefault(stem + ending, name)
    return known
