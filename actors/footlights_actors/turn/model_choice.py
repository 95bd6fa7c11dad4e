"""Model choice of a turn: the model that it names, that of its persona, or the choice of the cast.

In every case, text of a session without consent is never sent to a remote model. Such a turn fails; it never falls back
to another model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.cast import ModelChoice, ModelQuery
from footlights.errors import ModelError, RemoteNotAllowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.cast import ChooseModel, Services
    from footlights.turn.turn import Turn


def choose_model(turn: Turn, services: Services) -> ModelChoice:
    """The choice for this turn. Raises `ModelError` if no model is permitted."""
    query = ModelQuery(
        session_id=turn.session_id,
        params=turn.params,
        persona=services.cast.persona(turn.params.persona),
        remote_models=turn.remote_models,
        models=services.pool.statistics(),
    )
    choice = services.cast.choose_model(query)
    model = services.cast.models.get(choice.model_id)
    if model is None:
        raise ModelError("The cast chose a model that it does not have.")
    if model.traits.remote and not turn.remote_models:
        raise RemoteNotAllowed("The model is remote, and the session has not given consent.")
    return choice


def named_or_first(model_ids: Sequence[str]) -> ChooseModel:
    """The model choice of the standard cast."""

    def choose(query: ModelQuery) -> ModelChoice:
        if query.params.model is not None:
            return ModelChoice(query.params.model, "requested")
        if query.persona.model is not None:
            return ModelChoice(query.persona.model, "persona")
        if not model_ids:
            raise ModelError("This cast has no model; its turns must name a workload.")
        return ModelChoice(model_ids[0], "default")

    return choose
