"""Wording of the innkeeper: what he says to a topic, before a tool runs, and about its result.

Prices, rooms and the purse are those of the `House`, or of a tool's result; nothing is taken from the player's text. No
sentence says that something was sold: the commit comes after the last word, and decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from footlights_actors.demo.tavern.topics import Topic
from footlights_actors.demo.tavern.vocabulary import DISHES, ROOMS
from footlights_actors.demo.tavern.wishes import BuyLantern, HearRumour, Rent
from footlights_actors.demo.tavern.world import coins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from footlights.models.model import ToolExchange
    from footlights_actors.demo.tavern.house import House
    from footlights_actors.demo.tavern.understanding import Heard
    from footlights_actors.demo.tavern.wishes import Act

ONLY_TALKING = "We are only talking, friend, so the book stays shut. Ask me again when you mean it."

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def _listed(items: Iterable[str], last: str = "and") -> str:
    *most, end = items
    return f"{', '.join(most)} {last} {end}" if most else end


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _counted(dish: str, count: int) -> str:
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{number} {dish}" if count == 1 else f"{number} {dish}s"


def _free(house: House) -> str:
    return _listed(f"{name} for {coins(price)}" for name, price in house.free.items())


def _menu(house: House) -> str:
    return _listed(f"{dish} for {coins(price)}" for dish, price in house.menu.items())


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
    told = [_RESULTS[name](heard, result) for name, result in results.items() if name in _RESULTS]
    if errors:
        told.append(f"Ah. {' '.join(errors)} I am sorry, friend. Ask me what else there is.")
        return " ".join(told)
    due = sum(result["price"] for name, result in results.items() if name in ("rent_room", "serve_order", "take_order"))
    if house.purse is not None and due > house.purse:
        sums = f"That makes {coins(due)}, and your purse holds {coins(house.purse)}."
        return f"{sums} The book will not have it, so everything stays where it is."
    return " ".join(told)


def _rented(_: Heard, result: Mapping[str, Any]) -> str:
    if result["price"] != result["in_the_book"]:
        return _not_for(result)
    room, price = _capital(result["room"]), coins(result["price"])
    return f"{room}, {price} for the night. I put your name to it, and the key is yours as soon as the ink is dry."


def _served(_: Heard, result: Mapping[str, Any]) -> str:
    if result["price"] != result["in_the_book"]:
        return _not_for(result)
    order = _capital(_counted(result["dish"], result["count"]))
    return f"{order}. That makes {coins(result['price'])}, and it is on your table once the slate agrees."


def _taken_down(_: Heard, result: Mapping[str, Any]) -> str:
    things = [*result["rooms"], *(_counted(dish, count) for dish, count in result["dishes"].items())]
    told = f"{_capital(_listed(things))}: {coins(result['price'])} in all. " if things else ""
    told += "All of it is yours once the book has it, or none."
    return told + (" The lantern I sell only on your word, so you will be asked." if result["lantern"] else "")


def _offered(_: Heard, result: Mapping[str, Any]) -> str:
    if result["price"] != result["in_the_book"]:
        return _not_for(result)
    return (
        f"It has hung there since my grandmother's day. For {coins(result['price'])} I could bear to see it go, "
        "but I will have your word on it first: do you really want it?"
    )


def _not_for(result: Mapping[str, Any]) -> str:
    return (
        f"You say {coins(result['price'])}. The book says {coins(result['in_the_book'])}, and it does not haggle: "
        "it will strike that out, and your purse stays as it is."
    )


def _looked_up(heard: Heard, result: Mapping[str, Any]) -> str:
    free, taken = result["free"], result["taken"]
    if heard.topic is Topic.COMPANY:
        upstairs = f"Upstairs there is {_listed(taken)}. " if taken else "Nobody has signed for tonight yet. "
        return f"{upstairs}Down here only you, me, and the cat, who owns the place."
    if not free:
        return "Not a bed left, I fear. There is straw in the stable, and the horse does not mind company."
    others = f" The book has {_listed(taken)}." if taken else ""
    return f"I can offer you {_listed(free)}.{others} Say which one you take, and I will write it down."


_RESULTS: Mapping[str, Callable[[Heard, Any], str]] = {
    "check_rooms": _looked_up,
    "rent_room": _rented,
    "serve_order": _served,
    "take_order": _taken_down,
    "sell_lantern": _offered,
    "recall_rumour": lambda _, result: f"{result['rumour']} But you did not hear it from me.",
}


# -- answers without a tool


def answer(heard: Heard, house: House, words: str) -> str:
    """What he says to a line that he answers without a tool, or before one."""
    worded = FROM_FACTS.get(heard.topic)
    if worded is not None:
        if house.purse is None:
            return "I would have to look that up, and the book is not at hand. Ask me for a room, and I will open it."
        return worded(heard, house)
    answers = SAYINGS[heard.topic]
    said = answers[sum(map(ord, words.casefold())) % len(answers)]
    is_priced = heard.topic is Topic.FREE and heard.about and house.purse is not None
    return f"{said} {_price(heard.about[0], house)}" if is_priced else said


_CHARACTER = {
    "attic": "The attic is low and dry. It is cheap because of the beam: nothing ever died up there but a bat.",
    "gable": "The gable room creaks when the wind is in the west, and some people sleep the better for it.",
    "garden": "The garden room looks out on the beans and the beehives, and has the sun in the morning.",
    "chamber": "The great chamber has the feather bed and the large window, and a bishop once slept in it.",
    "ale": "The ale is my own, and drawn fresh.",
    "bread": "The bread is this morning's, with a crust that you can knock on.",
    "stew": "The stew has been stew since morning, and it is the better for it.",
    "wine": "The wine comes over the moor by cart, and arrives a little older.",
    "lantern": "The lantern over the door is the one my grandmother mended. The house has its name from it.",
}


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


def _thing(heard: Heard, house: House) -> str:
    said = [f"{_CHARACTER[thing]} {_price(thing, house)}" for thing in heard.about[:2]]
    return " ".join(said) or _offer(heard, house)


def _prices(heard: Heard, house: House) -> str:
    if heard.about:
        return " ".join([*(_price(thing, house) for thing in heard.about), *_sum(heard, house)])
    rooms = (
        f" Of the rooms, {_listed(f'{name} is {price}' for name, price in house.free.items())}." if house.free else ""
    )
    lantern = "" if house.lantern is None else f" The lantern over the door is {house.lantern}."
    return f"In coins: {_listed(f'{dish} is {price}' for dish, price in house.menu.items())}.{rooms}{lantern}"


def _sum(heard: Heard, house: House) -> list[str]:
    """One sentence about the price of all that is asked about, if there is more than one and all of it is for sale."""
    prices = {**house.menu, "lantern": house.lantern}
    prices |= {room: house.free.get(house.named(room)) for room in ROOMS}
    due = [(prices.get(thing), count) for thing, count in zip(heard.about, heard.counts, strict=False)]
    if sum(count for _, count in due) < 2 or any(price is None for price, _ in due):
        return []
    return [f"Together that makes {coins(sum((price or 0) * count for price, count in due))}."]


def _purse(_: Heard, house: House) -> str:
    if not house.purse:
        return "Your purse is empty, friend. The fire and the rumours are still free."
    return f"Your purse holds {coins(house.purse)}. I count it with my eyes only."


def _afford(heard: Heard, house: House) -> str:
    purse = house.purse or 0
    if heard.about:
        return f"{_prices(heard, house)} Your purse holds {coins(purse)}."
    most = purse if heard.number is None else heard.number
    rooms = [f"{name} for {price}" for name, price in house.free.items() if price <= most]
    dishes = [f"{dish} for {price}" for dish, price in house.menu.items() if price <= most]
    lantern = ["the lantern for " + str(house.lantern)] if house.lantern is not None and house.lantern <= most else []
    if not rooms + dishes + lantern:
        return f"With {coins(most)} you can have a seat by the fire, and a rumour."
    have = f" Mind that your purse holds {coins(purse)}." if most > purse else ""
    choice = _listed([*rooms, *dishes, *lantern], "or")
    return f"With {coins(most)} you could have {choice}, as long as the sum fits.{have}"


def _rooms(_: Heard, house: House) -> str:
    if not house.free:
        return "Not a bed left, I fear. There is straw in the stable, and the horse does not mind company."
    taken = _listed(f"{name} is let to {guest}" for name, guest in house.taken.items()) if house.taken else ""
    others = f" {_capital(taken)}." if taken else ""
    return f"Free tonight: {_free(house)}.{others} Say which one you take."


def _food(_: Heard, house: House) -> str:
    return f"Kitchen and cellar have {_menu(house)}. Tell me what, and how many."


def _offer(_: Heard, house: House) -> str:
    beds = f"Beds: {_free(house)}. " if house.free else "The beds are all taken. "
    lantern = "" if house.lantern is None else f" The lantern over the door would be {coins(house.lantern)}."
    return f"{beds}To eat and drink: {_menu(house)}.{lantern} Rumours are free."


def _company(_: Heard, house: House) -> str:
    upstairs = _listed(f"{guest} in {name}" for name, guest in house.taken.items()) if house.taken else "nobody yet"
    return f"Upstairs there is {upstairs}. Down here only you, me, and the cat, who owns the place."


def _names(heard: Heard, house: House, last: str) -> str:
    return _listed((house.named(each) if each in ROOMS else f"the {each}" for each in heard.about), last)


def _say_so(thing: str, house: House) -> str:
    """Words that he would understand as an order."""
    if thing == "lantern":
        return "sell me the lantern"
    return f"I'll take {house.named(thing) if thing in ROOMS else _counted(thing, 1)}"


def _unsure(heard: Heard, house: House) -> str:
    if not heard.about and house.waiting is not None:
        return _agreed(heard, house)
    if not heard.about:
        return f"I write down no guesses. Say it in one piece, such as “{_say_so('attic', house)}” or “two ales”."
    prices = " ".join(_price(each, house) for each in heard.about[:3])
    return f"I write down no guesses. {prices} Say “{_say_so(heard.about[0], house)}”, and I shall know."


def _refused(heard: Heard, house: House) -> str:
    kept = f"No {_listed(each for each in heard.about if each in DISHES)} then." if heard.about[0] in DISHES else ""
    kept = kept or f"As you like, {_names(heard, house, 'and')} can do without you."
    others = [name for name in house.free if not any(name == house.named(each) for each in heard.about)]
    if any(each in ROOMS for each in heard.about) and others:
        return f"{kept} There is also {_listed(f'{name} for {coins(house.free[name])}' for name in others)}."
    return f"{kept} Tell me what you would like instead, if anything."


def _missing(_: Heard, house: House) -> str:
    return f"That the house has not got. What it has is {_menu(house)}, and beds."


def _partly(heard: Heard, house: House) -> str:
    return f"Not all of that is to be had here, but {_names(heard, house, 'and')} I can do."


def _evict(_: Heard, house: House) -> str:
    guests = [f"{guest} has {name}" for name, guest in house.taken.items() if name not in house.own_rooms]
    kept = f"{_listed(guests)}, and" if guests else "Here"
    free = f" I have {_free(house)}." if house.free else ""
    return f"{kept} no guest of mine is turned out, not for double and not for a crown.{free}"


def _haggle(_: Heard, house: House) -> str:
    cheapest = next((f" The cheapest bed is {name}, for {coins(price)}." for name, price in house.free.items()), "")
    return f"The prices are older than I am, and do not move.{cheapest} Name what you want, and leave the sum to me."


def _claim(_: Heard, house: House) -> str:
    rooms = f"has you in {_listed(house.own_rooms)}" if house.own_rooms else "has no room to your name"
    return f"I go by the book, whoever says what. The book {rooms}, and {coins(house.purse or 0)} in your purse."


def _agreed(_: Heard, house: House) -> str:
    """What he says to a yes. A script cannot see whether it came as the answer to the question that waits."""
    if house.waiting is not None:
        return (
            f"A yes, then. “{house.waiting}” Given as your answer to that, it is a sale as soon as the book agrees; "
            "said to me alone, the question stays open."
        )
    return "Yes to what, friend? Say the whole of it, such as “the attic” or “two ales”, and I will write it down."


def _declined(_: Heard, house: House) -> str:
    if house.waiting is not None:
        return (
            f"A no, then. “{house.waiting}” Given as your answer to that, all stays where it is; "
            "said to me alone, the question stays open."
        )
    return "No harm done. Nothing is written down, and the fire is free."


def _things_said(unkind: bool) -> Callable[[Heard, House], str]:
    def worded(heard: Heard, house: House) -> str:
        thing = heard.about[0] if heard.about else None
        if thing in DISHES:
            kind = f"I am glad to hear {thing} spoken of. Mine is there if you want it. {_price(thing, house)}"
            return (
                f"Bad {thing} is a sad thing, and I have heard sadder. Mine has to answer to me first."
                if unkind
                else kind
            )
        if thing == "lantern":
            stays = "It has been called worse, and still lit more people home than any of us. It stays where it hangs."
            return stays if unkind or house.lantern is None else f"It is a good lantern. {_price('lantern', house)}"
        if thing is not None:
            room = house.named(thing)
            return (
                f"Nobody is made to sleep in {room}. {_price(thing, house)}"
                if unkind
                else f"{_CHARACTER[thing]} {_price(thing, house)}"
            )
        return (
            "The house has been called worse, and so have I, by guests who paid better. Sit down, and mind your tongue "
            "when the cat listens."
        )

    return worded


def _praise(heard: Heard, house: House) -> str:
    thing = next(iter(heard.about), None)
    return "Kindly said. I will tell the cat." if thing is None else f"Kindly said. {_CHARACTER[thing]}"


FROM_FACTS: Mapping[Topic, Callable[[Heard, House], str]] = {
    Topic.THING: _thing,
    Topic.PRICES: _prices,
    Topic.PURSE: _purse,
    Topic.AFFORD: _afford,
    Topic.ROOMS: _rooms,
    Topic.UNNAMED_ROOM: _rooms,
    Topic.MENU: _food,
    Topic.OFFER: _offer,
    Topic.COMPANY: _company,
    Topic.UNSURE: _unsure,
    Topic.REFUSED: _refused,
    Topic.MISSING: _missing,
    Topic.PARTLY: _partly,
    Topic.EVICT: _evict,
    Topic.HAGGLE: _haggle,
    Topic.CLAIM: _claim,
    Topic.YES: _agreed,
    Topic.NO: _declined,
    Topic.OPINION: _things_said(unkind=False),
    Topic.COMPLAINT: _things_said(unkind=True),
    Topic.INSULT: _things_said(unkind=True),
    Topic.PRAISE: _praise,
}

SAYINGS: Mapping[Topic, tuple[str, ...]] = {
    Topic.HOW_MANY: ("How many shall it be? Give me a number, such as “three ales”, and I will fetch them.",),
    Topic.BAD_NUMBER: (
        "I have poured for forty years, and never that many. Give me a whole number, from one upwards.",
    ),
    Topic.NIGHTS: (
        "I let beds by the night, and tonight is the one I have. Say “I'll take the attic”, and see me again tomorrow.",
    ),
    Topic.AGAIN: ("My memory is as short as a candle. Tell me what it is to be, such as “two ales”.",),
    Topic.NEVER_MIND: (
        "As you like. Nothing is written down, and nothing is owed.",
        "Then nothing it is. The chair by the fire costs no more for it.",
    ),
    Topic.INJECTION: (
        "That sounds like a spell. The last wizard who tried one in my inn paid the full price, and so do you.",
        "I am Odo, I keep an inn, and the coins are where the book says they are. Strange words move none of them.",
    ),
    Topic.ROBBERY: (
        "Coins cross this counter in one direction, friend, and the cat sleeps on the till with one eye open.",
    ),
    Topic.THREAT: ("Bigger men have said so, and now they wash up on Thursdays. Sit down, or take it outside.",),
    Topic.FREE: (
        "Coin first, then the cup. Nothing here is free but the fire and the rumours.",
        "My grandmother gave credit once. It is why the lantern had to be mended. Coin on the counter, or nothing.",
    ),
    Topic.UNDO: ("What is in the book stays in the book, and I give no coins back. That is why we still have a roof.",),
    Topic.TRADE: (
        "I buy nothing and hire nobody, since that business with the goose. I sell beds, stew, bread, ale and wine.",
    ),
    Topic.RUMOUR: ("Keep it warm for me. If you would rather hear one of mine, ask me for a rumour.",),
    Topic.SELF: (
        "Odo, innkeeper of the Mended Lantern, like my father and his. I keep the fire, the book and most secrets.",
        "I am Odo, and this is my inn. On my feet since dawn, and in a better temper than my knees.",
    ),
    Topic.SETTLED: ("So be it. Your answer goes into the book, and the book has the last word.",),
    Topic.TILL: ("What is in the till is between me and the cat.",),
    Topic.HOUSE: (
        "This is the Mended Lantern, at the edge of the moor: four rooms, one pot, and a light for the north road.",
    ),
    Topic.CAT: ("The cat owns the place. I am allowed to work here.",),
    Topic.PRIVY: ("Out at the back, past the woodpile. Take a light, and mind the goose.",),
    Topic.LOVE: ("You are tired, friend, and I am married to this inn. A bowl of stew has mended worse.",),
    Topic.THANKS: (
        "You are welcome. The cat expects to be thanked too.",
        "No thanks needed. It is what the door is for.",
    ),
    Topic.SORRY: ("No offence taken. What may I do for you?",),
    Topic.GOODBYE: (
        "Safe roads, friend. The lantern stays lit till the last guest is in.",
        "Mind the step on your way out. It has been meaning to be mended since my grandmother's day.",
    ),
    Topic.HOW_ARE_YOU: (
        "On my feet since dawn, and in a better temper than my knees. And you? Tell me what you need.",
    ),
    Topic.HELLO: (
        "Welcome to the Mended Lantern. Shake the rain off, sit by the fire, and tell me what you need.",
        "Come in, sit by the fire, and shut the door before the wind asks for a room as well. What can I do for you?",
        "Well met, traveller. There is a fire, there is stew, and there may be a bed. What will it be?",
    ),
    Topic.WEATHER: (
        "It will rain until it stops. The north road is mud, the south road is mud with robbers.",
        "When the smoke lies low like this, there is snow behind it. Another reason to stay the night.",
    ),
    Topic.SMALL_TALK: (
        "I am no great entertainer, friend. I have rumours, though, and they cost nothing: ask me for one.",
    ),
    Topic.FOREIGN: (
        "I have a few words of that tongue, friend, enough for ale, wine, bread and a bed. Say it plainly, or point.",
    ),
    Topic.NONSENSE: (
        "That is beyond an innkeeper. Rooms, stew, ale and rumours: ask me about those and I am a wise man.",
        "Hm. I had a guest who spoke like that, and he paid in advance. Tell me what you want: a room, or supper?",
        "You would have to ask the cat. I can tell you about rooms and prices, or a rumour if you sit down.",
    ),
}
