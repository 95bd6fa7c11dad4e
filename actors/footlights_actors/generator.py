"""The generator of a turn: it asks the model, streams what it says, and takes its tool requests to be run.

Tokens go straight into the turn's stream, through no channel. Only control messages cross channels: which
model to load, which tools to run, what came back.
"""

from __future__ import annotations

from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.errors import IllegalTransition, ModelError
from footlights.models import Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.params import Mode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.cast import ModelChoice, Services
    from footlights.models import Model
    from footlights.turn import Turn

MAX_TOOL_ROUNDS = 8
MAX_CALLS_PER_ROUND = 16
FEW_TURNS = 64

_NO_TOOLS_HERE = "Tools may not be used in this turn."


async def generate(
    turn: Turn,
    services: Services,
    get_model: Callable[[ModelChoice], Awaitable[Model]],
    run_tools: Callable[[tuple[ToolRequest, ...]], Awaitable[tuple[ToolExchange, ...]]],
) -> None:
    model = await get_model(services.cast.choose_model(turn.params))
    may_use_tools = turn.params.mode is Mode.EXECUTION
    tools_offered = tuple(ToolOffer(tool.name, tool.description) for tool in services.cast.tools.values())
    prompt = Prompt(turn.input, tools=tools_offered if may_use_tools else ())
    for tool_round in count(1):
        begins_at = turn.replay.text_length
        requests = await _speak(turn, services, model, prompt)
        if not requests:
            return
        if tool_round > MAX_TOOL_ROUNDS:
            raise ModelError("The model asked for tools in too many rounds.")
        if may_use_tools:
            exchanges = await run_tools(requests)
        else:
            exchanges = tuple(ToolExchange(request, None, _NO_TOOLS_HERE) for request in requests)
        said = turn.replay.text[begins_at:]
        prompt = evolve(prompt, rounds=(*prompt.rounds, ToolRound(said, exchanges)))


async def _speak(turn: Turn, services: Services, model: Model, prompt: Prompt) -> tuple[ToolRequest, ...]:
    """One round of the model: stream its text, return the tools it asks for."""
    requests: list[ToolRequest] = []
    left_in_burst = _burst(services.running_turns)
    try:
        async with aclosing(model.generate(prompt)) as output:
            async for item in output:
                if isinstance(item, str):
                    turn.say(item)
                    left_in_burst -= 1
                    if not left_in_burst:
                        left_in_burst = _burst(services.running_turns)
                        await trio.lowlevel.checkpoint()
                elif not isinstance(item, Usage):
                    requests.append(_checked(item, len(requests)))
    except (ModelError, IllegalTransition):  # the second is the turn's: it was interrupted
        raise
    except Exception as error:  # a boundary: whatever a model raises is a ModelError, with that as its cause
        raise ModelError("The model failed, or said what a turn cannot hold.") from error
    return tuple(requests)


def _checked(item: object, requests_before: int) -> ToolRequest:
    if not isinstance(item, ToolRequest) or not isinstance(item.tool_name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a model may lie
        raise ModelError("The model gave something that is neither text nor a tool request.")
    if requests_before == MAX_CALLS_PER_ROUND:
        raise ModelError("The model asked for too many tools at once.")
    return item


def _burst(running_turns: int) -> int:
    """How many tokens a model that never waits may say before others get their turn.

    A yield costs as much as two or three tokens, and every token before it delays all others.
    """
    return 32 if running_turns <= FEW_TURNS else 16
