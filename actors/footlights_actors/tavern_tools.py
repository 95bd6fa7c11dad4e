"""What the innkeeper can do besides talk: look at the book, let a room, serve, remember a rumour.

The tools read the world as it was committed last and ask for acts. They change nothing themselves, so each of them
may be cancelled anywhere. What the book shows, they check, and fail in words the innkeeper can pass on; whether the
purse can pay is for the rules alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import trio

from footlights.errors import ToolError
from footlights.tools import SideEffects, Tool, ToolContext, ToolReturn
from footlights_actors.tavern_rules import Rent, Serve, TellRumour, intent_to
from footlights_actors.tavern_world import Room, Tavern, coins

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights.tools import ToolFunction

RUMOURS = (
    "They say the old lighthouse burns again, every third night, and that nobody has bought oil for it in years.",
    "The miller's geese flew north this autumn. Geese know what they know, and the miller has packed his bags.",
    "A woman in a grey cloak paid for a whole winter in advance, slept one night, and left by the window.",
    "The bridge at Harrow's Ford sings when it rains. The toll-keeper says it is the wind. He also says it to himself.",
    "Two kings once met in my cellar, they say, and parted friends. The barrel they shared is empty.",
)

Answer: TypeAlias = Callable[[Mapping[str, "JsonValue"], ToolContext], ToolReturn]


def tavern_tools(seconds: float) -> tuple[Tool, ...]:
    """The tools, each of which takes `seconds` before it answers."""
    return (
        _tool("check_rooms", "Which rooms are free at what price, and who has the others.", check_rooms, seconds),
        _tool("rent_room", "Let a room: the one named, or else the cheapest that is free.", rent_room, seconds),
        _tool("serve_order", "Serve something from the menu, and take the money for it.", serve_order, seconds),
        _tool("recall_rumour", "The next rumour that was not told yet.", recall_rumour, seconds),
    )


def _tool(name: str, description: str, answer: Answer, seconds: float) -> Tool:
    return Tool(
        name=name,
        description=description,
        run=_taking(seconds, answer),
        cancel_safe=True,
        side_effects=SideEffects.NONE,
    )


def _taking(seconds: float, answer: Answer) -> ToolFunction:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
        await trio.sleep(seconds)
        return answer(arguments, context)

    return run


def check_rooms(_: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    rooms = _tavern(context)["rooms"].values()
    free = [f"{room['name']} for {coins(room['price'])}" for room in rooms if room["guest"] is None]
    taken = [f"{room['guest']} in {room['name']}" for room in rooms if room["guest"] is not None]
    return ToolReturn({"free": list(free), "taken": list(taken)}, f"{len(free)} free, {len(taken)} taken")


def rent_room(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    """`room` is the key of a room; `price` is what the player offers. Both may be left out."""
    key, room = _room_to_let(_tavern(context)["rooms"], arguments.get("room"))
    offered = arguments.get("price")
    price = offered if isinstance(offered, int) else room["price"]
    context.request_commit(intent_to(Rent(key, price), context.tool_call_id))
    return ToolReturn({"room": room["name"], "price": price}, f"{room['name']}, {coins(price)}")


def _room_to_let(rooms: Mapping[str, Room], wanted: JsonValue) -> tuple[str, Room]:
    if wanted is None:
        free = [(key, room) for key, room in rooms.items() if room["guest"] is None]
        if not free:
            raise ToolError("There is no free room left tonight.")
        return min(free, key=lambda found: found[1]["price"])
    if not isinstance(wanted, str) or wanted not in rooms:
        raise ToolError("There is no such room in this house.")
    room = rooms[wanted]
    if room["guest"] is not None:
        raise ToolError(f"The book has {room['guest']} in {room['name']}.")
    return wanted, room


def serve_order(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    dish = arguments.get("dish")
    menu = _tavern(context)["menu"]
    if not isinstance(dish, str) or dish not in menu:
        raise ToolError("The kitchen does not have that.")
    context.request_commit(intent_to(Serve(dish, menu[dish]), context.tool_call_id))
    return ToolReturn({"dish": dish, "price": menu[dish]}, f"{dish}, {coins(menu[dish])}")


def recall_rumour(_: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    number = _tavern(context)["rumours_told"] % len(RUMOURS)
    context.request_commit(intent_to(TellRumour(), context.tool_call_id))
    return ToolReturn({"rumour": RUMOURS[number]}, f"rumour {number + 1} of {len(RUMOURS)}")


def _tavern(context: ToolContext) -> Tavern:
    return cast(Tavern, context.world)
