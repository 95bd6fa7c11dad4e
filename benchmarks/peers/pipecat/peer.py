"""The turn with Pipecat: a pipeline of frame processors that lives as long as the session.

Written as its guides have it: the first processor stands where a language model stands, takes the context frame, and
pushes `LLMFullResponseStartFrame`, an `LLMTextFrame` for each token and `LLMFullResponseEndFrame`; the others push
every frame on, as the guide to custom processors demands; the last one is the consumer, where a transport would be. A
real pipeline has more between the two (aggregators, speech), so passing on without any work is kind to it. Those in the
middle are in direct mode, without a queue and a task of their own, as Pipecat's own quick filters are: that makes half
as many turns more, and a cancel takes less than half of the time. What costs and is of no use here is off: client
messages (RTVI), turn tracking, the idle timer, logging.

A turn is cancelled with an `InterruptionFrame`, as its guide to interruptions says: a system frame, which overtakes
whatever waits; each processor with a queue drops it and cancels its task. The consumer knows when it has it.
"""

# pyright: basic, reportMissingImports=false
# Pipecat is installed only in the environment of this peer, where no type checker runs.

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from loguru import logger
from pipecat.frames.frames import (
    Frame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.workers.runner import WorkerRunner

from peers.asyncio_model import Model
from peers.kit import TOKENS, Cancelled, Consumer, Played, serve, stages_asked_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from peers.kit import Manner


class Generator(FrameProcessor):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        await self.push_frame(LLMFullResponseStartFrame())
        async with aclosing(self._model.speak()) as tokens:
            async for token in tokens:
                await self.push_frame(LLMTextFrame(token))
        await self.push_frame(LLMFullResponseEndFrame())


class PassOn(FrameProcessor):
    def __init__(self) -> None:
        super().__init__(enable_direct_mode=True)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)


class Listener(FrameProcessor):
    """Where a transport would be. It tells the host, by events, how far the turn is."""

    def __init__(self) -> None:
        super().__init__()
        self.consumer = Consumer()
        self.halfway = asyncio.Event()
        self.said = asyncio.Event()
        self.over = asyncio.Event()
        self.over_at = 0.0

    def expect_turn(self) -> None:
        for event in (self.halfway, self.said, self.over):
            event.clear()
        self.consumer.ask()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMTextFrame):
            self.consumer.hear(frame.text)
            if self.consumer.has_heard_half:
                self.halfway.set()
            if self.consumer.played.given == TOKENS + 1:
                self.said.set()
        elif isinstance(frame, LLMFullResponseStartFrame):
            self.consumer.take()
        elif isinstance(frame, LLMFullResponseEndFrame):
            self.consumer.take()
            self._end()
        elif isinstance(frame, InterruptionFrame):
            self._end()
        await self.push_frame(frame, direction)

    def _end(self) -> None:
        self.over_at = perf_counter()
        self.over.set()


class Session:
    def __init__(self, model: Model, stages: int) -> None:
        self.listener = Listener()
        processors = [Generator(model), *[PassOn() for _ in range(stages - 1)], self.listener]
        self.started = asyncio.Event()
        self.worker = PipelineWorker(
            Pipeline(processors),
            enable_rtvi=False,
            enable_turn_tracking=False,
            idle_timeout_secs=None,
        )

        @self.worker.event_handler("on_pipeline_started")
        async def started(_worker: PipelineWorker, _frame: Frame) -> None:
            self.started.set()

    async def begin_turn(self) -> None:
        self.listener.expect_turn()
        await self.worker.queue_frame(LLMContextFrame(LLMContext([{"role": "user", "content": "Go on."}])))


class Pipecat:
    def __init__(self, stages: int) -> None:
        self._stages = stages

    def play(self, turns: int, manner: Manner) -> Played:
        return asyncio.run(self._play(turns, manner))

    def cancel(self, turns: int) -> Cancelled:
        return asyncio.run(self._cancel(turns))

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        return asyncio.run(self._hold(turns, weigh))

    async def _play(self, turns: int, manner: Manner) -> Played:
        async with _open_sessions([Session(Model(manner), self._stages)]) as [session]:
            consumer = session.listener.consumer
            consumer.start()
            for _ in range(turns):
                await session.begin_turn()
                await session.listener.over.wait()
                consumer.check()
            consumer.stop()
        return consumer.played

    async def _cancel(self, turns: int) -> Cancelled:
        model = Model("endless")
        cancelled = Cancelled()
        async with _open_sessions([Session(model, self._stages)]) as [session]:
            for _ in range(turns):
                await session.begin_turn()
                await session.listener.halfway.wait()
                asked = perf_counter()
                await session.worker.queue_frame(InterruptionFrame())
                await session.listener.over.wait()
                cancelled.note(asked, session.listener.over_at, model.silent_at)
        return cancelled

    async def _hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        await self._with_open_turns(1, lambda: 0)  # what is made once, for the first turn, weighs on no player
        before = weigh()
        return before, await self._with_open_turns(turns, weigh)

    async def _with_open_turns(self, turns: int, weigh: Callable[[], int]) -> int:
        async with _open_sessions([Session(Model("stalled"), self._stages) for _ in range(turns)]) as sessions:
            for session in sessions:
                await session.begin_turn()
            for session in sessions:
                await session.listener.said.wait()
            return weigh()


@asynccontextmanager
async def _open_sessions(sessions: list[Session]) -> AsyncGenerator[list[Session], None]:
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(*[session.worker for session in sessions])
    running = asyncio.create_task(runner.run())
    for session in sessions:
        await session.started.wait()
    yield sessions
    await runner.cancel()
    await running


if __name__ == "__main__":
    logger.remove()
    serve(Pipecat(stages_asked_for()), ["pipecat-ai"])
