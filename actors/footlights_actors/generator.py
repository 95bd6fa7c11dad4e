"""Generator of a turn: prompts the model, streams its output, and passes its tool requests to the tool runner.

Tokens go directly into the turn's stream. Only control messages cross channels: the model to load, the tools to run,
and their results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING, cast

import trio
from attrs import evolve, frozen

from footlights.authority.approvals import answered
from footlights.errors import IllegalTransition, ModelError, ModelTimeout, ModelUnavailable
from footlights.failures import contained, is_failure, leaves
from footlights.models.mode_fact import mode_fact
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.models.prompts import Fact, facts_of, fitted, no_facts
from footlights.models.sampling import DEFAULT_SAMPLING, NO_SAMPLING
from footlights.notebooks.note_ids import REMEMBER
from footlights.params import Mode
from footlights.turn.timeline import Part
from footlights.wire import MAX_INTEGER, values
from footlights.wire.values import Unfit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.cast import Services
    from footlights.models.pool import ModelLease
    from footlights.models.prompts import Persona
    from footlights.models.sampling import Sampling
    from footlights.turn.turn import Turn
    from footlights_actors.turn.model_access import ModelAccess

MAX_TOOL_ROUNDS = 8
MAX_CALLS_PER_ROUND = 16
FEW_TURNS = 64
LONGEST_TOKEN = 32
"""In characters. A longer piece of output is charged as several tokens."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_APPROVED = "It is done when this turn ends, if the rules still allow it; do not ask for it again."
_DENIED = "It will not be done."
_NO_TOOLS_HERE = "Tools may not be used in this turn."


async def generate(
    turn: Turn,
    services: Services,
    models: ModelAccess,
    run_tools: Callable[[tuple[ToolRequest, ...]], Awaitable[tuple[ToolExchange, ...]]],
) -> None:
    persona = turn.cast.persona(turn.params.persona)
    tokens_left = budget = turn.cast.budget.max_for_tier(turn.params.tier)
    if not budget:
        return
    remembered = await _remembered(turn, services, persona)
    lease = await models.first(recalled=[each.name for each in remembered])
    sampling = DEFAULT_SAMPLING
    # Most turns have no settings at all, and a call would cost each of them.
    if not (turn.params.sampling is persona.sampling is lease.model.traits.sampling is NO_SAMPLING):
        sampling = _sampling(turn, persona, lease)
    if sampling.max_tokens is not None:
        tokens_left = min(budget, sampling.max_tokens)
    may_use_tools = turn.params.mode is Mode.EXECUTION
    offers = _offers(turn, persona)
    prompt: Prompt = Prompt(
        turn.input,
        system=persona.system,
        tools=offers if may_use_tools else (),
        sampling=sampling,
        max_tokens=tokens_left,
    )
    facts = () if persona.facts is no_facts else facts_of(persona, services.committed_world.view(), turn.speaker)
    if remembered:
        facts = (*facts, *(evolve(each, name=f"You remember ({each.name})") for each in remembered))
    if turn.params.facts:
        facts = (*turn.params.facts, *facts)
    if turn.mode_decision is not None or (offers and not may_use_tools):
        facts = (mode_fact(turn.mode_decision, [each.name for each in offers]), *facts)
    if turn.params.approvals:
        facts = (*_answers(turn, services.committed_world.view()), *facts)
    for tool_round in count(1):
        generated: _Round | None = None
        while generated is None:
            fitting = fitted(prompt, facts, lease.model.traits.context_tokens)
            try:
                generated = await _generate_round(turn, services, lease, fitting)
            except ModelUnavailable as error:
                lease = await models.after(error)
                sampling = _sampling(turn, persona, lease)  # nothing was said yet, so the limit is that of this model
                tokens_left = budget if sampling.max_tokens is None else min(budget, sampling.max_tokens)
                prompt = evolve(prompt, sampling=sampling, max_tokens=tokens_left)
        tokens_left -= generated.tokens
        if not generated.requests:
            return
        if tool_round > MAX_TOOL_ROUNDS:
            raise ModelError(sentence="The model asked for tools in too many rounds.")
        if may_use_tools:
            exchanges = await run_tools(generated.requests)
        else:
            exchanges = tuple(ToolExchange(request, None, _NO_TOOLS_HERE) for request in generated.requests)
        if tokens_left <= 0:  # the model has not said what it makes of the results
            turn.cut = True
            return
        rounds = (*prompt.rounds, ToolRound(generated.text, exchanges))
        prompt = evolve(prompt, rounds=rounds, max_tokens=tokens_left)


def _sampling(turn: Turn, persona: Persona, lease: ModelLease) -> Sampling:
    """The settings of the turn, over those of the persona, over those of the model."""
    of_model = lease.model.traits.sampling.over(DEFAULT_SAMPLING)
    return turn.params.sampling.over(persona.sampling.over(of_model))


def _answers(turn: Turn, view: object) -> list[Fact]:
    """What the player approves or denies with this turn, as the first facts of its prompt."""
    facts: list[Fact] = []
    with contained(lambda _: None):  # the code of the host fails again when the turn is judged, and is reported then
        player = turn.speaker
        for approval, yes in answered(turn.cast.rules, view, player.session_id, player.about, turn.params.approvals):
            reply = f"{'Yes' if yes else 'No'}, to: {approval.question} {_APPROVED if yes else _DENIED}"
            facts.append(Fact(f"The player's answer ({approval.id})", reply))
    return facts


def _offers(turn: Turn, persona: Persona) -> tuple[ToolOffer, ...]:
    tools, notebooks = turn.cast.tools.values(), turn.cast.notebooks
    return tuple(
        ToolOffer(tool.name, tool.description, tool.parameters)
        for tool in tools
        if persona.may_use(tool.name) and (notebooks is None or notebooks.offers(tool.name, turn.speaker))
    )


async def _remembered(turn: Turn, services: Services, persona: Persona) -> tuple[Fact, ...]:
    """What this persona noted about the player or the world, and what fits the input: facts named by ids of notes."""
    notebooks = turn.cast.notebooks
    if notebooks is None or not persona.may_use(REMEMBER):
        return ()
    return await notebooks.recall(services.committed_world.view(), turn.speaker, turn.persona_name, turn.input)


@frozen
class _Round:
    """One round of a model."""

    text: str
    requests: tuple[ToolRequest, ...]
    tokens: int


async def _generate_round(turn: Turn, services: Services, lease: ModelLease, prompt: Prompt) -> _Round:
    if not lease.claim_now():
        with turn.in_line(Part.SLOT):
            await lease.claim()
    begins_at = turn.replay.text_length
    try:
        requests, tokens, turn.cut = await _stream_output(turn, services, lease, prompt)
        turn.flush()
    except (ModelError, IllegalTransition):  # the second means that the turn was interrupted
        raise
    except TimeoutError:
        raise ModelTimeout from None
    except BaseException as error:  # a boundary: every failure of a model becomes the cause of a ModelError
        if not is_failure(error):
            raise
        unavailable = [leaf for leaf in leaves(error) if isinstance(leaf, ModelUnavailable)]
        if len(unavailable) == len(list(leaves(error))):  # raised in a nursery of the driver
            raise unavailable[0] from None
        raise ModelError from error
    finally:
        lease.release()
    turn.output_tokens = (turn.output_tokens or 0) + tokens
    return _Round(turn.replay.text[begins_at:] if requests else "", tuple(requests), tokens)


async def _stream_output(
    turn: Turn, services: Services, lease: ModelLease, prompt: Prompt
) -> tuple[list[ToolRequest], int, bool]:
    """Stream the model's output. Returns its tool requests, the number of tokens, and whether the text was cut."""
    requests: list[ToolRequest] = []
    usage: Usage | None = None
    cut = False
    tokens, most = 0, prompt.max_tokens
    left_in_burst = _burst(services.running_turns)
    turn.ask()
    async with aclosing(lease.model.generate(prompt)) as output:
        async for item in output:
            if isinstance(item, str):
                if type(item) is not str:
                    item = str.__str__(item)  # a subclass may override its length and its characters
                if item and tokens >= most:
                    cut = True
                    break
                if len(item) > LONGEST_TOKEN:
                    room = (most - tokens) * LONGEST_TOKEN
                    cut = cut or len(item) > room
                    item = item[:room]
                    tokens += -(-len(item) // LONGEST_TOKEN)
                elif item:
                    tokens += 1
                turn.say(item)
                left_in_burst -= 1
                if not left_in_burst:
                    left_in_burst = _burst(services.running_turns)
                    await trio.lowlevel.checkpoint()
            elif isinstance(item, Usage):
                usage = _checked_usage(item)
                cut = cut or item.cut is True
            else:
                requests.append(_checked_request(item, len(requests)))
    if not requests:
        turn.wait_for(Part.FINISHING)
    return requests, max(tokens, 0 if usage is None else min(usage.output_tokens, MAX_INTEGER)), cut


def _checked_usage(usage: Usage) -> Usage:
    if type(usage.output_tokens) is not int:
        raise ModelError(sentence="The model reported a number of tokens that is not an integer.")
    return usage


def _checked_request(item: object, requests_before: int) -> ToolRequest:
    if not isinstance(item, ToolRequest) or not isinstance(item.tool_name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a model may lie
        raise ModelError(sentence="The model's output is neither text nor a tool request.")
    if requests_before == MAX_CALLS_PER_ROUND:
        raise ModelError(sentence="The model asked for too many tools at once.")
    problem = item.problem or _problem(item.arguments)
    if not isinstance(problem, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - a model may lie
        raise ModelError(sentence="The model reported a problem that is not text.")
    if problem is None and _NAME.fullmatch(item.tool_name):
        return item
    # The next prompt contains the requests, so they must be valid in one.
    return ToolRequest(item.tool_name if _NAME.fullmatch(item.tool_name) else "unknown", {}, problem)


def _problem(arguments: object) -> str | None:
    if not isinstance(arguments, Mapping):
        return "The arguments must be an object."
    try:
        values.json_value(dict(cast("Mapping[str, object]", arguments)))
    except Unfit:
        return "The arguments hold what JSON cannot say, or too much of it."
    return None


def _burst(running_turns: int) -> int:
    """Tokens between two checkpoints of a model that never waits.

    A checkpoint costs as much as two or three tokens, and every token before it delays all other turns.
    """
    return 32 if running_turns <= FEW_TURNS else 16
