"""The Mended Lantern: a whole cast to talk to, to learn from and to test with.

An innkeeper with a scripted model, four tools, a small world and the rules that guard it. Everything is
deterministic. The model is cold at first, as real ones are, and hot after the first turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from footlights.events import JsonValue, WarmState
from footlights_actors.casting import standard_cast
from footlights_actors.scripted import ScriptedModel
from footlights_actors.tavern_innkeeper import innkeeper
from footlights_actors.tavern_rules import TAVERN_RULES
from footlights_actors.tavern_tools import tavern_tools
from footlights_actors.tavern_world import opening_hour

if TYPE_CHECKING:
    from footlights.cast import Cast


def tavern_cast(*, pace: float = 0.03, load_seconds: float = 1.5, tool_seconds: float = 0.4) -> Cast:
    """The tavern at its opening hour. With all three at 0 it answers as fast as it can."""
    return standard_cast(
        ScriptedModel(
            innkeeper,
            model_id="innkeeper",
            pace=pace,
            warm_state=WarmState.COLD,
            load_seconds=load_seconds,
        ),
        tools=tavern_tools(tool_seconds),
        world=cast(JsonValue, opening_hour()),
        rules=TAVERN_RULES,
    )
