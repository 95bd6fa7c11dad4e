"""The turn with Footlights: the standard cast with a custom model, a stage, a session, one subscriber.

Its stages are the standard actors: the turn is accepted, the loader selects a model and has it ready, the generator
speaks, the committer judges and commits. Every guarantee is on: numbers, replay, limits, one terminal, a commit in the
chain of a ledger in memory. A turn counts as played when the consumer has its `commit_final`, which no peer has.

Tokens that wait for the consumer are joined; the joined event declares their number, and they count as events.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from footlights import EventType, MemoryLedger, ModelTraits, StreamEvent, TokenDelta, WarmState, open_stage
from footlights_actors import standard_cast
from peers.kit import TOKEN, TOKENS, Cancelled, Consumer, Played, serve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from footlights import InteractionSession, Prompt, Stage, Subscription
    from peers.kit import Manner


class Footlights:
    def play(self, turns: int, manner: Manner) -> Played:
        return trio.run(_play, turns, manner)

    def cancel(self, turns: int) -> Cancelled:
        return trio.run(_cancel, turns)

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        return trio.run(_hold, turns, weigh)


class Model:
    """The same async generator as the peers on asyncio have. `silent_at` is when its last turn was closed."""

    model_id = "peer"
    traits = ModelTraits()
    warm_state = WarmState.HOT

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self.silent_at = 0.0

    async def load(self, report: Callable[[float], None]) -> None:
        """It is always hot."""

    async def unload(self) -> None:
        """It holds nothing."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[str, None]:
        waits = self._manner in {"yielding", "endless"}
        said = 0
        try:
            while said < TOKENS or self._manner == "endless":
                yield TOKEN
                said += 1
                if waits:
                    await trio.lowlevel.checkpoint()
            if self._manner == "stalled":
                await trio.sleep_forever()
        finally:
            self.silent_at = perf_counter()


async def _play(turns: int, manner: Manner) -> Played:
    consumer = Consumer()
    async with open_stage(standard_cast(Model(manner)), ledger=MemoryLedger()) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            consumer.start()
            for _ in range(turns):
                consumer.ask()
                turn_id = session.begin_turn("Go on.")
                async for event in stream.until_commit(turn_id):
                    _take(consumer, event)
                consumer.check()
            consumer.stop()
    return consumer.played


async def _cancel(turns: int) -> Cancelled:
    cancelled = Cancelled()
    model = Model("endless")
    async with open_stage(standard_cast(model), ledger=MemoryLedger()) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            for _ in range(turns):
                await _cancel_one(session, stream, model, cancelled)
    return cancelled


async def _cancel_one(session: InteractionSession, stream: Subscription, model: Model, cancelled: Cancelled) -> None:
    consumer = Consumer()
    halfway = trio.Event()
    asked = told = 0.0

    async def cancel_when_halfway() -> None:
        nonlocal asked
        await halfway.wait()
        asked = perf_counter()
        session.cancel(turn_id)

    async with trio.open_nursery() as nursery:
        turn_id = session.begin_turn("Go on.")
        nursery.start_soon(cancel_when_halfway)
        async for event in stream.until_commit(turn_id):
            if event.event_type is EventType.TURN_INTERRUPTED:
                told = perf_counter()
            _take(consumer, event)
            if not halfway.is_set() and consumer.has_heard_half:
                halfway.set()
    cancelled.note(asked, told, model.silent_at)


async def _hold(turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
    async with open_stage(standard_cast(Model("stalled")), ledger=MemoryLedger()) as stage:
        before = weigh()
        async with trio.open_nursery() as players:
            for _ in range(turns):
                players.start_soon(_stay, stage)
            await wait_all_tasks_blocked()
            after = weigh()
            players.cancel_scope.cancel()
    return before, after


async def _stay(stage: Stage) -> None:
    consumer = Consumer()
    session = stage.start()
    async with session.subscribe() as stream:
        consumer.ask()
        turn_id = session.begin_turn("Go on.")
        async for event in stream.until_commit(turn_id):
            _take(consumer, event)


def _take(consumer: Consumer, event: StreamEvent) -> None:
    payload = event.payload
    joined = sum(missing.end_seq - missing.start_seq + 1 for missing in payload.dropped_seq_ranges)
    if isinstance(payload, TokenDelta):
        consumer.hear(payload.delta, joined)
    else:
        consumer.take(joined)


if __name__ == "__main__":
    serve(Footlights(), ["footlights", "trio"])
