"""The life of a flux, as one table."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from footlights.errors import IllegalTransition

if TYPE_CHECKING:
    from collections.abc import Mapping


class FluxState(StrEnum):
    """Where a flux is."""

    DORMANT = "dormant"
    """Nobody has said anything yet."""
    FLOWING = "flowing"
    """Dialogues may begin."""
    DRAINING = "draining"
    """Those that began go on; none begins."""
    STOPPED = "stopped"
    """All have ended. It stays so."""


class FluxStep(StrEnum):
    """What can happen to a flux."""

    BEGIN = "begin"
    """A dialogue begins."""
    DRAIN = "drain"
    """No more may begin."""
    RUN_DRY = "run_dry"
    """The last one has ended."""


FLUX_TRANSITIONS: Mapping[FluxState, Mapping[FluxStep, FluxState]] = MappingProxyType(
    {
        FluxState.DORMANT: {FluxStep.BEGIN: FluxState.FLOWING, FluxStep.DRAIN: FluxState.DRAINING},
        FluxState.FLOWING: {FluxStep.BEGIN: FluxState.FLOWING, FluxStep.DRAIN: FluxState.DRAINING},
        FluxState.DRAINING: {FluxStep.DRAIN: FluxState.DRAINING, FluxStep.RUN_DRY: FluxState.STOPPED},
        FluxState.STOPPED: {FluxStep.DRAIN: FluxState.STOPPED, FluxStep.RUN_DRY: FluxState.STOPPED},
    }
)


def after(state: FluxState, step: FluxStep) -> FluxState:
    """Where this step leads. Raises `IllegalTransition`."""
    following = FLUX_TRANSITIONS[state].get(step)
    if following is None:
        raise IllegalTransition(f"A flux that is {state} cannot take the step {step}.")
    return following
