"""Entrants of the race: their names, and the Python with which each of them runs."""

from __future__ import annotations

import sys
from pathlib import Path

from attrs import frozen

OURS = "Footlights"
ENVIRONMENTS = Path(__file__).parents[2] / ".venv-peers"


@frozen
class Entrant:
    name: str
    command: tuple[str, ...]
    is_floor: bool = False
    """Whether it is a lower bound for comparison. No aim is measured against it."""


@frozen
class Skipped:
    name: str
    reason: str


def entrants(stages: int, environments: Path = ENVIRONMENTS) -> tuple[list[Entrant], list[Skipped]]:
    """The entrants that can run here, Footlights first, and those that have no environment."""
    ready = [Entrant(OURS, _command(sys.executable, "footlights"))]
    if stages > 1:
        ready.append(Entrant(f"trio, {stages} stages", _command(sys.executable, "trio_channel", stages)))
    ready.append(Entrant("trio, one channel", _command(sys.executable, "trio_channel", 1), is_floor=True))
    skipped: list[Skipped] = []
    for name, folder in _WITH_ENVIRONMENT.items():
        environment = environments / folder
        if (environment / ".ready").exists():
            ready.append(Entrant(name, _command(str(environment / "bin/python"), folder, stages)))
        else:
            skipped.append(Skipped(name, "its environment could not be made"))
    return ready, skipped


_WITH_ENVIRONMENT = {
    "Pipecat": "pipecat",
    "LangGraph": "langgraph",
    "Pydantic AI": "pydantic_ai",
    "Pykka": "pykka",
}
"""Their names, and the folders of their files and of their environments."""


def _command(python: str, folder: str, *arguments: int) -> tuple[str, ...]:
    return (python, "-m", f"peers.{folder}.peer", *map(str, arguments))
