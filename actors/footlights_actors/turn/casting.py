"""Standard cast: the actors of this package, with the host's models, tools, world and rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from footlights.authority import JsonWorld, NotCanonical, RuleBook, own_approvals
from footlights.authority.values import View
from footlights.cast import Cast
from footlights.errors import RegistrationError
from footlights.models.budget import BudgetConfig
from footlights.models.prompts import Persona
from footlights.tools.tool import checked_tools
from footlights.turn.workloads import ExtensionManager
from footlights_actors.committer import AuthorityCommitter
from footlights_actors.models.pool import StandardPool
from footlights_actors.turn.model_choice import named_or_first
from footlights_actors.turn.performance import perform
from footlights_actors.watchdog import TurnWatchdog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority import Rule, Visibility, World
    from footlights.cast import ChooseModel
    from footlights.events import JsonValue
    from footlights.models.model import Model
    from footlights.notebooks.notebooks import Notebooks
    from footlights.tools.tool import Tool
    from footlights.turn.workloads import Workload

_T = TypeVar("_T")


def standard_cast(
    *models: Model,
    tools: Iterable[Tool] = (),
    world: World | JsonValue = None,
    rules: Mapping[str, Rule] | None = None,
    visibility: Visibility = own_approvals,
    workloads: Mapping[str, Workload] | ExtensionManager | None = None,
    personas: Mapping[str, Persona] | Persona | None = None,
    budget: BudgetConfig | None = None,
    choose_model: ChooseModel | None = None,
    model_memory_bytes: int | None = None,
    remote_models: bool = False,
    fallback: bool = True,
    notebooks: Notebooks | None = None,
) -> Cast:
    """A cast whose turns use the first model, unless the turn or its persona names another, or `choose_model` is given.

    `world` is a JSON document or a world of your own kind; `visibility` selects the part that each user of a server may
    see. `model_memory_bytes` is the memory budget of all loaded models together. `remote_models` is the default consent
    of sessions to remote models. `fallback`: whether the next model of a persona takes the place of one that fails
    before its first token. `notebooks`: what characters remember of players.

    Raises `RegistrationError` for an invalid cast.
    """
    for model in models:
        if not hasattr(model, "model_id"):
            raise RegistrationError(f"A model must be a driver, such as ScriptedModel, and not {type(model).__name__}.")
    if notebooks is not None:
        tools, rules = (*checked_tools(tools), notebooks.tool()), notebooks.rules(rules or {})
    by_id = _by_name("model", ((model.model_id, model) for model in models))
    StandardPool(by_id, model_memory_bytes)  # refuses invalid models here, not when the stage opens
    return Cast(
        perform=perform,
        make_committer=AuthorityCommitter,
        make_watchdog=TurnWatchdog,
        make_pool=partial(StandardPool, memory_bytes=model_memory_bytes),
        choose_model=choose_model or named_or_first(tuple(by_id)),
        models=by_id,
        tools=_by_name("tool", ((tool.name, tool) for tool in checked_tools(tools))),
        world=_as_world(world),
        rules=RuleBook(rules or {}),
        visibility=visibility,
        workloads=workloads if isinstance(workloads, ExtensionManager) else ExtensionManager(workloads),
        personas={"default": personas or Persona()} if not isinstance(personas, Mapping) else personas,
        budget=budget or BudgetConfig(),
        remote_models=remote_models,
        fallback=fallback,
        notebooks=notebooks,
    )


def _by_name(kind: str, members: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    named: dict[str, _T] = {}
    for name, member in members:
        if name in named:
            raise RegistrationError(f"Two {kind}s are named {name}.")
        named[name] = member
    return named


def _as_world(world: World | JsonValue) -> World:
    if world is None or isinstance(world, bool | int | float | str | list | dict | View):
        try:
            return JsonWorld({} if world is None else world)
        except NotCanonical as error:
            raise RegistrationError(f"The world is not plain JSON: {error}") from error
    if not all(callable(getattr(world, name, None)) for name in ("view", "changed", "digest")):
        raise RegistrationError("A world of your own needs the methods view, changed and digest.")
    return world
