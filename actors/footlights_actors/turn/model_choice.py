"""Model choice of a turn: the model that it names, those of its persona in order, or the choice of the cast.

In every case, text of a session without consent is never sent to a remote model. If a persona lists several models, the
next one that is allowed takes the place of one that is not, or that failed before its first token. A model that the
turn itself names is never replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.cast import ModelChoice, ModelQuery
from footlights.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from footlights.cast import ChooseModel, Services
    from footlights.turn.turn import Turn


def choose_model(turn: Turn, services: Services) -> ModelChoice:
    """The choice for this turn, which may not be allowed. Raises `ModelError` if there is none."""
    query = ModelQuery(
        session_id=turn.session_id,
        params=turn.params,
        persona=turn.persona,
        remote_models=turn.remote_models,
        models=services.pool.statistics(),
    )
    choice = turn.cast.choose_model(query)
    if choice.model_id not in turn.cast.models:
        raise ModelError(sentence="The cast chose a model that it does not have.")
    return choice


def next_model(turn: Turn, services: Services, tried: Collection[str]) -> str | None:
    """The first model of the persona that is allowed and was not tried; None if there is none."""
    if turn.params.model is not None or not turn.cast.fallback:
        return None
    for model_id in turn.persona.models:
        is_allowed = turn.remote_models or not turn.cast.models[model_id].traits.remote
        if is_allowed and model_id not in tried:
            return model_id
    return None


def named_or_first(model_ids: Sequence[str]) -> ChooseModel:
    """The model choice of the standard cast."""

    def choose(query: ModelQuery) -> ModelChoice:
        if query.params.model is not None:
            return ModelChoice(query.params.model, "requested")
        if query.persona.models:
            return ModelChoice(query.persona.models[0], "persona")
        if not model_ids:
            raise ModelError(sentence="This cast has no model; its turns must name a workload.")
        return ModelChoice(model_ids[0], "default")

    return choose
