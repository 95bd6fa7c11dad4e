"""The actors of a turn, the committer, and the models that need nothing from outside."""

from footlights_actors.casting import standard_cast
from footlights_actors.scripted import Call, Fail, Flood, Line, Pause, Say, Script, ScriptedModel, Stall

__all__ = ["Call", "Fail", "Flood", "Line", "Pause", "Say", "Script", "ScriptedModel", "Stall", "standard_cast"]
