"""Model of a command: `innkeeper`, the name of known weights, a GGUF file, `openai:NAME` or `anthropic:NAME`.

API keys are never part of a command: remote models read them from the environment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand
from footlights.models.budget import BudgetConfig
from footlights_actors.models.local.weights import SMOLLM2

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Cast, Model

SCRIPTED = "innkeeper"
TINY = (
    "smollm2 is a tiny model: it shows loading, streaming and stopping. It talks nonsense and knows nothing; "
    "only what is committed is true."
)
_NOT_IN_AN_ID = re.compile(r"[^!-~]")
_LOCAL_HOST_BY_DEFAULT = "http://127.0.0.1:8080/v1"


def tavern_with(name: str, base_url: str | None, *, at_once: bool = False, with_key: bool = True) -> Cast:
    """The tavern, with this model for the innkeeper. With `at_once`, the scripted innkeeper makes no pauses.

    Without `with_key` the user did not name the server: no key is sent to it, and it must not be remote.

    Raises `WeightsNotFetched` for known weights that were not downloaded yet, and another `FootlightsError` for a model
    that does not exist or cannot work.
    """
    from footlights_actors.demo.tavern.cast import (
        tavern_cast,
    )  # slow, and the command line imports this module for a constant

    vendor, colon, remote_name = name.partition(":")
    make = _REMOTE.get(vendor) if colon else None
    if base_url is not None and make is None:
        raise InvalidCommand("--base-url belongs to --model openai:NAME or anthropic:NAME.")
    if make is not None:
        # Naming a remote model on the command line is consent to use it.
        return tavern_cast(model=make(remote_name, base_url, with_key), remote_models=with_key)
    if name == SCRIPTED:
        return tavern_cast(pace=0, load_seconds=0, tool_seconds=0) if at_once else tavern_cast()
    from footlights_actors.models.local.model import known_model

    model = known_model(name)
    if name == SMOLLM2.name:
        from footlights_actors.demo.tavern.small_innkeeper import small_tavern_cast

        return small_tavern_cast(model, pace=0, tool_seconds=0) if at_once else small_tavern_cast(model)
    # Small models cannot use tools, and do not know when to stop.
    return tavern_cast(model=model, with_tools=False, budget=BudgetConfig(dialogue_max=160))


def notice_about(name: str) -> str | None:
    """What a player should know about a model before the first turn."""
    return TINY if name == SMOLLM2.name else None


def _openai(name: str, base_url: str | None, with_key: bool) -> Model:
    from footlights_actors.models.openai import OpenAIModel

    if base_url is None:  # the default address gets no key: the user did not say what listens there
        return OpenAIModel(_named(name), base_url=_LOCAL_HOST_BY_DEFAULT, key_env=None)
    if not with_key:
        return OpenAIModel(_named(name), base_url=base_url, key_env=None, model_id=_model_id(name))
    return OpenAIModel(_named(name), base_url=base_url)


def _model_id(name: str) -> str:
    """The name that a server found by itself has in the cast: llama.cpp names its model by the path of its file."""
    return _NOT_IN_AN_ID.sub("-", name.rpartition("/")[2])[:128] or "own"


def _anthropic(name: str, base_url: str | None, _with_key: bool) -> Model:
    from footlights_actors.models.anthropic import AnthropicModel

    return AnthropicModel(_named(name)) if base_url is None else AnthropicModel(_named(name), base_url=base_url)


def _named(name: str) -> str:
    if not name:
        raise InvalidCommand("The name of the model is missing: --model openai:NAME or anthropic:NAME.")
    return name


_REMOTE: dict[str, Callable[[str, str | None, bool], Model]] = {"openai": _openai, "anthropic": _anthropic}
