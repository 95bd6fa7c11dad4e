"""World of the tavern: rooms, a menu, two purses, and the number of rumours told.

It is a plain JSON document; `Tavern` describes its type for rules and tools.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

GUEST = "the traveller"
"""The player's name in the innkeeper's book."""
LANTERN_PRICE = 15


class Room(TypedDict):
    name: str
    price: int
    guest: str | None


class Tavern(TypedDict):
    rooms: dict[str, Room]
    menu: dict[str, int]
    purse: int
    till: int
    rumours_told: int
    lantern: NotRequired[str]
    """The buyer, once it is sold."""
    approvals: NotRequired[dict[str, Any]]
    """Pending approvals: see `footlights.authority.approvals`."""


def opening_hour() -> Tavern:
    return {
        "rooms": {
            "attic": {"name": "the attic", "price": 2, "guest": None},
            "gable": {"name": "the gable room", "price": 3, "guest": "Mirel the tinker"},
            "garden": {"name": "the garden room", "price": 5, "guest": None},
            "chamber": {"name": "the great chamber", "price": 12, "guest": None},
        },
        "menu": {"ale": 1, "bread": 1, "stew": 2, "wine": 3},
        "purse": 20,
        "till": 31,
        "rumours_told": 0,
    }


def coins(number: int) -> str:
    return "1 coin" if number == 1 else f"{number} coins"
