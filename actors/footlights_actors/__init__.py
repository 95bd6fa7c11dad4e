"""The five actors (loader, generator, tool runner, watchdog, committer), model drivers, and the demo games.

Nothing here knows a view or a socket of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

# Names for type checkers, which take `X as X` for a re-export; `_HOMES` has the same names for Python.
# ruff: noqa: I001 - isort would split these into one statement for each name.
if TYPE_CHECKING:
    from footlights_actors.models.client_adapters import ClientModel as ClientModel, ModelClient as ModelClient
    from footlights_actors.models.scripted import (
        Call as Call,
        Fail as Fail,
        Flood as Flood,
        Line as Line,
        Pause as Pause,
        Say as Say,
        Script as Script,
        ScriptedModel as ScriptedModel,
        Stall as Stall,
    )
    from footlights_actors.turn.casting import standard_cast as standard_cast

_HOMES = {
    "footlights_actors.turn.casting": "standard_cast",
    "footlights_actors.models.client_adapters": "ClientModel ModelClient",
    "footlights_actors.models.scripted": "Call Fail Flood Line Pause Say Script ScriptedModel Stall",
}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
