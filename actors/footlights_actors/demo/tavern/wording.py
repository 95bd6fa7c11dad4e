"""Wording of the innkeeper: what he says to a topic, before a tool runs, and about its result.

The sentences are in `sayings.toml`. Prices, rooms and the purse are those of the `House`, or of a tool's result;
nothing is taken from the player's text. No sentence says that something was sold: the commit comes after the last word,
and decides.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from footlights_actors.demo.tavern.topics import Topic
from footlights_actors.demo.tavern.vocabulary import DISHES, ROOMS
from footlights_actors.demo.tavern.wishes import BuyLantern, HearRumour, Rent
from footlights_actors.demo.tavern.world import coins

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from footlights.models.model import ToolExchange
    from footlights_actors.demo.tavern.house import House
    from footlights_actors.demo.tavern.understanding import Heard
    from footlights_actors.demo.tavern.wishes import Act

_SAYINGS_FILE = files("footlights_actors.demo.tavern").joinpath("sayings.toml")
_BOOK: dict[str, dict[str, Any]] = tomllib.loads(_SAYINGS_FILE.read_text("utf-8"))
_THINGS: Mapping[str, str] = _BOOK["things"]
_RESULTS: Mapping[str, list[str]] = _BOOK["results"]
SAYINGS: Mapping[Topic, list[str]] = {Topic(name): said for name, said in _BOOK["sayings"].items()}
ANSWERS: Mapping[Topic, list[str]] = {
    **{Topic(name): said for name, said in _BOOK["answers"].items()},
    Topic.UNNAMED_ROOM: _BOOK["answers"]["rooms"],
    Topic.INSULT: _BOOK["answers"]["complaint"],
}

ONLY_TALKING = "We are only talking, friend, so the book stays shut. Ask me again when you mean it."
_NO_BOOK = "I would have to look that up, and the book is not at hand. Ask me for a room, and I will open it."
_OPTIONAL, _FACT = re.compile(r"\[([^]]*)\]"), re.compile(r"\{(\w+)\}")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def _worded(templates: Iterable[str], facts: Mapping[str, str]) -> str:
    """The first template whose facts are all known, with its facts. An unknown fact is empty."""

    def is_known(text: str) -> bool:
        return all(facts[name.lower()] for name in _FACT.findall(text))

    def value(fact: re.Match[str]) -> str:
        known = facts[fact[1].lower()]
        return _capital(known) if fact[1][0].isupper() else known

    reduced = (_OPTIONAL.sub(lambda part: part[1] if is_known(part[1]) else "", each) for each in templates)
    return _FACT.sub(value, next(each for each in reduced if is_known(each)))


def _listed(items: Iterable[str], last: str = "and") -> str:
    """The items as one phrase; empty if there are none."""
    *most, end = [*items] or [""]
    return f"{', '.join(most)} {last} {end}" if most else end


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _counted(dish: str, count: int) -> str:
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{number} {dish}" if count == 1 else f"{number} {dish}s"


# -- before a tool, and after it


def opening(acts: Sequence[Act]) -> str:
    """What he says before he reaches for the book, the ladle or the lantern."""
    kinds = {type(act) for act in acts} - {HearRumour}
    if not kinds:
        return "Lean closer."
    if len(kinds) > 1:
        return "One thing after the other. Let me write that down."
    match acts[0]:
        case BuyLantern():
            return "The lantern? Over the door?"
        case Rent():
            return "Let me open the book."
        case _:
            return "Coming."


def closing(heard: Heard, exchanges: Sequence[ToolExchange], house: House) -> str:
    """What he says about the results of tools."""
    errors = [exchange.error for exchange in exchanges if exchange.error is not None]
    results = {exchange.request.tool_name: cast("Any", exchange.value) for exchange in exchanges if not exchange.error}
    told = [_about_result(heard, name, result) for name, result in results.items() if name in _RESULTS]
    if errors:
        told.append(f"Ah. {' '.join(errors)} I am sorry, friend. Ask me what else there is.")
        return " ".join(told)
    due = sum(result["price"] for name, result in results.items() if name in ("rent_room", "serve_order", "take_order"))
    if house.purse is not None and due > house.purse:
        sums = f"That makes {coins(due)}, and your purse holds {coins(house.purse)}."
        return f"{sums} The book will not have it, so everything stays where it is."
    return " ".join(told)


def _about_result(heard: Heard, tool_name: str, result: Mapping[str, Any]) -> str:
    price, book = result.get("price", 0), result.get("in_the_book")
    dishes = result.get("dishes", {})
    facts = {
        "due": coins(price),
        "book": coins(book or 0),
        "room": result.get("room", ""),
        "rumour": result.get("rumour", ""),
        "dish": _counted(result["dish"], result["count"]) if "dish" in result else "",
        "things": _listed([*result.get("rooms", ()), *(_counted(dish, count) for dish, count in dishes.items())]),
        "lantern": "the lantern" if result.get("lantern") else "",
        "free": _listed(result.get("free", ())),
        "taken": _listed(result.get("taken", ())),
    }
    if book is not None and price != book:
        return _worded(_RESULTS["haggled"], facts)
    is_company = tool_name == "check_rooms" and heard.topic is Topic.COMPANY
    return _worded(_RESULTS["company" if is_company else tool_name], facts)


# -- answers without a tool


def answer(heard: Heard, house: House, words: str) -> str:
    """What he says to a line that he answers without a tool, or before one."""
    if heard.topic in ANSWERS:
        return _NO_BOOK if house.purse is None else _worded(ANSWERS[heard.topic], _facts(heard, house))
    said = SAYINGS[heard.topic]
    return _worded([said[sum(map(ord, words.casefold())) % len(said)]], _facts(heard, house))


def _facts(heard: Heard, house: House) -> dict[str, str]:
    """What may be said about the house and the things that a line is about; empty where there is nothing to say."""
    thing, purse = next(iter(heard.about), ""), house.purse or 0
    most = purse if heard.number is None else heard.number
    for_sale = {**house.free, **house.menu} | ({} if house.lantern is None else {"the lantern": house.lantern})
    rooms = [each for each in heard.about if each in ROOMS]
    others = [name for name in house.free if rooms and name not in map(house.named, heard.about)]
    names = _listed(house.named(each) if each in ROOMS else f"the {each}" for each in heard.about)
    dishes = _listed(each for each in heard.about if each in DISHES)
    described = [f"{_THINGS[each]} {_price(each, house)}" for each in heard.about[:2]]
    prices = [_price(each, house) for each in heard.about]
    price = prices[0] if prices and house.purse is not None else ""
    return {
        # the house
        "free": _priced(house.free),
        "cheapest": next((f"{name}, for {coins(price)}" for name, price in house.free.items()), ""),
        "menu": _priced(house.menu),
        "dish_prices": _listed(f"{dish} is {price}" for dish, price in house.menu.items()),
        "room_prices": _listed(f"{name} is {price}" for name, price in house.free.items()),
        "let": _listed(f"{name} is let to {guest}" for name, guest in house.taken.items()),
        "upstairs": _listed(f"{guest} in {name}" for name, guest in house.taken.items()),
        "guests": _listed(f"{guest} has {name}" for name, guest in house.taken.items() if name not in house.own_rooms),
        "own_rooms": _listed(house.own_rooms),
        "lantern": "" if house.lantern is None else coins(house.lantern),
        "lantern_price": "" if house.lantern is None else str(house.lantern),
        "purse": coins(purse),
        "money": coins(purse) if purse else "",
        "waiting": house.waiting or "",
        # what can be had for so many coins
        "most": coins(most),
        "less": coins(purse) if most > purse else "",
        "choice": _listed((f"{name} for {price}" for name, price in for_sale.items() if price <= most), "or"),
        # what the line is about
        "names": names,
        "prices": " ".join([*prices, *_sum(heard, house)]),
        "first_prices": " ".join(prices[:3]),
        "price": price,
        "described": " ".join(described),
        "described_first": " ".join(described[:1]),
        "character": _THINGS.get(thing, ""),
        "dish": thing if thing in DISHES else "",
        "room": house.named(thing) if thing in ROOMS else "",
        "it": "it" if thing == "lantern" else "",
        "lantern_offer": price if thing == "lantern" and house.lantern is not None else "",
        "order": _order(thing, house) if thing else "",
        "kept": f"No {dishes} then." if thing in DISHES else f"As you like, {names} can do without you.",
        "other_rooms": _priced({name: house.free[name] for name in others}),
    }


def _priced(prices: Mapping[str, int]) -> str:
    return _listed(f"{name} for {coins(price)}" for name, price in prices.items())


def _price(thing: str, house: House) -> str:
    """One sentence about what a thing costs, or who has it."""
    if thing in ROOMS:
        name = house.named(thing)
        if name in house.free:
            return f"{_capital(name)} is free tonight, for {coins(house.free[name])}."
        guest = house.taken.get(name)
        return (
            f"{_capital(name)} is yours already."
            if name in house.own_rooms
            else f"{guest or 'Somebody'} has {name} tonight."
        )
    if thing == "lantern":
        if house.lantern is None:
            return "The lantern is sold."
        return f"I would part with it for {coins(house.lantern)}, to somebody who tells me to sell it."
    price = house.menu.get(thing)
    return f"There is no {thing} today." if price is None else f"{_capital(_counted(thing, 1))} is {coins(price)}."


def _sum(heard: Heard, house: House) -> list[str]:
    """One sentence about the price of all that is asked about, if there is more than one and all of it is for sale."""
    prices = {**house.menu, "lantern": house.lantern}
    prices |= {room: house.free.get(house.named(room)) for room in ROOMS}
    due = [(prices.get(thing), count) for thing, count in zip(heard.about, heard.counts, strict=False)]
    if sum(count for _, count in due) < 2 or any(price is None for price, _ in due):
        return []
    return [f"Together that makes {coins(sum((price or 0) * count for price, count in due))}."]


def _order(thing: str, house: House) -> str:
    """Words that he would understand as an order."""
    if thing == "lantern":
        return "sell me the lantern"
    return f"I'll take {house.named(thing) if thing in ROOMS else _counted(thing, 1)}"
