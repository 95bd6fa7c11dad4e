"""A real model on this machine: it loads, streams, stops, calls tools, shares its slots, and leaves nothing behind.

These tests wait in real time, for the model: nothing else does its work.
"""

from __future__ import annotations

import os
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import EventType, InterruptReason, ModelLoading, ModelReady, TokenDelta, TurnInterrupted, open_stage
from footlights.errors import ModelError, PromptTooLarge, StreamError
from footlights.events import WarmState
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.models.sampling import Sampling
from footlights_actors import standard_cast
from footlights_actors.models.local.model import LocalModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

    from footlights import Stage
    from footlights.models.model import Output

PERSONA = "You keep a small inn and answer in one sentence."
GREEDY = Sampling(temperature=0)
ROOM = Prompt("A room?", system=PERSONA, sampling=GREEDY, max_tokens=8)
STORY = Prompt("Tell me a very long story.", sampling=GREEDY, max_tokens=1000)
MUCH_TO_READ = Prompt("word " * 1500, sampling=GREEDY, max_tokens=4)

BOOK = ToolOffer(
    "book_room",
    "Book a room for a guest.",
    {
        "type": "object",
        "properties": {"nights": {"type": "integer"}, "guest": {"type": "string", "maxLength": 20}},
        "required": ["nights", "guest"],
        "additionalProperties": False,
    },
)
POUR = ToolOffer(
    "pour",
    "Pour a drink.",
    {
        "type": "object",
        "properties": {"drink": {"enum": ["ale", "mead"]}},
        "required": ["drink"],
        "additionalProperties": False,
    },
)


@pytest.fixture(scope="module")
def shared(smollm2: Path) -> Generator[LocalModel]:
    """One process for all tests of this file; each of them loads it if the one before has not."""
    model = LocalModel(smollm2, model_id="smollm2", tool_choice="required")
    yield model
    trio.run(model.unload)


@pytest.fixture
async def model(shared: LocalModel) -> LocalModel:
    await shared.load(_ignore)
    return shared


def _ignore(progress: float) -> None:
    del progress


def _nothing() -> None:
    pass


async def _all(model: LocalModel, prompt: Prompt) -> list[Output]:
    async with aclosing(model.generate(prompt)) as output:
        return [item async for item in output if item]  # without the signs of life


def _text(output: list[Output]) -> str:
    return "".join(item for item in output if isinstance(item, str))


@pytest.mark.shows("gateway-93")
async def test_tokens_stream_and_the_cost_is_the_models_own_count(model: LocalModel) -> None:
    *words, usage = await _all(model, ROOM)
    assert len(words) > 3
    assert all(isinstance(word, str) and word for word in words)
    assert isinstance(usage, Usage)
    assert usage.output_tokens == ROOM.max_tokens
    assert usage.input_tokens is not None
    assert usage.input_tokens > 10


async def test_without_temperature_it_says_the_same_again(model: LocalModel) -> None:
    await _all(model, ROOM)  # from here on its slot has read the prompt, and computes the same
    first = _text(await _all(model, ROOM))
    assert first
    assert _text(await _all(model, ROOM)) == first


async def test_while_it_reads_it_gives_signs_of_life(model: LocalModel) -> None:
    async with aclosing(model.generate(MUCH_TO_READ)) as output:
        assert [await anext(output) for _ in range(3)] == [""] * 3


async def test_cancelled_while_it_speaks_its_slots_are_free(model: LocalModel) -> None:
    threads = threading.active_count()
    for _ in range(3):  # more often than it has slots
        async with aclosing(model.generate(STORY)) as output:
            while await anext(output) == "":
                pass
    assert _text(await _all(model, ROOM))
    assert threading.active_count() <= threads  # trio lets an idle one go after a while


async def test_cancelled_while_it_reads_its_slots_are_free(model: LocalModel) -> None:
    """Reading it all takes many times as long as is waited here."""
    for _ in range(3):
        with trio.move_on_after(0.1) as scope:
            await _all(model, MUCH_TO_READ)
        assert scope.cancelled_caught
    *words, _ = await _all(model, ROOM)
    assert words


async def test_a_tool_call_is_held_to_its_schema(model: LocalModel) -> None:
    prompt = Prompt("I am Ada. Book me a room for 2 nights.", sampling=GREEDY, max_tokens=80, tools=(BOOK, POUR))
    call, usage = await _all(model, prompt)
    assert isinstance(call, ToolRequest)
    assert call.tool_name == "book_room"
    assert isinstance(call.arguments["nights"], int)
    assert isinstance(call.arguments["guest"], str)
    assert set(call.arguments) == {"nights", "guest"}
    assert isinstance(usage, Usage)


async def test_after_its_tools_it_speaks(model: LocalModel) -> None:
    exchange = ToolExchange(ToolRequest("pour", {"drink": "mead"}), {"poured": "mead"})
    prompt = Prompt("A mead!", sampling=GREEDY, max_tokens=6, tools=(POUR,), rounds=(ToolRound("", (exchange,)),))
    assert _text(await _all(model, prompt))


async def test_a_tool_call_that_its_limit_cuts_off_is_an_error(model: LocalModel) -> None:
    with pytest.raises(StreamError, match="cut off"):
        await _all(model, Prompt("A mead!", sampling=GREEDY, max_tokens=3, tools=(POUR,)))


async def test_a_schema_that_it_cannot_follow_is_an_error_and_it_lives_on(model: LocalModel) -> None:
    broken = ToolOffer("pour", "Pour.", {"type": "object", "properties": {"drink": {"$ref": "#/nowhere"}}})
    with pytest.raises(ModelError, match="refused"):
        await _all(model, Prompt("A mead!", max_tokens=3, tools=(broken,)))
    assert _text(await _all(model, ROOM))


async def test_a_prompt_that_is_too_long_is_an_error_that_does_not_quote_it(model: LocalModel) -> None:
    with pytest.raises(PromptTooLarge, match="longer than") as caught:
        await _all(model, Prompt("password " * 3000))
    assert "password" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_two_sessions_share_its_slots(model: LocalModel) -> None:
    """Both speak before either is done."""
    async with (
        open_stage(standard_cast(model)) as stage,
        aclosing(_words(stage)) as first,
        aclosing(_words(stage)) as second,
    ):
        assert await anext(first)
        assert await anext(second)
        assert await anext(first)


async def _words(stage: Stage) -> AsyncGenerator[str]:
    session = stage.start()
    async with session.subscribe() as stream:
        session.begin_turn("Tell me a very long story.")
        async for event in stream:
            if isinstance(event.payload, TokenDelta):
                yield event.payload.delta


async def test_a_turn_on_a_cold_model_shows_its_loading_and_may_be_cancelled(smollm2: Path) -> None:
    model = LocalModel(smollm2, model_id="smollm2")
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Tell me a very long story.")
            events = []
            async for event in stream.until_commit(turn_id):
                events.append(event)
                if event.event_type is EventType.TOKEN_DELTA:
                    session.cancel(turn_id)
    payloads = [event.payload for event in events]
    assert next(each for each in payloads if isinstance(each, ModelLoading)).cold_start
    (ready,) = [each for each in payloads if isinstance(each, ModelReady)]
    assert ready.load_ms > 0
    (end,) = [each for each in payloads if isinstance(each, TurnInterrupted)]
    assert end.reason is InterruptReason.CANCELED
    await model.unload()


class Watched(LocalModel):
    """Looks at the turn as the load begins, and counts what the loop does meanwhile."""

    def __init__(self, path: Path, seen: list[EventType]) -> None:
        super().__init__(path, model_id="smollm2")
        self.before: list[EventType] = []
        self.steps = 0
        self._seen = seen

    async def load(self, report: Callable[[float], None]) -> None:
        await trio.testing.wait_all_tasks_blocked()
        self.before = list(self._seen)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._count)
            await super().load(report)
            nursery.cancel_scope.cancel()

    async def _count(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.steps += 1


async def test_its_loading_is_shown_before_it_begins_and_delays_no_other_turn(smollm2: Path) -> None:
    seen: list[EventType] = []
    model = Watched(smollm2, seen)
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id):
                seen.append(event.event_type)
                if event.event_type is EventType.MODEL_READY:
                    session.cancel(turn_id)
    assert model.before == [EventType.TURN_ACCEPTED, EventType.MODEL_SELECTED, EventType.MODEL_LOADING]
    assert model.steps > 1_000  # if the loop stood still while the weights are read, there would be some twenty


async def test_unloaded_it_leaves_no_process_and_no_thread(smollm2: Path) -> None:
    await trio.to_thread.run_sync(_nothing)  # trio keeps a thread for the next who needs one
    threads = threading.active_count()
    model = LocalModel(smollm2)
    await model.load(_ignore)
    process_id = model.process_id
    assert process_id is not None
    assert _text(await _all(model, ROOM))
    await model.unload()
    assert model.warm_state is WarmState.WARM
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert threading.active_count() <= threads
