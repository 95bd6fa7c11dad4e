"""Conflict: two rules change the same place of the world in one turn.

Each rule saw the world before the turn, so the later change would undo the earlier one without a word: two rules that
each take 2 of 5 coins both write 3. A place is the same if it is equal to the other, or around it. Items that are added
at the end of an array (`/-`) go together; an item that is put in or taken out by its index moves those behind it, so it
changes the whole array. `test` changes nothing. One rule may change a place as often as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from footlights.authority.patch import INDEX, Misfit, path_to, tokens_of
from footlights.authority.world import find_in
from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority.patch import PatchOp


class RulesConflict(FootlightsError):
    """Two rules change the same place. The message names it, and so it is for developers only."""

    code = "rules_conflict"

    def __init__(self, first: str, second: str, place: list[str]) -> None:
        super().__init__(f"Both rules change the world at {path_to(*place)!r}.")
        self.first = first
        self.second = second


def check_conflicts(view: object, steps: Sequence[tuple[str, PatchOp]]) -> None:
    """Raises `RulesConflict`. `steps` are the changes, each with its rule, and `view` the world before them."""
    around: list[tuple[list[str], int]] = []
    for place, step in sorted(_places(view, steps)):  # what is inside of a place comes directly after it
        while around and place[: len(around[-1][0])] != around[-1][0]:
            around.pop()
        if around and steps[around[-1][1]][0] != steps[step][0]:
            first, second = sorted((around[-1][1], step))
            raise RulesConflict(steps[first][0], steps[second][0], place)
        around.append((place, step))


def _places(view: object, steps: Sequence[tuple[str, PatchOp]]) -> Iterator[tuple[list[str], int]]:
    for step, (_, op) in enumerate(steps):
        for pointer in (op.path, op.from_) if op.op == "move" else () if op.op == "test" else (op.path,):
            try:
                place = tokens_of(pointer)
            except Misfit:
                continue  # the change will not fit
            yield (place if op.op == "replace" else _extent(view, place, step)), step


def _extent(view: object, place: list[str], step: int) -> list[str]:
    """The place that changes if something is put in or taken out here."""
    if not place or not (place[-1] == "-" or INDEX.fullmatch(place[-1])):
        return place
    found = find_in(view, path_to(*place[:-1]))
    if found and isinstance(found[0], Mapping):
        return place
    if place[-1] == "-":
        return [*place, str(step)]
    return place[:-1] if found and isinstance(found[0], Sequence) else place
