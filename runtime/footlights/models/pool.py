"""What a stage asks of whoever keeps its models: leases for turns, loads that are shared, slots that are fair."""

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
    """How one model of a stage is doing."""

    model_id: str
    traits: ModelTraits
    warm_state: WarmState
    """How ready it is now."""
    loading: bool
    """Whether it is being loaded."""
    turns: int
    """Turns that use it or wait for it."""
    rounds_running: int
    """Rounds that it generates now; of a model without slots they are not counted."""
    rounds_waiting: int
    """Rounds that wait for one of its slots."""


class ModelLease(Protocol):
    """One turn's hold on one model. While it lasts, the model is not unloaded."""

    @property
    def model(self) -> Model: ...

    @property
    def warm_state(self) -> WarmState:
        """How ready the model is for this turn now."""
        ...

    def claim_now(self) -> bool:
        """Take a slot, if the model is hot and one is free and nobody else waits for it."""
        ...

    async def load(self, report: Callable[[float], None]) -> None:
        """Wait until the model is hot. Turns that wait for the same load share it, and all hear of its progress."""
        ...

    async def claim(self) -> None:
        """Wait for a slot, unless the lease holds one. Sessions take turns."""
        ...

    def release(self) -> None:
        """Give the slot back, if the lease holds one: somebody else may generate meanwhile."""
        ...


class ModelPool(Protocol):
    """The models of a stage."""

    def open(self, loads: trio.Nursery) -> None:
        """From now on models may be loaded, as tasks of this nursery."""
        ...

    def lease(self, model_id: str, session_id: str) -> AbstractContextManager[ModelLease]:
        """A hold on a model for as long as the block takes."""
        ...

    def prewarm(self, model_id: str) -> None:
        """Begin to load a model, for whoever will want it. A plain call."""
        ...

    def statistics(self) -> tuple[ModelStatus, ...]:
        """How the models are doing, in the order of the cast."""
        ...

    async def close(self) -> None:
        """Unload what this pool has loaded. Nobody holds a lease any more."""
        ...
