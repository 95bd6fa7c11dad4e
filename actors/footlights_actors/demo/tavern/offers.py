"""Offers: acts that wait for the player's word, because a model chose them.

The script's own patterns act at once. What a tiny model reads out of a line and what costs money is only offered: the
same tool runs under another name, its act is marked, and the rules hold it as an approval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import evolve

from footlights.authority import JsonWorld
from footlights.tools.tool import ToolContext
from footlights_actors.demo.tavern.world import coins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.authority import Intent
    from footlights.events import JsonValue
    from footlights.tools.tool import Tool, ToolReturn
    from footlights_actors.demo.tavern.world import Tavern

OFFERED = {"rent_room": "offer_room", "serve_order": "offer_dish"}
"""The names under which tools that spend are offered."""
_MARK = "asks_first"


def offering(tool: Tool) -> Tool:
    """The tool under its other name. Every act that it requests needs the player's approval."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolReturn | JsonValue:
        world = JsonWorld(context.world)
        inner = ToolContext(
            context.session_id,
            context.turn_id,
            context.tool_call_id,
            world,
            lambda _: True,
            persona=context.persona,
            speaker=context.speaker,
        )
        answer = await tool.run(arguments, inner)
        for intent in inner.staged:
            payload = cast("dict[str, JsonValue]", intent.payload)
            context.request_commit(evolve(intent, payload={**payload, _MARK: True}))
        return answer

    return evolve(tool, name=OFFERED[tool.name], run=run)


def question_about(tavern: Tavern, intent: Intent) -> str | None:
    """The question about an act that is only offered; None for any other intent."""
    match intent.payload:
        case {"asks_first": True, "act": "rent", "room": str(room), "price": int(price)}:
            name = tavern["rooms"][room]["name"] if room in tavern["rooms"] else "a room"
            return f"Rent {name} for {coins(price)}?"
        case {"asks_first": True, "act": "serve", "dish": str(dish), "price": int(price)} if dish in tavern["menu"]:
            return f"Order {dish} for {coins(price)}?"
        case {"asks_first": True}:
            return "Do what the innkeeper offered?"
        case _:
            return None
