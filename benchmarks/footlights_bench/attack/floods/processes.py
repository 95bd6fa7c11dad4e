"""Processes of a flood: the attacker and the bystander run in their own, so that neither delays the other."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from footlights_bench.attack.target import CannotAttack
from footlights_bench.lib.processes import JsonLines, open_module

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

_SECONDS_TO_START = 30
ATTACKER, BYSTANDER = 5, -10
"""Niceness. On a machine with few cores an attacker must not take processor time from the bystander, who measures."""


class Child:
    """A started process, seen from the suite."""

    def __init__(self, module: str, lines: JsonLines) -> None:
        self._module = module
        self._lines = lines

    async def tell(self, value: object) -> None:
        try:
            await self._lines.send(value)
        except trio.BrokenResourceError:
            raise CannotAttack(f"{self._module} ended too early.") from None

    async def hear(self, seconds: float) -> Any:
        """The next value. Raises `CannotAttack` if the process ends, takes longer, or reports that it cannot work."""
        value: Any = {"cannot_attack": f"{self._module} said nothing for {seconds:.0f} seconds."}
        with trio.move_on_after(seconds):
            value = await self._lines.receive()
        match value:
            case None:
                raise CannotAttack(f"{self._module} ended without a report; its error stands above.")
            case {"cannot_attack": str() as why}:
                raise CannotAttack(why)
            case _:
                return value


@asynccontextmanager
async def open_child(module: str, job: object) -> AsyncGenerator[Child]:
    """Run a module of this package until it is ready. The process is killed on exit."""
    async with open_module(module) as lines:
        started = Child(module, lines)
        await started.tell(job)
        await started.hear(_SECONDS_TO_START)
        yield started


def run_child(work: Callable[[Any, JsonLines], Awaitable[None]], *, niceness: int) -> None:
    """The main function of such a process: `work` gets the job, says when it is ready, and reports."""
    with suppress(PermissionError):  # only root may lower the niceness
        os.nice(niceness)
    trio.run(partial(_run, work))


async def _run(work: Callable[[Any, JsonLines], Awaitable[None]]) -> None:
    async with trio.lowlevel.FdStream(os.dup(0)) as receiving, trio.lowlevel.FdStream(os.dup(1)) as sending:
        lines = JsonLines(sending, receiving)
        refusals: list[str] = []
        try:
            await work(await lines.receive(), lines)
        except* (CannotAttack, OSError, trio.TooSlowError) as group:
            refusals = [str(error) or type(error).__name__ for error in group.exceptions]
        if refusals:
            await lines.send({"cannot_attack": refusals[0]})
