"""What the turns under measurement say. The standard actors perform them; only the model is scripted."""

from __future__ import annotations

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
"""Of a paced turn, on average."""

_uneven = Random(0)
_ENDLESS = 90_000  # as many tokens as max_turn_text_bytes allows, about; every such turn is cancelled long before


def cast_of(script: Script) -> Cast:
    return standard_cast(ScriptedModel(script), budget=BudgetConfig(dialogue_max=_ENDLESS))


def whole_turn(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens from a model that never waits: the subscriber is behind, and tokens are joined for it."""
    yield Flood(TOKEN, TOKENS_PER_TURN)


def whole_turn_yielding(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens from a model that lets others run after each, as a channel does: little is left to join."""
    for _ in range(TOKENS_PER_TURN):
        yield Flood(TOKEN, 1)
        yield Pause(0)


def said_and_stalled(_prompt: Prompt) -> Iterator[Line]:
    """200 tokens, and then the turn stays open."""
    yield Flood(TOKEN, TOKENS_PER_TURN)
    yield Stall()


def flooding(_prompt: Prompt) -> Iterator[Line]:
    yield Flood(TOKEN, _ENDLESS)


def paced(_prompt: Prompt) -> Iterator[Line]:
    """One token after another, at uneven moments: a thousand turns must not wake in chorus."""
    while True:
        yield Pause(_uneven.uniform(0, 2 * SECONDS_PER_TOKEN))
        yield Flood(TOKEN, 1)


def paced_turn(_prompt: Prompt) -> Iterator[Line]:
    """Thirty of those, about three seconds."""
    for _ in range(30):
        yield Pause(_uneven.uniform(0, 2 * SECONDS_PER_TOKEN))
        yield Flood(TOKEN, 1)
