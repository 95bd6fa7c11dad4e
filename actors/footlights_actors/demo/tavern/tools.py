"""Tools of the innkeeper: check and rent rooms, serve orders, recall a rumour, sell the lantern.

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
from footlights_actors.demo.tavern.rules import Rent, SellLantern, Serve, TellRumour, intent_to
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
    return tuple(_delayed(seconds, each) for each in (check_rooms, rent_room, serve_order, recall_rumour, sell_lantern))


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
    room: Annotated[str | None, "its key in the book, such as attic"] = None,
    price: Annotated[int | None, "what the guest offers, if not the price in the book"] = None,
) -> ToolReturn:
    """Let a room: the one named, or else the cheapest that is free."""
    key, found = _room_to_let(_tavern(context)["rooms"], room)
    agreed = found["price"] if price is None else price
    context.request_commit(intent_to(Rent(key, agreed), context.tool_call_id))
    return ToolReturn({"room": found["name"], "price": agreed}, f"{found['name']}, {coins(agreed)}")


def _room_to_let(rooms: Mapping[str, Room], wanted: str | None) -> tuple[str, Room]:
    if wanted is None:
        free = [(key, room) for key, room in rooms.items() if room["guest"] is None]
        if not free:
            raise ToolError("There is no free room left tonight.")
        return min(free, key=lambda found: found[1]["price"])
    room = rooms.get(wanted)
    if room is None:
        raise ToolError("There is no such room in this house.")
    if room["guest"] is not None:
        raise ToolError(f"The book has {room['guest']} in {room['name']}.")
    return wanted, room


@_asking
async def serve_order(context: ToolContext, dish: Annotated[str, "something from the menu"]) -> ToolReturn:
    """Serve something from the menu, and take the money for it."""
    price = _tavern(context)["menu"].get(dish)
    if price is None:
        raise ToolError("The kitchen does not have that.")
    context.request_commit(intent_to(Serve(dish, price), context.tool_call_id))
    return ToolReturn({"dish": dish, "price": price}, f"{dish}, {coins(price)}")


@_asking
async def recall_rumour(context: ToolContext) -> ToolReturn:
    """The next rumour that was not told yet."""
    number = _tavern(context)["rumours_told"] % len(RUMOURS)
    context.request_commit(intent_to(TellRumour(), context.tool_call_id))
    return ToolReturn({"rumour": RUMOURS[number]}, f"rumour {number + 1} of {len(RUMOURS)}")


@_asking
async def sell_lantern(context: ToolContext) -> ToolReturn:
    """Offer the lantern of the house for sale. It is sold when the guest has agreed in so many words."""
    if "lantern" in _tavern(context):
        raise ToolError("The lantern is sold.")
    context.request_commit(intent_to(SellLantern(LANTERN_PRICE), context.tool_call_id))
    return ToolReturn({"price": LANTERN_PRICE}, f"the lantern, {coins(LANTERN_PRICE)}")


def _tavern(context: ToolContext) -> Tavern:
    return cast(Tavern, context.world)
