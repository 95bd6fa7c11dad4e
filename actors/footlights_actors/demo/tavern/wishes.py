"""Wishes of a player, as the innkeeper understands them."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

PICKS = ("cheapest", "finest")
"""Rooms that are wanted by their rank, without a name."""


@frozen
class Rent:
    """Rent a room."""

    room: str | None = None
    """Its key, or one of `PICKS`; None for the one at the price of the offer."""
    offer: int | None = None
    """The price that the player names."""
    at_most: int | None = None
    """The most that it may cost."""


@frozen
class Order:
    """Order a dish."""

    dish: str
    count: int = 1
    offer: int | None = None
    """The price of all of it that the player names."""


@frozen
class BuyLantern:
    """Buy the lantern."""

    offer: int | None = None
    """The price that the player names."""


@frozen
class HearRumour:
    """Hear a rumour, which is free."""


Purchase: TypeAlias = Rent | Order | BuyLantern
Act: TypeAlias = Purchase | HearRumour


def noun_of(act: Act) -> str:
    """The thing of the house that an act is about."""
    match act:
        case Rent(room):
            return room or "room"
        case Order(dish):
            return dish
        case BuyLantern():
            return "lantern"
        case HearRumour():
            return "rumour"


def has_terms(act: Act) -> bool:
    """Whether the player names a price."""
    match act:
        case Rent(_, offer, at_most):
            return offer is not None or at_most is not None
        case Order(_, _, offer) | BuyLantern(offer):
            return offer is not None
        case HearRumour():
            return False
