"""A rule decides the same whether or not the stage was opened anew before it was asked, and on any ledger.

These rules look at what Python shows and JSON does not say: the order of keys, and 2.0 beside 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from footlights import Intent, open_stage
from footlights.authority import JsonWorld, Ruling, accept, every_turn, patch
from footlights.testing import take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast

TURNS = 5


@every_turn
def build(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    if world["rooms"]:
        return accept()
    return accept(patch.add("/rooms", {"parlour": None, "attic": None, "Äther": None}), patch.add("/rate", 4.0))


@every_turn
def rent(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    free = next((room for room, guest in world["rooms"].items() if guest is None), None)
    if free is None:
        return accept()
    return accept(patch.replace(f"/rooms/{free}", "guest"), patch.add("/paid/-", f"{free} {world['rate']}"))


def inn() -> Cast:
    world = JsonWorld({"rooms": {}, "rate": 2.0, "paid": [], "seen": [], "stable": {"yard": 1, "cellar": 2}})
    rules = {"build": build, "rent": rent, "look": look}
    return standard_cast(ScriptedModel(lambda _: [Say("Yours.")]), rules=rules, world=world)


@every_turn
def look(world: dict[str, Any], intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.add("/seen/-", f"{[*world]} {[*world['stable']]} {world['rate']}"))


async def play(ledger: Path | None, turns_between_restarts: int) -> object:
    left = TURNS
    world: object = None
    while left:
        async with open_stage(inn(), ledger=ledger) as stage:
            for _ in range(min(turns_between_restarts, left)):
                await take_turn(stage.start(), "A room!")
                left -= 1
            world = stage.world
    return world


@pytest.mark.parametrize("turns_between_restarts", [1, 2, TURNS])
async def test_rules_see_the_same_with_and_without_a_restart(tmp_path: Path, turns_between_restarts: int) -> None:
    in_memory = await play(None, TURNS)
    assert repr(await play(tmp_path / "inn.ledger", turns_between_restarts)) == repr(in_memory)


async def test_rules_see_keys_in_order_and_whole_numbers_as_such(tmp_path: Path) -> None:
    world: Any = await play(tmp_path / "inn.ledger", TURNS)
    assert world["paid"] == ["attic 4", "parlour 4", "Äther 4"]
    assert world["seen"][0] == "['paid', 'rate', 'rooms', 'seen', 'stable'] ['cellar', 'yard'] 2"
