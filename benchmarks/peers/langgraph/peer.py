"""The turn with LangGraph: a compiled graph with a node for each stage, streamed with `stream_mode="custom"`.

Written as its streaming guide has it for models that are not LangChain's: the node that calls the model writes each
token to the stream writer, and the consumer is an `async for` over `astream`. The first node says that the turn was
accepted, the last one speaks and ends it. Tokens go from the writer straight to the consumer and pass no other node,
as is natural there, so more stages cost it less than they cost a pipeline. `stream_mode="messages"` would need a chat
model and wrap each token in a message, which is more work. There is no checkpointer: nothing is kept. The graph is
compiled once.

A run has no call that stops it at once, so it is cancelled as everything on asyncio is: by cancelling the task that
reads the stream. The consumer knows when the cancellation comes out of `astream`.
"""

# pyright: basic, reportMissingImports=false
# LangGraph is installed only in the environment of this peer, where no type checker runs.

from __future__ import annotations

import asyncio
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

from peers.asyncio_model import Model
from peers.kit import TOKENS, Cancelled, Consumer, Played, serve, stages_asked_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.kit import Manner


class State(TypedDict, total=False):
    said: str
    answer: str


class LangGraph:
    def __init__(self, stages: int) -> None:
        self._stages = stages

    def play(self, turns: int, manner: Manner) -> Played:
        return asyncio.run(self._play(turns, manner))

    def cancel(self, turns: int) -> Cancelled:
        return asyncio.run(self._cancel(turns))

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        return asyncio.run(self._hold(turns, weigh))

    async def _play(self, turns: int, manner: Manner) -> Played:
        graph = _graph(Model(manner), self._stages)
        consumer = Consumer()
        consumer.start()
        for _ in range(turns):
            await _listen(graph, consumer)
            consumer.check()
        consumer.stop()
        return consumer.played

    async def _cancel(self, turns: int) -> Cancelled:
        model = Model("endless")
        graph = _graph(model, self._stages)
        cancelled = Cancelled()
        for _ in range(turns):
            halfway = asyncio.Event()
            listening = asyncio.create_task(_listen_until_cancelled(graph, halfway))
            await halfway.wait()
            asked = perf_counter()
            listening.cancel()
            told = await listening
            cancelled.note(asked, told, model.silent_at)
        return cancelled

    async def _hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        graph = _graph(Model("stalled"), self._stages)
        await _with_open_turns(graph, 1, lambda: 0)  # what is made once, for the first turn, weighs on no player
        before = weigh()
        return before, await _with_open_turns(graph, turns, weigh)


def _graph(model: Model, stages: int) -> Any:
    async def accept(_state: State) -> State:
        get_stream_writer()(("accepted", ""))
        return {}

    async def pass_on(_state: State) -> State:
        return {}

    async def generate(_state: State) -> State:
        write = get_stream_writer()
        pieces: list[str] = []
        if stages == 1:
            write(("accepted", ""))
        async with aclosing(model.speak()) as tokens:
            async for token in tokens:
                pieces.append(token)
                write(("token", token))
        answer = "".join(pieces)
        write(("final", answer))
        return {"answer": answer}

    before = [accept, *[pass_on] * (stages - 2)] if stages > 1 else []
    building = StateGraph(State)
    previous = START
    for number, node in enumerate([*before, generate]):
        building.add_node(f"stage {number}", node)
        building.add_edge(previous, f"stage {number}")
        previous = f"stage {number}"
    building.add_edge(previous, END)
    return building.compile()


async def _listen(graph: Any, consumer: Consumer, halfway: asyncio.Event | None = None) -> None:
    consumer.ask()
    async for kind, text in graph.astream({"said": "Go on."}, stream_mode="custom"):
        if kind == "token":
            consumer.hear(text)
            if halfway is not None and consumer.has_heard_half:
                halfway.set()
        else:
            consumer.take()


async def _listen_until_cancelled(graph: Any, halfway: asyncio.Event) -> float:
    try:
        await _listen(graph, Consumer(), halfway)
    except asyncio.CancelledError:
        return perf_counter()
    raise AssertionError("An endless turn has ended.")


async def _with_open_turns(graph: Any, turns: int, weigh: Callable[[], int]) -> int:
    consumers = [Consumer() for _ in range(turns)]
    listening = [asyncio.create_task(_listen(graph, consumer)) for consumer in consumers]
    while any(consumer.played.given < TOKENS + 1 for consumer in consumers):  # noqa: ASYNC110 - nothing is timed here
        await asyncio.sleep(0)
    weight = weigh()
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    return weight


if __name__ == "__main__":
    serve(LangGraph(stages_asked_for()), ["langgraph", "langchain-core"])
