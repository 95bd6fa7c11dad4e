"""Persona of the tavern's analyst, and its facts: the accounts, made from the world alone."""

from __future__ import annotations

from footlights.models.prompts import Fact
from footlights_actors.demo.tavern.world import Tavern, coins

ANALYST = (
    "You keep the accounts of the Mended Lantern. You report what is written here, briefly, and change nothing. "
    "You search the documents and simulate cohorts with your tools alone."
)
"""One line, because every line after it is a fact."""


def accounts(tavern: Tavern, _: object = None) -> list[Fact]:
    """The facts of the analyst, the most important first."""
    rooms = tavern["rooms"].values()
    let = sum(room["guest"] is not None for room in rooms)
    open_for = sum(room["price"] for room in rooms if room["guest"] is None)
    return [
        Fact("Till", coins(tavern["till"])),
        Fact("Rooms", f"{let} of {len(rooms)} let, the others worth {coins(open_for)} a night"),
        Fact("Purse of the traveller", coins(tavern["purse"])),
        Fact("Rumours told", str(tavern["rumours_told"])),
    ]
