"""The actors of a turn, the committer, and the models that need nothing from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights_actors.models.llm_client import ClientModel, ModelClient
    from footlights_actors.models.scripted import Call, Fail, Flood, Line, Pause, Say, Script, ScriptedModel, Stall
    from footlights_actors.turn.casting import standard_cast

__all__ = [
    "Call",
    "ClientModel",
    "Fail",
    "Flood",
    "Line",
    "ModelClient",
    "Pause",
    "Say",
    "Script",
    "ScriptedModel",
    "Stall",
    "standard_cast",
]

_HOMES = {
    "footlights_actors.turn.casting": "standard_cast",
    "footlights_actors.models.llm_client": "ClientModel ModelClient",
    "footlights_actors.models.scripted": "Call Fail Flood Line Pause Say Script ScriptedModel Stall",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
