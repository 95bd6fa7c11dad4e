"""Crowd: open sessions that play short turns, several at a time, each with a subscriber while its turn runs."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING

import trio

from footlights_actors import Flood
from suites.lib.scripts import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights import InteractionSession, Limits, Prompt
    from footlights_actors import Line

AT_A_TIME = 10
TURNS_KEPT = 4
"""Finished turns that a session keeps for replay. It plays so many before anything is measured."""
SHORT = 20
"""Tokens of a short turn."""


def short_turn(_prompt: Prompt) -> Iterator[Line]:
    yield Flood(TOKEN, SHORT)


def tiny_turn(_prompt: Prompt) -> Iterator[Line]:
    yield Flood(TOKEN, 1)


class Crowd:
    """Open sessions that play one after the other."""

    def __init__(self, sessions: Sequence[InteractionSession]) -> None:
        self.sessions = sessions
        self._next = cycle(sessions)

    async def play(self, turns: int) -> None:
        """Play so many turns, `AT_A_TIME` of them at once."""
        to_play = islice(self._next, turns)
        async with trio.open_nursery() as nursery:
            for _ in range(AT_A_TIME):
                nursery.start_soon(_play, to_play)

    async def fill(self, limits: Limits) -> None:
        """Let every session play as many turns as it keeps for replay."""
        for _ in range(limits.replay_turns):
            await self.play(len(self.sessions))


async def _play(sessions: Iterator[InteractionSession]) -> None:
    for session in sessions:
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Go on.")
            async for _ in stream.until_commit(turn_id):
                pass
