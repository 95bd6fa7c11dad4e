"""One turn, performed: a nursery with its actors, wired by small channels.

The generator is the turn's own task, and the watchdog runs beside it. A turn whose model is hot pays for no
loader, and one that uses no tools for no tool runner.

A workload of an extension runs in the generator's place, under the same watchdog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.cast import ModelChoice
from footlights.events import WarmState
from footlights.extensions import InteractionContext
from footlights.models import Model, ToolExchange, ToolRequest
from footlights_actors.generator import generate
from footlights_actors.loader import load_models, select_hot
from footlights_actors.tool_runner import run_tools
from footlights_actors.watchdog import watch

if TYPE_CHECKING:
    from footlights.cast import Services
    from footlights.turn import Turn


async def perform(turn: Turn, services: Services) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, turn, services.limits, name=f"watchdog of {turn.turn_id}")
        if turn.params.workload is None:
            await _npc_turn(turn, services, nursery)
        else:
            workload = services.cast.workloads.get(turn.params.workload)
            assert workload is not None, "the stage refuses turns that name an unknown workload"
            await workload.run(InteractionContext(turn, services.limits, services.committed_world))
        nursery.cancel_scope.cancel(reason="the turn said all it had to say")


async def _npc_turn(turn: Turn, services: Services, nursery: trio.Nursery) -> None:
    await generate(turn, services, _ModelDesk(turn, services, nursery), _ToolDesk(turn, services, nursery))


class _ModelDesk:
    """Starts the loader when the first model is asked for that is not hot."""

    def __init__(self, turn: Turn, services: Services, nursery: trio.Nursery) -> None:
        self._turn = turn
        self._services = services
        self._nursery = nursery
        self._choices: trio.MemorySendChannel[ModelChoice] | None = None
        self._ready: trio.MemoryReceiveChannel[Model] | None = None

    async def get(self, choice: ModelChoice) -> Model:
        model = self._services.cast.models[choice.model_id]
        if model.warm_state is WarmState.HOT:
            select_hot(self._turn, choice)
            return model
        if self._choices is None or self._ready is None:
            self._choices, choices = trio.open_memory_channel[ModelChoice](1)
            ready, self._ready = trio.open_memory_channel[Model](1)
            self._nursery.start_soon(
                load_models,
                self._turn,
                self._services.cast.models,
                choices,
                ready,
                name=f"loader of {self._turn.turn_id}",
            )
        await self._choices.send(choice)
        return await self._ready.receive()


class _ToolDesk:
    """Starts the tool runner when the first tool is asked for."""

    def __init__(self, turn: Turn, services: Services, nursery: trio.Nursery) -> None:
        self._turn = turn
        self._services = services
        self._nursery = nursery
        self._rounds: trio.MemorySendChannel[tuple[ToolRequest, ...]] | None = None
        self._results: trio.MemoryReceiveChannel[tuple[ToolExchange, ...]] | None = None

    async def run(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolExchange, ...]:
        if self._rounds is None or self._results is None:
            self._rounds, rounds = trio.open_memory_channel[tuple[ToolRequest, ...]](1)
            results, self._results = trio.open_memory_channel[tuple[ToolExchange, ...]](1)
            self._nursery.start_soon(
                run_tools, self._turn, self._services, rounds, results, name=f"tools of {self._turn.turn_id}"
            )
        await self._rounds.send(requests)
        return await self._results.receive()
