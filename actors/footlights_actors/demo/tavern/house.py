"""House as the innkeeper knows it: facts made from the committed world, and the same facts read from a prompt.

A script sees the world only as any model does: by the lines of facts in its prompt. So what it says about prices, rooms
and the purse is never older than the last commit before the turn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import Factory, frozen

from footlights.models.prompts import Fact
from footlights_actors.demo.tavern.approvals import WAITING, waiting
from footlights_actors.demo.tavern.world import GUEST, LANTERN_PRICE, Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Mapping

_FREE, _TAKEN, _MENU, _PURSE, _LANTERN = (
    "Free rooms",
    "Taken rooms",
    "On the menu",
    "The traveller's purse",
    "The lantern",
)
_PRICED = re.compile(r"([^,]+?) for (\d+) coins?(?:, |$)")
_LET = re.compile(r"([^,]+?) to ([^,]+)(?:, |$)")


def known(tavern: Tavern, _: object = None) -> list[Fact]:
    """The facts of the innkeeper, the most important first."""
    rooms = sorted(tavern["rooms"].values(), key=lambda room: room["price"])
    free = [f"{room['name']} for {coins(room['price'])}" for room in rooms if not room["guest"]]
    taken = [f"{room['name']} to {room['guest']}" for room in rooms if room["guest"]]
    return [
        Fact(_FREE, ", ".join(free) or "none"),
        Fact(_MENU, ", ".join(f"{dish} for {coins(price)}" for dish, price in tavern["menu"].items())),
        Fact(_PURSE, coins(tavern["purse"])),
        Fact(_TAKEN, ", ".join(taken) or "none"),
        Fact(_LANTERN, "sold" if "lantern" in tavern else f"over the door, for {coins(LANTERN_PRICE)}"),
        *waiting(tavern),
    ]


@frozen
class House:
    """What the facts of a prompt say."""

    free: Mapping[str, int] = Factory(dict[str, int])
    """The price of each free room, by the room's name, the cheapest first."""
    taken: Mapping[str, str] = Factory(dict[str, str])
    """The guest of each other room."""
    menu: Mapping[str, int] = Factory(dict[str, int])
    purse: int | None = None
    """None if the prompt has no facts."""
    lantern: int | None = None
    """Its price; None if it is sold."""
    waiting: str | None = None
    """The question that waits for the traveller's answer."""

    @classmethod
    def of(cls, system: str) -> House:
        """The house as the system prompt describes it."""
        facts = dict(line.split(": ", 1) for line in system.splitlines() if ": " in line)
        purse, lantern = re.match(r"\d+", facts.get(_PURSE, "")), re.search(r"\d+", facts.get(_LANTERN, ""))
        return cls(
            free={name: int(price) for name, price in _PRICED.findall(facts.get(_FREE, ""))},
            taken=dict(_LET.findall(facts.get(_TAKEN, ""))),
            menu={dish: int(price) for dish, price in _PRICED.findall(facts.get(_MENU, ""))},
            purse=int(purse[0]) if purse else None,
            lantern=int(lantern[0]) if lantern else None,
            waiting=facts.get(WAITING),
        )

    @property
    def own_rooms(self) -> list[str]:
        """The names of the traveller's rooms."""
        return [name for name, guest in self.taken.items() if guest == GUEST]

    def named(self, key: str) -> str:
        """The name of a room, by its key."""
        return next((name for name in (*self.free, *self.taken) if key in name), f"the {key}")
