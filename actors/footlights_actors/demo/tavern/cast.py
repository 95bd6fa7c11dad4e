"""Cast of the Mended Lantern, for demos, tutorials and tests.

It has an innkeeper with a scripted model, six tools, a small world and its rules; and an analyst, who reports,
searches documents and simulates cohorts. Everything is deterministic. The models are cold at first, as real ones are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from footlights.events import JsonValue, WarmState
from footlights.models.prompts import Persona
from footlights_actors.demo.analyst.script import analyst
from footlights_actors.demo.analyst.tools import DOCUMENTS, analyst_tools
from footlights_actors.demo.tavern.analyst_persona import ANALYST, accounts
from footlights_actors.demo.tavern.approvals import HOUSE_RULES
from footlights_actors.demo.tavern.house import known
from footlights_actors.demo.tavern.innkeeper import AsksForWork, innkeeper
from footlights_actors.demo.tavern.tools import tavern_tools
from footlights_actors.demo.tavern.world import opening_hour
from footlights_actors.models.scripted import ScriptedModel
from footlights_actors.turn.casting import standard_cast

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from footlights.cast import Cast
    from footlights.models.budget import BudgetConfig
    from footlights.models.model import Model
    from footlights.tools.tool import Tool
    from footlights_actors.models.scripted import Script

_INNKEEPER = (
    "You keep the Mended Lantern, a small inn at the edge of the moor. You are warm and brief, and you speak as "
    "innkeepers do. You know only what is written here. Rooms, food and rumours are given out with your tools alone."
)


def tavern_cast(
    *,
    pace: float = 0.03,
    load_seconds: float = 1.5,
    tool_seconds: float = 0.4,
    model: Model | None = None,
    with_tools: bool = True,
    budget: BudgetConfig | None = None,
    remote_models: bool = False,
    documents: str | os.PathLike[str] = DOCUMENTS,
) -> Cast:
    """The tavern in its initial state. With the first three arguments at 0 it answers without delay.

    `model` replaces that of the innkeeper; `with_tools` permits it the tavern's tools. `documents` is the folder that
    the analyst searches; raises `RegistrationError` if it does not exist.
    """
    house, study = tavern_tools(tool_seconds), analyst_tools(documents)
    return standard_cast(
        model or _scripted("innkeeper", innkeeper, pace, load_seconds),
        _scripted("analyst", analyst, pace, load_seconds),
        tools=(*house, *study),
        personas={
            "innkeeper": Persona(
                text=_INNKEEPER,
                facts=known,
                tools=_names(house if with_tools else ()),
                classifier=AsksForWork() if with_tools else None,
            ),
            "analyst": Persona(text=ANALYST, models=("analyst",), facts=accounts, tools=_names(study)),
        },
        budget=budget,
        remote_models=remote_models,
        world=cast(JsonValue, opening_hour()),
        rules=HOUSE_RULES,
    )


def _names(tools: Iterable[Tool]) -> frozenset[str]:
    return frozenset(tool.name for tool in tools)


def _scripted(name: str, script: Script, pace: float, load_seconds: float) -> ScriptedModel:
    return ScriptedModel(script, model_id=name, pace=pace, warm_state=WarmState.COLD, load_seconds=load_seconds)
