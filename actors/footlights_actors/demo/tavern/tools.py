"""Tools of the innkeeper: check and rent rooms, serve orders, take several at once, recall a rumour, sell the lantern.

The tools read the last committed world and request acts by intents. They have no side effects, so each may be cancelled
at any point. They check rooms and menu, and raise errors that the innkeeper can repeat; only the rules check the purse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import trio
from attrs import evolve

from footlights.errors import ToolError
from footlights.tools.decorator import tool
from footlights.tools.tool import SideEffects, Tool, ToolContext, ToolReturn
from footlights_actors.demo.tavern.rules import Act, Rent, SellLantern, Serve, TellRumour, intent_to
from footlights_actors.demo.tavern.world import LANTERN_PRICE, Room, Tavern, coins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue

RUMOURS = (
    "They say the old lighthouse burns again, every third night, and that nobody has bought oil for it in years.",
    "The miller's geese flew north this autumn. Geese know what they know, and the miller has packed his bags.",
    "A woman in a grey cloak paid for a whole winter in advance, slept one night, and left by the window.",
    "The bridge at Harrow's Ford sings when it rains. The toll-keeper says it is the wind. He also says it to himself.",
    "Two kings once met in my cellar, they say, and parted friends. The barrel they shared is empty.",
)

_asking = tool(cancel_safe=True, side_effects=SideEffects.NONE)


def tavern_tools(seconds: float) -> tuple[Tool, ...]:
    """The tools, each with a delay of `seconds`."""
    tools = (check_rooms, rent_room, serve_order, take_order, recall_rumour, sell_lantern)
    return tuple(_delayed(seconds, each) for each in tools)


def _delayed(seconds: float, inner: Tool) -> Tool:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolReturn | JsonValue:
        await trio.sleep(seconds)
        return await inner.run(arguments, context)

    return evolve(inner, run=run)


@_asking
async def check_rooms(context: ToolContext) -> ToolReturn:
    """Which rooms are free at what price, and who has the others."""
    rooms = sorted(_tavern(context)["rooms"].values(), key=lambda room: room["price"])
    free = [f"{room['name']} for {coins(room['price'])}" for room in rooms if room["guest"] is None]
    taken = [f"{room['guest']} in {room['name']}" for room in rooms if room["guest"] is not None]
    return ToolReturn({"free": list(free), "taken": list(taken)}, f"{len(free)} free, {len(taken)} taken")


@_asking
async def rent_room(
    context: ToolContext,
    room: Annotated[str | None, "its key in the book, such as attic; or cheapest; or finest"] = None,
    price: Annotated[int | None, "what the guest offers, if not the price in the book"] = None,
    at_most: Annotated[int | None, "the most that the room may cost"] = None,
) -> ToolReturn:
    """Let a room: the one named, or the free one at the price that is offered, or else the cheapest that is free."""
    key, found = _room_to_let(_tavern(context)["rooms"], room, price, at_most)
    agreed = found["price"] if price is None else price
    context.request_commit(intent_to(Rent(key, agreed), context.tool_call_id))
    return ToolReturn(
        {"room": found["name"], "price": agreed, "in_the_book": found["price"]}, f"{found['name']}, {coins(agreed)}"
    )


def _room_to_let(
    rooms: Mapping[str, Room], wanted: str | None, price: int | None = None, at_most: int | None = None
) -> tuple[str, Room]:
    if wanted in (None, "cheapest", "finest"):
        free = [(key, room) for key, room in rooms.items() if room["guest"] is None]
        if not free:
            raise ToolError("There is no free room left tonight.")
        fitting = [(key, room) for key, room in free if at_most is None or room["price"] <= at_most]
        if wanted is None and price is not None:
            fitting = [(key, room) for key, room in free if room["price"] == price]
        if not fitting:
            raise ToolError("There is no free room at that price.")
        return (max if wanted == "finest" else min)(fitting, key=lambda found: found[1]["price"])
    room = rooms.get(wanted)
    if room is None:
        raise ToolError("There is no such room in this house.")
    if room["guest"] is not None:
        raise ToolError(f"The book has {room['guest']} in {room['name']}.")
    if at_most is not None and room["price"] > at_most:
        raise ToolError(f"{room['name'].capitalize()} is {coins(room['price'])}.")
    return wanted, room


@_asking
async def serve_order(
    context: ToolContext,
    dish: Annotated[str, "something from the menu"],
    count: Annotated[int, "how many"] = 1,
    price: Annotated[int | None, "what the guest offers for all of them, if not the price on the menu"] = None,
) -> ToolReturn:
    """Serve something from the menu, and take the money for it."""
    due = _price_on_menu(_tavern(context), dish, count)
    agreed = due if price is None else price
    context.request_commit(intent_to(Serve(dish, agreed, count), context.tool_call_id))
    summary = f"{dish}, {coins(agreed)}" if count == 1 else f"{count} times {dish}, {coins(agreed)}"
    return ToolReturn({"dish": dish, "count": count, "price": agreed, "in_the_book": due}, summary)


def _price_on_menu(tavern: Tavern, dish: str, count: int) -> int:
    price = tavern["menu"].get(dish)
    if price is None:
        raise ToolError("The kitchen does not have that.")
    if count < 1:
        raise ToolError("That is no number of dishes.")
    return price * count


@_asking
async def take_order(
    context: ToolContext,
    rooms: Annotated[list[str], "keys of rooms, such as attic; or cheapest; or finest"],
    dishes: Annotated[dict[str, int], "how many of each dish"],
    lantern: Annotated[bool, "whether the guest wants to buy the lantern, too"] = False,
) -> ToolReturn:
    """Write down several things that a guest wants at once: all of them, or none."""
    tavern = _tavern(context)
    let = [_room_to_let(tavern["rooms"], room) for room in rooms]
    acts: list[Act] = [Rent(key, room["price"]) for key, room in let]
    acts += [Serve(dish, _price_on_menu(tavern, dish, count), count) for dish, count in dishes.items()]
    if lantern:
        acts.append(_sale(tavern))
    for act in acts:
        context.request_commit(intent_to(act, context.tool_call_id))
    price = sum(act.price for act in acts if isinstance(act, Rent | Serve))
    names: list[JsonValue] = [room["name"] for _, room in let]
    value: dict[str, JsonValue] = {"rooms": names, "dishes": dict(dishes), "lantern": lantern, "price": price}
    return ToolReturn(value, f"{len(acts)} things, {coins(price)}")


@_asking
async def recall_rumour(context: ToolContext) -> ToolReturn:
    """The next rumour that was not told yet."""
    number = _tavern(context)["rumours_told"] % len(RUMOURS)
    context.request_commit(intent_to(TellRumour(), context.tool_call_id))
    return ToolReturn({"rumour": RUMOURS[number]}, f"rumour {number + 1} of {len(RUMOURS)}")


@_asking
async def sell_lantern(
    context: ToolContext, price: Annotated[int | None, "what the guest offers, if not the price of the house"] = None
) -> ToolReturn:
    """Offer the lantern of the house for sale. It is sold when the guest has agreed in so many words."""
    sale = _sale(_tavern(context))
    agreed = sale.price if price is None else price
    context.request_commit(intent_to(SellLantern(agreed), context.tool_call_id))
    return ToolReturn({"price": agreed, "in_the_book": sale.price}, f"the lantern, {coins(agreed)}")


def _sale(tavern: Tavern) -> SellLantern:
    if "lantern" in tavern:
        raise ToolError("The lantern is sold.")
    return SellLantern(LANTERN_PRICE)


def _tavern(context: ToolContext) -> Tavern:
    return cast(Tavern, context.world)
