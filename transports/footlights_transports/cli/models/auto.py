"""Automatic model of a command, `--model auto`: the player's own model server if there is one, otherwise the script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import InvalidCommand
from footlights.extras import advice
from footlights_transports.cli.models.choice import SCRIPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_actors.models.own_servers import OfferedModel, ServerReport

AUTO = "auto"


@frozen
class AutoChoice:
    """The model that was chosen, and the reason."""

    model: str
    base_url: str | None
    why: str


def choose_automatically(base_url: str | None = None) -> AutoChoice:
    """Ask the model servers of this machine, and choose. Raises `InvalidCommand` if a server was named."""
    if base_url is not None:
        raise InvalidCommand("--base-url belongs to --model openai:NAME or anthropic:NAME.")
    import trio

    try:
        from footlights_actors.models.own_servers import find_models
    except ModuleNotFoundError as missing:
        why = f"model servers cannot be asked without {missing.name}: {advice('remote')}"
        return AutoChoice(SCRIPTED, None, f"The scripted innkeeper speaks: {why}")
    return choice_of(trio.run(find_models))


def choice_of(reports: Sequence[ServerReport]) -> AutoChoice:
    """The choice among what the servers offer."""
    from footlights_actors.models.own_servers import best

    found = best(reports)
    if found is None:
        why = f"The scripted innkeeper speaks: there is no other model here{_passed_over(reports)}."
        return AutoChoice(SCRIPTED, None, why)
    server, model = found
    earlier = reports[: [each.server for each in reports].index(server)]
    size = f", with {told_parameters(model)} parameters" if model.parameters else ""
    why = f"{model.name} of {server.name} speaks: the largest instruct model there{size}{_passed_over(earlier)}."
    return AutoChoice(f"openai:{model.name}", server.base_url, why)


def _passed_over(reports: Sequence[ServerReport]) -> str:
    told = "; ".join(f"{each.server.name}: {each.problem or 'no instruct model'}" for each in reports)
    return f" ({told})" if told else ""


def told_parameters(model: OfferedModel) -> str:
    """The number of its parameters in words; empty if it is not known."""
    if not model.parameters:
        return ""
    billions = model.parameters / 1e9
    return f"{billions:.1f} billion" if billions >= 1 else f"{model.parameters / 1e6:.0f} million"
