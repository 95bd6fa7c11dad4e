"""The actors of a turn, the committer, and the models that need nothing from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights_actors.casting import standard_cast
    from footlights_actors.llm_client import ClientModel, ModelClient
    from footlights_actors.scripted import Call, Fail, Flood, Line, Pause, Say, Script, ScriptedModel, Stall

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
    "footlights_actors.casting": "standard_cast",
    "footlights_actors.llm_client": "ClientModel ModelClient",
    "footlights_actors.scripted": "Call Fail Flood Line Pause Say Script ScriptedModel Stall",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
