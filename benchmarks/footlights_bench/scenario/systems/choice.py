"""Choice of the system that a scenario is played against, from the command line."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from footlights.errors import InvalidCommand
from footlights_bench.scenario.definition import SystemKind
from footlights_bench.scenario.systems.in_process import open_in_process
from footlights_bench.scenario.systems.native import Asks, open_native
from footlights_bench.scenario.systems.protocol import System

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_bench.scenario.definition import Scenario

Opened: TypeAlias = AbstractAsyncContextManager[System]


@frozen
class Choice:
    kind: SystemKind
    open: Callable[[Scenario], Opened]
    """Raises `FootlightsError` if the system cannot be used."""


def in_process() -> Choice:
    return Choice(SystemKind.STAGE, lambda scenario: open_in_process(scenario.turn))


def native(url: str, token: str | None) -> Choice:
    def opened(scenario: Scenario) -> Opened:
        turn = scenario.turn
        asked = turn.asked_of_footlights if turn.model is None else {**turn.asked_of_footlights, "model": turn.model}
        asks = Asks(in_batches=scenario.load.batch, repeats=scenario.trouble.cut_share > 0, turn=asked)
        return open_native(url, token, asks)

    return Choice(SystemKind.NATIVE, opened)


def choose(url: str | None, target: str | None, token: str | None) -> Choice:
    """Raises `InvalidCommand` for a target that is none."""
    if url is not None and target is not None:
        raise InvalidCommand("--url and --target name two systems: use one of them.")
    if url is not None:
        return native(url, token)
    return in_process()
