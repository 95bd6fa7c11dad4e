"""The turn with Pydantic AI: an agent whose model is a `FunctionModel`, read with `run_stream_events`.

That is its documented way to see a run as events, and `FunctionModel` its documented way to bring a model of one's own:
an async generator of text. What a turn has besides the model are the stages that agents have: instructions that depend
on the run, a processor of the history, and a validator of the output, each doing nothing, and async, because plain
functions would be taken to worker threads. They are passed once a run; token deltas go from the model straight to the
consumer, as is natural there. (`run_stream` and `iter` were tried too. They play a fifth to a half more turns, but the
one gives no events, and the other leaves the run to the consumer's task.)

There is no event for an accepted turn: the first that the consumer gets carries the first token, and both latencies are
taken there. The last is the result of the run. A run is cancelled with the `cancel` of its events, which is made for
calls from other tasks; the consumer then gets `RunCancelled`.
"""

# pyright: basic, reportMissingImports=false
# Pydantic AI is installed only in the environment of this peer, where no type checker runs.

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pydantic_ai import (
    Agent,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.models.function import AgentInfo, FunctionModel

from peers.asyncio_model import Model
from peers.kit import TOKENS, Cancelled, Consumer, Played, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peers.kit import Manner


class PydanticAI:
    def play(self, turns: int, manner: Manner) -> Played:
        return asyncio.run(_play(turns, manner))

    def cancel(self, turns: int) -> Cancelled:
        return asyncio.run(_cancel(turns))

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        return asyncio.run(_hold(turns, weigh))


def _agent(model: Model) -> Any:
    def speak(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        return model.speak()

    agent = Agent(FunctionModel(stream_function=speak), capabilities=[ProcessHistory(_keep)])

    @agent.instructions
    async def persona(_context: RunContext) -> str:
        return "You keep an inn."

    @agent.output_validator
    async def accept(output: str) -> str:
        return output

    return agent


async def _keep(messages: list[ModelMessage]) -> list[ModelMessage]:
    return messages


async def _play(turns: int, manner: Manner) -> Played:
    agent = _agent(Model(manner))
    consumer = Consumer()
    consumer.start()
    for _ in range(turns):
        consumer.ask()
        async with agent.run_stream_events("Go on.") as events:
            async for event in events:
                _take(consumer, event)
        consumer.check()
    consumer.stop()
    return consumer.played


async def _cancel(turns: int) -> Cancelled:
    model = Model("endless")
    agent = _agent(model)
    cancelled = Cancelled()
    for _ in range(turns):
        halfway = asyncio.Event()
        async with agent.run_stream_events("Go on.") as events:
            listening = asyncio.create_task(_listen_until_cancelled(events, halfway))
            await halfway.wait()
            asked = perf_counter()
            events.cancel()
            told = await listening
        cancelled.note(asked, told, model.silent_at)
    return cancelled


async def _listen_until_cancelled(events: Any, halfway: asyncio.Event) -> float:
    consumer = Consumer()
    try:
        async for event in events:
            _take(consumer, event)
            if consumer.has_heard_half:
                halfway.set()
    except RunCancelled:
        return perf_counter()
    raise AssertionError("An endless turn has ended.")


async def _hold(turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
    agent = _agent(Model("stalled"))
    await _with_open_turns(agent, 1, lambda: 0)  # what is made once, for the first turn, weighs on no player
    before = weigh()
    return before, await _with_open_turns(agent, turns, weigh)


async def _with_open_turns(agent: Any, turns: int, weigh: Callable[[], int]) -> int:
    consumers = [Consumer() for _ in range(turns)]
    listening = [asyncio.create_task(_listen(agent, consumer)) for consumer in consumers]
    while any(consumer.played.given < TOKENS for consumer in consumers):  # noqa: ASYNC110 - nothing is timed here
        await asyncio.sleep(0)
    weight = weigh()
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    return weight


async def _listen(agent: Any, consumer: Consumer) -> None:
    async with agent.run_stream_events("Go on.") as events:
        async for event in events:
            _take(consumer, event)


def _take(consumer: Consumer, event: Any) -> None:
    match event:
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            consumer.hear(text)
        case PartStartEvent(part=TextPart(content=text)):
            consumer.hear(text)
        case _:
            consumer.take()


if __name__ == "__main__":
    serve(PydanticAI(), ["pydantic-ai-slim"])
