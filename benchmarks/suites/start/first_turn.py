"""First turn: a program that opens a stage and plays one turn.

It prints a line when the turn is committed: the outcome, and the milliseconds since the imports.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import trio

from footlights import CommitFinal, open_stage
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from footlights import Prompt

_imported = perf_counter()


def script(_prompt: Prompt) -> list[Say]:
    return [Say("Good evening.")]


async def play() -> None:
    async with open_stage(standard_cast(ScriptedModel(script))) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id):
                if isinstance(event.payload, CommitFinal):
                    print(event.payload.commit_outcome, (perf_counter() - _imported) * 1000, flush=True)


if __name__ == "__main__":
    trio.run(play)
