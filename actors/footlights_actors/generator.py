"""The generator of a turn: it asks the model, streams what it says, and takes its tool requests to be run.

Tokens go straight into the turn's stream, through no channel. Only control messages cross channels: which
model to load, which tools to run, what came back.
"""

from __future__ import annotations

from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve

from footlights.errors import InvalidEvent, ModelError, TooLarge
from footlights.models import Prompt, ToolExchange, ToolRequest
from footlights.params import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights.cast import ModelChoice, Services
    from footlights.models import Model
    from footlights.turn import Turn

MAX_TOOL_ROUNDS = 8
MAX_CALLS_PER_ROUND = 16

_NO_TOOLS_HERE = "Tools may not be used in this turn."


class ToolDesk(Protocol):
    """Where tool requests are handed in."""

    async def run(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolExchange, ...]: ...


async def generate(
    turn: Turn,
    services: Services,
    choices: trio.MemorySendChannel[ModelChoice],
    ready: trio.MemoryReceiveChannel[Model],
    tools: ToolDesk,
) -> None:
    await choices.send(services.cast.choose_model(turn.params))
    model = await ready.receive()
    may_use_tools = turn.params.mode is Mode.EXECUTION
    prompt = Prompt(turn.input, tool_names=tuple(services.cast.tools) if may_use_tools else ())
    for tool_round in count(1):
        requests = await _speak(turn, services, model, prompt)
        if not requests:
            return
        if tool_round > MAX_TOOL_ROUNDS:
            raise ModelError("The model asked for tools in too many rounds.")
        if may_use_tools:
            exchanges = await tools.run(requests)
        else:
            exchanges = tuple(ToolExchange(request, None, _NO_TOOLS_HERE) for request in requests)
        prompt = evolve(prompt, exchanges=prompt.exchanges + exchanges)


async def _speak(turn: Turn, services: Services, model: Model, prompt: Prompt) -> tuple[ToolRequest, ...]:
    """One round of the model: stream its text, return the tools it asks for."""
    requests: list[ToolRequest] = []
    said_since_yielding = 0
    async with aclosing(_start(model, prompt)) as output:
        while (item := await _next(output)) is not None:
            if isinstance(item, str):
                try:
                    turn.say(item)
                except (TooLarge, InvalidEvent) as error:
                    raise ModelError("The model said what a turn cannot hold.") from error
                said_since_yielding += 1
                if said_since_yielding >= _burst(services.running_turns):
                    said_since_yielding = 0
                    await trio.lowlevel.checkpoint()
            elif isinstance(item, ToolRequest):  # pyright: ignore[reportUnnecessaryIsInstance] - a model may lie
                requests.append(item)
                if len(requests) > MAX_CALLS_PER_ROUND:
                    raise ModelError("The model asked for too many tools at once.")
            else:
                raise ModelError("The model gave something that is neither text nor a tool request.")
    return tuple(requests)


def _start(model: Model, prompt: Prompt) -> AsyncGenerator[str | ToolRequest, None]:
    try:
        return model.generate(prompt)
    except Exception as error:
        raise ModelError("The model failed before it generated anything.") from error


async def _next(output: AsyncGenerator[str | ToolRequest, None]) -> str | ToolRequest | None:
    try:
        return await anext(output)
    except StopAsyncIteration:
        return None
    except ModelError:
        raise
    except Exception as error:
        raise ModelError("The model failed while it was generating.") from error


def _burst(running_turns: int) -> int:
    """How many tokens a model that never waits may say before others get their turn.

    Each yield costs about as much as three tokens, and each token before it delays everybody else: so long bursts
    when few turns run, short ones when many do.
    """
    return 16 if running_turns <= 64 else 8
