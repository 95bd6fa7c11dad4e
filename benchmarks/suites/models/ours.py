"""Our side of the comparison: the local model through a session, a subscriber and a turn."""

from __future__ import annotations

from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from footlights import ModelLoading, ModelReady, TokenDelta
from footlights_actors.models.local.model import LocalModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import InteractionSession, Prompt
    from footlights.events import Payload
    from footlights.models.model import Output


class WatchedModel(LocalModel):
    """A local model that records its last prompt, and when the work of its last round ended."""

    prompt: Prompt | None = None
    free: trio.Event
    free_at = 0.0

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        self.prompt = prompt
        self.free = trio.Event()
        try:
            async with aclosing(super().generate(prompt)) as output:
                async for item in output:
                    yield item
        finally:
            self.free_at = perf_counter()
            self.free.set()


class OurTurns:
    """Turns of one session, timed at the subscriber."""

    def __init__(self, session: InteractionSession, model: WatchedModel) -> None:
        self._session = session
        self._model = model

    async def first_token(self, said: str) -> float:
        async with self._session.subscribe() as stream:
            began = perf_counter()
            turn_id = self._session.begin_turn(said)
            async for event in stream:
                if isinstance(event.payload, TokenDelta):
                    break
            seen = perf_counter()
        await self._end(turn_id)
        return seen - began

    async def cancel(self, said: str, *, speaking: bool, after: float) -> float:
        turn_id = await self._begin(said, TokenDelta if speaking else ModelReady)
        await trio.sleep(after)
        asked_at = perf_counter()
        self._session.cancel(turn_id)
        await self._model.free.wait()
        await self._end(turn_id)
        return self._model.free_at - asked_at

    async def speak(self, said: str, until: trio.Event) -> None:
        """Generate until the event is set."""
        turn_id = await self._begin(said, TokenDelta)
        await until.wait()
        await self._end(turn_id)

    async def cold_start(self, said: str) -> tuple[float, float]:
        """Seconds from `begin_turn` until the subscriber has `model_loading`, and until it has `model_ready`."""
        seen: dict[type[Payload], float] = {}
        async with self._session.subscribe() as stream:
            began = perf_counter()
            turn_id = self._session.begin_turn(said)
            async for event in stream:
                seen.setdefault(type(event.payload), perf_counter())
                if isinstance(event.payload, TokenDelta):
                    break
        await self._end(turn_id)
        return seen[ModelLoading] - began, seen[ModelReady] - began

    async def _begin(self, said: str, awaited: type[Payload]) -> str:
        async with self._session.subscribe() as stream:
            turn_id = self._session.begin_turn(said)
            async for event in stream:
                if isinstance(event.payload, awaited):
                    break
        return turn_id

    async def _end(self, turn_id: str) -> None:
        self._session.cancel(turn_id)
        await self._session.finalize(turn_id).wait()
        await self._model.free.wait()
