"""Features of a message: its words, pairs of words, letters, shape and length, and its last clause again."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from footlights.modes.lexicon import COURTESY, class_of
from footlights.modes.words import COMMA, MARKS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_LONG = 16
"""A sentence of more words is read clause by clause."""
_SHORT = 4
"""A clause of fewer words belongs to the next one."""
_MOST_LETTERS = 24


def clauses(sentence: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The clauses of a long sentence, or a short one as it is."""
    if len(sentence) <= _LONG:
        yield tuple(sentence)
        return
    clause: list[str] = []
    for word in sentence:
        if word == COMMA and len(clause) >= _SHORT:
            yield tuple(clause)
            clause = []
        else:
            clause.append(word)
    if clause:
        yield tuple(clause)


def features(said: Sequence[Sequence[str]], common: Collection[str]) -> set[str]:
    """The names of the features of these clauses. `common` are words that occur whatever the subject is.

    `word`, `two words`: what is said, `^` and `$` being the ends. `~you &do *ed`: the same with the class of every
    other word, or its end behind a star. `%you &do *`: without the end. `@could me`: how a clause begins, and a common
    word of it. `!&do the`: how it begins after courtesies. `+<sim`: the letters of a word that is not common. `^+simu`:
    the letters at the beginning. `=7`: the length of a clause. `#2`: how many clauses. What begins with `.` is said in
    the last clause.
    """
    found = {f"#{min(len(said), 4)}"}
    for clause in said:
        words, shape = ["^", *clause, "$"], ["^", *(_shape(word, common) for word in clause), "$"]
        begins = _begins(clause, common)
        found |= _pairs(words, shape) | begins
        found.update(
            [f"@{shape[1][:1] if shape[1][0] == '*' else shape[1]} {word}" for word in shape if word[0] != "*"]
        )
        names = [word for word in clause if word not in MARKS]
        for word in names:
            if word not in common:
                letters = f"<{word[:_MOST_LETTERS]}>"
                for size in (3, 4, 5):
                    found.update(["+" + letters[at : at + size] for at in range(len(letters) - size + 1)])
        found.add(f"={min(len(names), 12)}")
        if names and names[0] not in common:
            found.add(f"^+{names[0][:4]}")
        if clause is said[-1]:
            found.update(["." + each for each in _pairs(words, shape) | begins])
    return found


def _pairs(words: Sequence[str], shape: Sequence[str]) -> set[str]:
    found = {*words, *map(" ".join, pairwise(words))}
    bare = ["*" if each[0] == "*" else each for each in shape]
    for mark, shown in (("~", shape), ("%", bare)):
        for size in (1, 2, 3):
            found.update([mark + " ".join(shown[place : place + size]) for place in range(len(shown) - size + 1)])
    return found


def _begins(clause: Sequence[str], common: Collection[str]) -> set[str]:
    """How a clause begins after words of courtesy, and whether it asks."""
    left = (word for word in clause if word != COMMA and class_of(word) != COURTESY)
    first, second = (_kind(word, common) for word in (next(left, "$"), next(left, "$")))
    return {f"!{first}", f"!{first} {second}", f"!{first}{'?' * ('?' in clause)}"}


def _kind(word: str, common: Collection[str]) -> str:
    """The class of a word, or a common word itself."""
    known = class_of(word)
    if known:
        return f"&{known}"
    return word if word in common or word in MARKS or word == "$" else "*"


def _shape(word: str, common: Collection[str]) -> str:
    if word in common or word in MARKS:
        return word
    known = class_of(word)
    if known:
        return f"&{known}"
    return "*" + word[-2:] if len(word) > 3 else "*"
