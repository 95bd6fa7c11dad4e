"""A game in which everything that can become of a turn becomes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import trio

from footlights.authority import Intent, IntentType
from footlights.errors import ToolError
from footlights.tools.decorator import tool
from footlights.tools.tool import SideEffects, ToolContext
from footlights_actors import Call, Fail, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.approvals import HOUSE_RULES
from footlights_actors.demo.tavern.tools import tavern_tools
from footlights_actors.demo.tavern.world import opening_hour

if TYPE_CHECKING:
    from footlights import Cast
    from footlights.events import JsonValue
    from footlights.models.model import Prompt
    from footlights_actors import Line


class Bell:
    """A bell that never stops ringing."""

    def __init__(self) -> None:
        self.rung = trio.Event()


BELL = Bell()
PROMPTS: list[Prompt] = []
"""Everything that the model was asked."""


@tool(cancel_safe=True, side_effects=SideEffects.IMMEDIATE)
async def ring_bell() -> None:
    """Ring the bell."""
    BELL.rung.set()
    await trio.sleep_forever()


@tool(cancel_safe=True, side_effects=SideEffects.NONE)
async def open_drawer() -> None:
    """Find that it is stuck."""
    await trio.lowlevel.checkpoint()
    raise ToolError("It is stuck.")


@tool(cancel_safe=True, side_effects=SideEffects.NONE)
async def drop_tray() -> None:
    """Drop everything."""
    await trio.lowlevel.checkpoint()
    raise RuntimeError("It crashed.")


@tool(cancel_safe=True, side_effects=SideEffects.NONE)
async def take_spoon(context: ToolContext) -> str:
    """Ask for what no rule allows."""
    await trio.lowlevel.checkpoint()
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"act": "take_spoon"}))
    return "taken"


TOOLS = {
    "rooms": "check_rooms",
    "lantern": "sell_lantern",
    "bell": "ring_bell",
    "drawer": "open_drawer",
    "tray": "drop_tray",
    "spoon": "take_spoon",
}
"""The tool that each word asks for."""


def script(prompt: Prompt) -> list[Line]:
    PROMPTS.append(prompt)
    if prompt.exchanges:
        return [Say("There.")]
    if "stay" in prompt.user:
        return [Say("Well,"), Stall()]
    if "fail" in prompt.user:
        return [Fail(RuntimeError(prompt.user))]
    for word, name in TOOLS.items():
        if word in prompt.user:
            return [Say("Let me see. "), Call(name)]
    return [Say(f"Good evening. {prompt.user}")]


def make() -> Cast:
    BELL.rung = trio.Event()
    PROMPTS.clear()
    return standard_cast(
        ScriptedModel(script, model_id="odo"),
        tools=(*tavern_tools(0), ring_bell, open_drawer, drop_tray, take_spoon),
        world=cast("JsonValue", opening_hour()),
        rules=HOUSE_RULES,
    )
