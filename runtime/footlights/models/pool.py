"""Model pool: the protocol for leases, shared loads and fair slots. `footlights_actors.models.pool` implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import trio

    from footlights.events import WarmState
    from footlights.models.model import Model, ModelTraits


@frozen(kw_only=True)
class ModelStatus:
    """Status of one model of a stage."""

    model_id: str
    traits: ModelTraits
    warm_state: WarmState
    """Its current readiness."""
    loading: bool
    """Whether it is loading."""
    turns: int
    """Turns that use it or wait for it."""
    rounds_running: int
    """Rounds that it generates now; not counted for a model without slots."""
    rounds_waiting: int
    """Rounds that wait for one of its slots."""


class ModelLease(Protocol):
    """One turn's lease of one model. The model is not unloaded while a lease is held."""

    @property
    def model(self) -> Model: ...

    @property
    def warm_state(self) -> WarmState:
        """The model's current readiness for this turn."""
        ...

    def claim_now(self) -> bool:
        """Take a slot if the model is hot, a slot is free, and no other lease waits for it."""
        ...

    async def load(self, report: Callable[[float], None]) -> None:
        """Wait until the model is hot. Turns that wait for the same model share one load and its progress reports."""
        ...

    async def claim(self) -> None:
        """Wait for a slot, unless the lease holds one. Slots go round-robin over sessions."""
        ...

    def release(self) -> None:
        """Release the slot, if the lease holds one, so that another turn can generate."""
        ...


class ModelPool(Protocol):
    """The models of a stage."""

    def open(self, loads: trio.Nursery) -> None:
        """Allow loads, as tasks of this nursery."""
        ...

    def lease(self, model_id: str, session_id: str) -> AbstractContextManager[ModelLease]:
        """A lease of a model for the duration of the block."""
        ...

    def prewarm(self, model_id: str) -> None:
        """Start to load a model before a turn needs it. A plain call."""
        ...

    def statistics(self) -> tuple[ModelStatus, ...]:
        """The status of each model, in the order of the cast."""
        ...

    async def close(self) -> None:
        """Unload the models that this pool has loaded. Called when no lease is held."""
        ...
