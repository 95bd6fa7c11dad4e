"""The usual cast: the standard performance and committer, with the models, tools, world and rules you bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from footlights.authority import JsonWorld, NotCanonical, RuleBook
from footlights.cast import Cast, ModelChoice
from footlights.errors import ModelError, RegistrationError
from footlights.extensions import ExtensionManager
from footlights_actors.committer import AuthorityCommitter
from footlights_actors.performance import perform

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.authority import Rule, World
    from footlights.cast import ChooseModel
    from footlights.events import JsonValue
    from footlights.extensions import Workload
    from footlights.models import Model
    from footlights.params import TurnParams
    from footlights.tools import Tool

_T = TypeVar("_T")


def standard_cast(
    *models: Model,
    tools: Iterable[Tool] = (),
    world: World | JsonValue = None,
    rules: Mapping[str, Rule] | None = None,
    workloads: Mapping[str, Workload] | ExtensionManager | None = None,
) -> Cast:
    """A cast whose turns use the first model unless they name another.

    `world` is a JSON document or a world of your own. Raises `RegistrationError` for a cast that cannot work.
    """
    return Cast(
        perform=perform,
        make_committer=AuthorityCommitter,
        choose_model=_choose_from([model.model_id for model in models]),
        models=_by_name("model", ((model.model_id, model) for model in models)),
        tools=_by_name("tool", ((tool.name, tool) for tool in tools)),
        world=_as_world(world),
        rules=RuleBook(rules or {}),
        workloads=workloads if isinstance(workloads, ExtensionManager) else ExtensionManager(workloads),
    )


def _choose_from(model_ids: list[str]) -> ChooseModel:
    def choose(params: TurnParams) -> ModelChoice:
        if params.model is not None:
            return ModelChoice(params.model, "requested")
        if not model_ids:
            raise ModelError("This cast has no model; its turns must name a workload.")
        return ModelChoice(model_ids[0], "default")

    return choose


def _by_name(kind: str, members: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    named: dict[str, _T] = {}
    for name, member in members:
        if name in named:
            raise RegistrationError(f"Two {kind}s are named {name}.")
        named[name] = member
    return named


def _as_world(world: World | JsonValue) -> World:
    if world is None or isinstance(world, bool | int | float | str | list | dict):
        try:
            return JsonWorld({} if world is None else world)
        except NotCanonical as error:
            raise RegistrationError(f"The world is not plain JSON: {error}") from error
    if not all(callable(getattr(world, name, None)) for name in ("view", "changed", "digest")):
        raise RegistrationError("A world of your own needs the methods view, changed and digest.")
    return world
