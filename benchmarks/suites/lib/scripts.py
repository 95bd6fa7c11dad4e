"""Scripts of the turns that benchmarks measure. The standard actors run them; only the model is scripted."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from footlights import BudgetConfig
from footlights_actors import Flood, Pause, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights import Cast, Prompt
    from footlights_actors import Line, Script

TOKEN = " word"
TOKENS_PER_TURN = 200
EVENTS_PER_TURN = TOKENS_PER_TURN + 5
"""With turn_accepted, model_selected, model_ready, turn_final and commit_final."""

SECONDS_PER_TOKEN = 0.1
"""The average pace of `paced` and `paced_turn`."""

_uneven = Random(0)
_ENDLESS = 90_000  # about as many tokens as max_turn_text_bytes allows; every such turn is cancelled long before


def cast_of(script: Script) -> Cast:
    return standard_cast(ScriptedModel(script), budget=BudgetConfig(dialogue_max=_ENDLESS))


def whole_turn(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens from a model that never yields: the subscriber falls behind, and tokens are joined for it."""
    yield Flood(TOKEN, TOKENS_PER_TURN)


def whole_turn_yielding(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens from a model that yields to other tasks after each, as a channel does: few tokens are joined."""
    for _ in range(TOKENS_PER_TURN):
        yield Flood(TOKEN, 1)
        yield Pause(0)


def said_and_stalled(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens; then the turn stays open."""
    yield Flood(TOKEN, TOKENS_PER_TURN)
    yield Stall()


def flooding(_prompt: Prompt) -> Iterator[Line]:
    yield Flood(TOKEN, _ENDLESS)


def paced(_prompt: Prompt) -> Iterator[Line]:
    """Single tokens without end, at random intervals, so that a thousand turns do not wake at the same moment."""
    while True:
        yield Pause(_uneven.uniform(0, 2 * SECONDS_PER_TOKEN))
        yield Flood(TOKEN, 1)


def paced_turn(prompt: Prompt) -> Iterator[Line]:
    """The first thirty tokens of `paced`: about three seconds."""
    return islice(paced(prompt), 2 * 30)
