"""Workloads without a transport: turns of a stage with an in-memory ledger, and commits of a durable ledger.

A workload can be played again and again, and every play costs the same.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve, frozen

from footlights import MemoryLedger, open_stage, tool
from footlights.authority import SqliteLedger
from footlights.authority.ledger.sqlite.schema import connect
from footlights_actors import Call, Flood, Pause, Stall
from suites.authority.commits import WholeCommitter
from suites.authority.work import SESSIONS, Judge
from suites.counts.meter import Count
from suites.lib.scripts import EVENTS_PER_TURN, TOKEN, TOKENS_PER_TURN, cast_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncGenerator, Iterable, Iterator

    from footlights import InteractionSession, Prompt, Subscription, Tool
    from footlights_actors import Line, Script

AFTERWARDS = 1.0
"""Virtual seconds for the work that is left when a turn has settled."""


class Workload(Protocol):
    """A repeatable piece of work."""

    async def play(self) -> None:
        """Play the workload once. This is counted."""
        ...

    async def look(self) -> dict[Count, int]:
        """Counts that are only known after the play."""
        ...


@frozen
class Expected:
    """The events that a turn must have."""

    events: int
    cancel_at: int | None = None
    """The seq of the event at which the subscriber cancels the turn."""


WHOLE_TURN = Expected(EVENTS_PER_TURN)
TURN_WITH_A_TOOL = Expected(EVENTS_PER_TURN + 2)
HALF_A_TURN = Expected(TOKENS_PER_TURN // 2 + 5, cancel_at=TOKENS_PER_TURN // 2 + 2)
"""The subscriber cancels at the last token."""


class LocalTurn:
    """A turn with subscribers in the same process."""

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
async def local_turn(
    script: Script, turn: Expected = WHOLE_TURN, *, subscribers: int = 1, tools: Iterable[Tool] = ()
) -> AsyncGenerator[LocalTurn]:
    """A stage with `subscribers` subscribers in the same process."""
    cast = evolve(cast_of(script), tools={each.name: each for each in tools})
    async with open_stage(cast, ledger=MemoryLedger(), wall_clock=same_time) as stage, AsyncExitStack() as leaving:
        session = stage.start()
        streams = [await leaving.enter_async_context(session.subscribe()) for _ in range(subscribers)]
        yield LocalTurn(session, streams, turn)


def same_time() -> float:
    """A wall clock that stands still, because its time is part of the bytes of every event."""
    return 1_750_000_000.25


# -- with a tool, and cancelled


def a_tool_in_the_middle(prompt: Prompt) -> Iterator[Line]:
    """Half of the tokens, a tool call, and the other half."""
    yield Flood(TOKEN, TOKENS_PER_TURN // 2)
    if not prompt.rounds:
        yield Call("look_around")


@tool
def look_around() -> str:
    """What is in this room."""
    return "a table"


def half_a_turn_yielding(_prompt: Prompt) -> Iterator[Line]:
    """Half of the tokens; then the model stalls."""
    for _ in range(TOKENS_PER_TURN // 2):
        yield Flood(TOKEN, 1)
        yield Pause(0)
    yield Stall()


def paced_evenly(_prompt: Prompt) -> Iterator[Line]:
    """A token about every six milliseconds of virtual time, never at the moment when a batch is sent."""
    for _ in range(TOKENS_PER_TURN):
        yield Flood(TOKEN, 1)
        yield Pause(0.006_180_34)


# -- durable commits


class CommitBatch:
    """Turns that end at once, judged and written to a file."""

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
async def durable_commits(commits: int, *, known_sessions: bool) -> AsyncGenerator[CommitBatch]:
    """A ledger in a temporary folder. With `known_sessions`, every session has a commit already."""
    statements: list[str] = []

    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(statements.append)
        return connection

    with TemporaryDirectory() as folder:
        async with (
            SqliteLedger(Path(folder) / "ledger", connect=traced) as ledger,
            WholeCommitter.opened(ledger) as committer,
        ):
            if known_sessions:
                await committer.write([Judge().batch(SESSIONS)])
            yield CommitBatch(committer, statements, commits)
