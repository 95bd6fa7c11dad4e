"""Performance of a turn: a nursery with its actors.

The generator and the tool runner take turns in the turn's own task. A loader is started when a model is not ready, so a
turn with a hot model has no further task. A workload of an extension replaces the generator.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import trio

from footlights.authority import check_intent, decisions
from footlights.errors import ModelUnavailable, StrayCancel
from footlights.turn.workloads import InteractionContext
from footlights_actors.generator import generate
from footlights_actors.loader import load_model
from footlights_actors.tool_runner import ToolRunner
from footlights_actors.turn.model_access import ModelAccess

if TYPE_CHECKING:
    from footlights.cast import Services
    from footlights.events import ModelSelected
    from footlights.models.pool import ModelLease
    from footlights.turn.turn import Turn


async def perform(turn: Turn, services: Services) -> None:
    # Leases end after the nursery, when no actor can claim a slot any more.
    with ExitStack() as leases:
        await _perform(turn, services, leases)


async def _perform(turn: Turn, services: Services, leases: ExitStack) -> None:
    _stage_answers(turn)
    returned = False
    async with trio.open_nursery() as nursery:
        if turn.params.workload is None:
            await _npc_turn(turn, services, nursery, leases)
        else:
            workload = turn.cast.workloads.get(turn.params.workload)
            assert workload is not None, "the stage refuses turns that name an unknown workload"
            await workload.run(InteractionContext(turn, services.limits, services.committed_world))
        returned = True
        if nursery.child_tasks:
            nursery.cancel_scope.cancel(reason="the turn is complete")
    if not returned:
        raise StrayCancel("The turn was cancelled by a scope of its own, and the nursery absorbed that.")


def _stage_answers(turn: Turn) -> None:
    """Stage the turn's answers to approvals before any other intent."""
    for decision in decisions(turn.params.approvals):
        turn.reserve_intent(check_intent(decision).size)
        turn.staged.append(decision)


async def _npc_turn(turn: Turn, services: Services, nursery: trio.Nursery, leases: ExitStack) -> None:
    async def load(selected: ModelSelected, lease: ModelLease) -> ModelUnavailable | None:
        sender, result = trio.open_memory_channel[ModelUnavailable | None](1)
        nursery.start_soon(load_model, turn, selected, lease, sender, name=f"loader of {turn.turn_id}")
        return await result.receive()

    await generate(turn, services, ModelAccess(turn, services, leases, load), ToolRunner(turn, services).run)
