"""The actors of a turn, the committer, and the models that need nothing from outside."""

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
