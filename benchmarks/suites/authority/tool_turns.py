"""Turns with one tool that has side effects: claimed in the ledger, run, recorded, committed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import trio

from footlights import SideEffects, open_stage, tool
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from suites.lib.figures import Aim, Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import InteractionSession
    from footlights.models.model import Prompt
    from suites.authority.suite import AuthorityScale

RATE = Aim("at least", 3_000)


@tool(side_effects=SideEffects.IMMEDIATE)
async def ring() -> str:
    """Ring the bell."""
    return "It rang."


def _script(prompt: Prompt) -> list[Say | Call]:
    return [Say("Done.")] if prompt.exchanges else [Call("ring")]


async def measure_tool_turns(scale: AuthorityScale) -> Sequence[Figure]:
    turns = scale.crowd * scale.turns_each
    with TemporaryDirectory() as folder:
        cast = standard_cast(ScriptedModel(_script), tools=[ring])
        async with open_stage(cast, ledger=Path(folder, "tools.ledger")) as stage:
            sessions = [stage.start() for _ in range(scale.crowd)]
            began, cpu = perf_counter(), process_time()
            async with trio.open_nursery() as nursery:
                for session in sessions:
                    nursery.start_soon(_play, session, scale.turns_each)
            seconds, cpu = perf_counter() - began, process_time() - cpu
    subject = f"turns with one tool, {scale.crowd} at once"
    return [
        Figure(subject, "turns", turns / seconds, "turns/s", RATE),
        Figure(subject, "CPU of a turn", cpu / turns * 1e6, "µs"),
    ]


async def _play(session: InteractionSession, turns: int) -> None:
    for _ in range(turns):
        await session.finalize(session.begin_turn("Ring.")).wait()
