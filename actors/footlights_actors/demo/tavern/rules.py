"""Rules of the tavern, independent of what the innkeeper says.

Tools request acts by intents; these rules decide. Each rule concerns one part of the world and sees every act of the
turn, so two acts that are valid alone are refused when the purse cannot pay for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from footlights.authority import Intent, IntentType, Rule, Ruling, accept, patch, refuse
from footlights_actors.demo.analyst.rules import ANALYST_RULES, asks_to_keep
from footlights_actors.demo.tavern.world import GUEST, Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue


@frozen
class Rent:
    room: str
    price: int


@frozen
class Serve:
    dish: str
    price: int
    """Of all of them."""
    count: int = 1


@frozen
class TellRumour:
    pass


@frozen
class SellLantern:
    """Needs the player's approval: see `footlights_actors.demo.tavern.approvals`."""

    price: int


Act: TypeAlias = Rent | Serve | TellRumour | SellLantern


def intent_to(act: Act, tool_call_id: str) -> Intent:
    match act:
        case Rent(room, price):
            return Intent(IntentType.TOOL_RESULT, tool_call_id, {"act": "rent", "room": room, "price": price})
        case Serve(dish, price, count):
            payload: dict[str, JsonValue] = {"act": "serve", "dish": dish, "count": count, "price": price}
            return Intent(IntentType.TOOL_RESULT, tool_call_id, payload)
        case TellRumour():
            return Intent(IntentType.TOOL_RESULT, tool_call_id, {"act": "tell_rumour"})
        case SellLantern(price):
            return Intent(IntentType.TOOL_RESULT, tool_call_id, {"act": "sell_lantern", "price": price})


def act_of(intent: Intent) -> Act | None:
    match intent.payload:
        case {"act": "rent", "room": str(room), "price": int(price)}:
            return Rent(room, price)
        case {"act": "serve", "dish": str(dish), "count": int(count), "price": int(price)}:
            return Serve(dish, price, count)
        case {"act": "tell_rumour"}:
            return TellRumour()
        case {"act": "sell_lantern", "price": int(price)}:
            return SellLantern(price)
        case _:
            return None


def known_acts(_: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    for intent in intents:
        if act_of(intent) is None and not asks_to_keep(intent):
            return refuse("unknown_act", "The tavern knows no such act.", intent.ref)
    return accept()


def lodging(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    taken = {key for key, room in tavern["rooms"].items() if room["guest"] is not None}
    moving_in: list[str] = []
    for intent in intents:
        act = act_of(intent)
        if not isinstance(act, Rent):
            continue
        room = tavern["rooms"].get(act.room)
        if room is None:
            return refuse("no_such_room", "The tavern has no such room.", intent.ref)
        if act.room in taken:
            return refuse("room_taken", f"Somebody has {room['name']} already.", intent.ref)
        if act.price != room["price"]:
            return refuse("wrong_price", f"The price of {room['name']} is {coins(room['price'])}.", intent.ref)
        taken.add(act.room)
        moving_in.append(act.room)
    return accept(*(patch.replace(f"/rooms/{room}/guest", GUEST) for room in moving_in))


def kitchen(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    for intent in intents:
        act = act_of(intent)
        if not isinstance(act, Serve):
            continue
        price = tavern["menu"].get(act.dish)
        if price is None or act.count < 1:
            return refuse("not_on_menu", "That is not on the menu.", intent.ref)
        if act.price != price * act.count:
            return refuse("wrong_price", f"The price of that is {coins(price * act.count)}.", intent.ref)
    return accept()


def purse(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    due = sum(act.price for act in map(act_of, intents) if isinstance(act, Rent | Serve | SellLantern))
    if due == 0:
        return accept()
    left = tavern["purse"] - due
    if left < 0:
        return refuse("purse_short", f"The purse holds only {coins(tavern['purse'])}.")
    return accept(patch.replace("/purse", left), patch.replace("/till", tavern["till"] + due))


def rumours(tavern: Tavern, intents: tuple[Intent, ...]) -> Ruling:
    told = sum(isinstance(act_of(intent), TellRumour) for intent in intents)
    return accept(patch.replace("/rumours_told", tavern["rumours_told"] + told)) if told else accept()


TAVERN_RULES: Mapping[str, Rule] = {
    "known_acts": known_acts,
    "lodging": lodging,
    "kitchen": kitchen,
    "purse": purse,
    "rumours": rumours,
    **ANALYST_RULES,
}
