"""Model access of a turn: the lease of its model, and what happens when that fails before its first token.

A model that is unavailable (`ModelUnavailable`: not reachable, limited, failing, not loaded) is asked once more if it
said when, and that is within `retry_wait`; if it went cold meanwhile, it is selected and loaded again first. Then the
next allowed model of the persona takes its place, with a `model_selected` that says what was wrong. After the first
token nothing is tried again: the lifecycle table has no step for it.

The lease of a model that is replaced ends before the next one begins, because the next may need its memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from footlights.errors import ModelUnavailable, RemoteNotAllowed
from footlights.events import ModelSelected, WarmState
from footlights.failures import model_failure
from footlights.notebooks.note_ids import recalled_ext
from footlights.turn.lifecycle import Step
from footlights.turn.model_phase import FALLBACK
from footlights.turn.timeline import Part
from footlights_actors.loader import select_hot
from footlights_actors.turn.model_choice import choose_model, next_model

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import ExitStack

    from footlights.cast import Services
    from footlights.errors import ModelError
    from footlights.events import Ext
    from footlights.models.pool import ModelLease
    from footlights.turn.turn import Turn

log = logging.getLogger("footlights.models")


class ModelAccess:
    """The models of one turn. `load` makes a model ready that is not, and returns why it is unavailable, if it is."""

    def __init__(
        self,
        turn: Turn,
        services: Services,
        leases: ExitStack,
        load: Callable[[ModelSelected, ModelLease], Awaitable[ModelUnavailable | None]],
    ) -> None:
        self._turn = turn
        self._services = services
        self._leases = leases
        self._load = load
        self._lease: ModelLease | None = None
        self._tried: list[str] = []
        self._ext: Ext | None = None
        """What `model_selected` says about recalled notes."""
        self._reason = ""
        """The reason for the first choice."""
        self._may_retry = True
        """Whether the current model may be asked once more."""

    async def first(self, recalled: Sequence[str] = ()) -> ModelLease:
        """The turn's model, ready to generate. `recalled` are the ids of the notes in its prompt, for `model_selected`.

        Raises `ModelError`.
        """
        self._ext = recalled_ext(recalled)
        choice = choose_model(self._turn, self._services)
        self._reason = choice.reason
        if self._turn.cast.models[choice.model_id].traits.remote and not self._turn.remote_models:
            self._tried.append(choice.model_id)
            return await self._replace(RemoteNotAllowed())
        return await self._take(ModelSelected(choice.model_id, choice.reason, ext=self._ext))

    async def after(self, error: ModelUnavailable) -> ModelLease:
        """The model to ask after this failure of the current one: the same, or another. Raises `error` without any."""
        try:
            if self._lease is not None and self._is_worth_waiting(error):
                await self._wait(error)
                self._may_retry = False
                return self._lease if self._lease.warm_state is WarmState.HOT else await self._take_again()
            return await self._replace(error)
        finally:
            del error  # breaks the reference cycle of traceback and frame

    def _is_worth_waiting(self, error: ModelUnavailable) -> bool:
        longest = self._services.limits.retry_wait
        is_near = error.retry_after is not None and longest > 0 and 0 <= error.retry_after <= longest
        return is_near and self._may_retry and self._has_said_nothing

    @property
    def _has_said_nothing(self) -> bool:
        return self._turn.lifecycle.may(Step.MODEL_FALLBACK)

    async def _wait(self, error: ModelUnavailable) -> None:
        assert error.retry_after is not None
        log.warning(
            "%s of %s: %s asks to wait for %.1f s (%s)",
            self._turn.turn_id,
            self._turn.session_id,
            self._tried[-1],
            error.retry_after,
            model_failure(error).code,
        )
        with self._turn.in_line(Part.RETRY):
            await trio.sleep(error.retry_after)

    async def _take_again(self) -> ModelLease:
        """Select the current model once more, because it has to be loaded."""
        self._leases.close()
        return await self._take(ModelSelected(self._tried[-1], self._reason, ext=self._ext))

    async def _replace(self, error: ModelError) -> ModelLease:
        try:
            model_id = next_model(self._turn, self._services, self._tried) if self._has_said_nothing else None
            if model_id is None:
                raise error
            failure = model_failure(error)
        finally:
            del error  # as above
        log.warning(
            "%s of %s: %s takes the place of %s, which failed (%s): %s",
            self._turn.turn_id,
            self._turn.session_id,
            model_id,
            self._tried[-1],
            failure.code,
            failure.message,
        )
        self._lease = None
        self._leases.close()
        return await self._take(ModelSelected(model_id, FALLBACK, failure, ext=self._ext))

    async def _take(self, selected: ModelSelected) -> ModelLease:
        self._may_retry = selected.model_id not in self._tried
        self._tried.append(selected.model_id)
        lease = self._leases.enter_context(self._services.pool.lease(selected.model_id, self._turn.session_id))
        if lease.claim_now():
            select_hot(self._turn, selected)
        else:
            failure = await self._load(selected, lease)
            try:
                if failure is not None:
                    return await self._replace(failure)
            finally:
                del failure  # as above
        self._lease = lease
        return lease
