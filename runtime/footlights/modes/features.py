"""Features of a clause: its words, pairs and triples of words, its letters, its shape, and its length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.modes.words import COMMA, QUOTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_LONG = 16
"""A sentence of more words is read clause by clause."""
_SHORT = 4
"""A clause of fewer words belongs to the next one."""
_MOST_LETTERS = 24
MARKS = frozenset({COMMA, QUOTED, "?", "!"})


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


def features(clause: Sequence[str], common: Collection[str]) -> set[str]:
    """The names of the features of a clause. `common` are words that occur whatever the subject is.

    `word`, `two words`: what is said, `^` and `$` being the ends. `~a * of`: the same with every other word as a star.
    `+<sim`: the letters of a word that is not common. `^+simu`: how the clause begins. `=7`: its length.
    """
    found: set[str] = set()
    words = ["^", *clause, "$"]
    shape = ["^", *(each if each in common or each in MARKS else "*" for each in clause), "$"]
    for place, word in enumerate(words):
        found.add(word)
        found.update(" ".join(words[place : place + size]) for size in (2, 3))
        found.update("~" + " ".join(shape[place : place + size]) for size in (2, 3, 4))
    said = [word for word in clause if word not in MARKS]
    for word in said:
        if word not in common:
            letters = f"<{word[:_MOST_LETTERS]}>"
            for size in (3, 4, 5):
                found.update("+" + letters[at : at + size] for at in range(len(letters) - size + 1))
    found.add(f"={min(len(said), 12)}")
    if said and said[0] not in common:
        found.add(f"^+{said[0][:4]}")
    return found
