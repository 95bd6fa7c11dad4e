"""Performance of a turn: a nursery with its actors, connected by channels.

The generator runs in the turn's own task. The loader and the tool runner are started when they are first needed, so a
turn with a hot model and without tools has no further task. A workload of an extension replaces the generator.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from footlights.authority import check_intent, decisions
from footlights.errors import ModelUnavailable, StrayCancel
from footlights.turn.workloads import InteractionContext
from footlights_actors.generator import generate
from footlights_actors.loader import load_model
from footlights_actors.tool_runner import run_tools
from footlights_actors.turn.model_access import ModelAccess

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.cast import Services
    from footlights.events import ModelSelected
    from footlights.models.model import ToolExchange, ToolRequest
    from footlights.models.pool import ModelLease
    from footlights.turn.turn import Turn

Request = TypeVar("Request")
Reply = TypeVar("Reply")


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

    def start_tool_runner(
        rounds: trio.MemoryReceiveChannel[tuple[ToolRequest, ...]],
        results: trio.MemorySendChannel[tuple[ToolExchange, ...]],
    ) -> None:
        nursery.start_soon(run_tools, turn, services, rounds, results, name=f"tools of {turn.turn_id}")

    tool_runner = _LazyActor(start_tool_runner)

    await generate(turn, services, ModelAccess(turn, services, leases, load), tool_runner.ask)


class _LazyActor(Generic[Request, Reply]):
    """An actor behind two channels, which the first request starts."""

    def __init__(
        self,
        start: Callable[[trio.MemoryReceiveChannel[Request], trio.MemorySendChannel[Reply]], None],
    ) -> None:
        self._start = start
        self._requests: trio.MemorySendChannel[Request] | None = None
        self._replies: trio.MemoryReceiveChannel[Reply] | None = None

    async def ask(self, request: Request) -> Reply:
        if self._requests is None or self._replies is None:
            self._requests, requests = trio.open_memory_channel[Request](1)
            replies, self._replies = trio.open_memory_channel[Reply](1)
            self._start(requests, replies)
        await self._requests.send(request)
        return await self._replies.receive()
