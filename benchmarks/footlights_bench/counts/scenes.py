"""What is played while it is counted: each scene plays the same thing again and again, and each time costs the same.

Those here have no transport: turns of a stage with a ledger in memory, and commits of a durable one.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve, frozen

from footlights import Limits, MemoryLedger, open_stage, tool
from footlights.authority import SqliteLedger
from footlights.authority.ledger.sqlite.schema import connect
from footlights_actors import Call, Flood, Pause, Stall
from footlights_actors.committer import AuthorityCommitter
from footlights_bench.authority.commits import WholeCommitter
from footlights_bench.authority.work import RULES, SESSIONS, Judge, genesis
from footlights_bench.counts.meter import Count
from footlights_bench.lib.scripts import EVENTS_PER_TURN, TOKEN, TOKENS_PER_TURN, cast_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncGenerator, Iterable, Iterator

    from footlights import InteractionSession, Prompt, Subscription, Tool
    from footlights_actors import Line, Script

AFTERWARDS = 1.0
"""Virtual seconds in which what was left to do when a turn was settled is done."""


class Scene(Protocol):
    """One thing that can be played again and again."""

    async def play(self) -> None:
        """Play it once. This is what is counted."""
        ...

    async def look(self) -> dict[Count, int]:
        """What else it cost, to be found out when it is over."""
        ...


@frozen
class Expected:
    """How a turn goes."""

    events: int
    cancel_at: int | None = None
    """The seq of the event at which its subscriber cancels it."""


WHOLE_TURN = Expected(EVENTS_PER_TURN)
TURN_WITH_A_TOOL = Expected(EVENTS_PER_TURN + 2)
HALF_A_TURN = Expected(TOKENS_PER_TURN // 2 + 5, cancel_at=TOKENS_PER_TURN // 2 + 2)
"""Its last token is the one that is answered with a cancel."""


class Told:
    """A turn with so many subscribers in the same process."""

    def __init__(self, session: InteractionSession, streams: list[Subscription], turn: Expected) -> None:
        self._session = session
        self._streams = streams
        self._turn = turn

    async def play(self) -> None:
        turn_id = self._session.begin_turn("Go on.")
        async with trio.open_nursery() as nursery:
            for stream in self._streams:
                nursery.start_soon(self._take, stream, turn_id)
        await trio.sleep(AFTERWARDS)

    async def look(self) -> dict[Count, int]:
        await trio.lowlevel.checkpoint()
        return {}

    async def _take(self, stream: Subscription, turn_id: str) -> None:
        events = 0
        async for event in stream.until_commit(turn_id):
            events = event.seq + 1
            if event.seq == self._turn.cancel_at:
                self._session.cancel(turn_id)
        if events != self._turn.events:
            raise AssertionError(f"The turn had {events} events, not {self._turn.events}.")


@asynccontextmanager
async def telling(
    script: Script, turn: Expected = WHOLE_TURN, *, subscribers: int = 1, tools: Iterable[Tool] = ()
) -> AsyncGenerator[Told]:
    """A stage whose turns are taken by so many in the same process."""
    cast = evolve(cast_of(script), tools={each.name: each for each in tools})
    async with open_stage(cast, ledger=MemoryLedger(), wall_clock=same_time) as stage, AsyncExitStack() as leaving:
        session = stage.start()
        streams = [await leaving.enter_async_context(session.subscribe()) for _ in range(subscribers)]
        yield Told(session, streams, turn)


def same_time() -> float:
    """A wall clock that stands still: what it says is part of every event's bytes."""
    return 1_750_000_000.25


# -- with a tool, and cancelled


def a_tool_in_the_middle(prompt: Prompt) -> Iterator[Line]:
    """Half of the tokens, a tool, and the other half."""
    yield Flood(TOKEN, TOKENS_PER_TURN // 2)
    if not prompt.rounds:
        yield Call("look_around")


@tool
def look_around() -> str:
    """What is in this room."""
    return "a table"


def half_a_turn_yielding(_prompt: Prompt) -> Iterator[Line]:
    """Half of the tokens, and then silence."""
    for _ in range(TOKENS_PER_TURN // 2):
        yield Flood(TOKEN, 1)
        yield Pause(0)
    yield Stall()


def paced_evenly(_prompt: Prompt) -> Iterator[Line]:
    """A token every six milliseconds or so, of virtual time: never at the very moment at which a batch goes."""
    for _ in range(TOKENS_PER_TURN):
        yield Flood(TOKEN, 1)
        yield Pause(0.006_180_34)


# -- durable commits


class Committed:
    """So many turns that end at once, judged and written to a file."""

    def __init__(self, committer: WholeCommitter, traced: list[str], commits: int) -> None:
        self._committer = committer
        self._traced = traced
        self._batch = Judge().batch(commits)

    async def play(self) -> None:
        self._traced.clear()
        await self._committer.write([self._batch])
        await trio.sleep(AFTERWARDS)

    async def look(self) -> dict[Count, int]:
        await trio.lowlevel.checkpoint()
        return {Count.STATEMENTS: len(self._traced)}


@asynccontextmanager
async def committing(commits: int, *, known_sessions: bool) -> AsyncGenerator[Committed]:
    """A ledger in a temporary folder; `known_sessions` are those that have commits already."""
    statements: list[str] = []

    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(statements.append)
        return connection

    with TemporaryDirectory() as folder:
        async with SqliteLedger(Path(folder) / "ledger", connect=traced) as ledger, trio.open_nursery() as nursery:
            opening = await ledger.begin_epoch(genesis())
            committer = AuthorityCommitter(ledger, opening.world, RULES, Limits())
            nursery.start_soon(committer.run)
            whole = WholeCommitter(committer)
            if known_sessions:
                await whole.write([Judge().batch(SESSIONS)])
            yield Committed(whole, statements, commits)
            committer.close()
