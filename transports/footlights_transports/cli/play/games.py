"""Games that can be played: a cast on a stage of this process, or a session on a server."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

from footlights import FootlightsError, InvalidCommand, SessionParams, TurnParams, open_stage
from footlights.checks import listed
from footlights.notebooks.store import MemoryNotes
from footlights_transports.access.notes import notes_of
from footlights_transports.cli.play.explain import speaker_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from footlights import Cast, Limits, StreamEvent
    from footlights.authority import CommitRecord
    from footlights.session.session import InteractionSession
    from footlights.stage.stage import Stage
    from footlights.turn.summary import TurnSummary
    from footlights_transports.client.client import Client
    from footlights_transports.client.session import ClientSession

    Watchers: TypeAlias = list[Callable[[bool], object]]

PLAYER = "player"
"""The session of a game of this process that remembers its player."""
_CLOSING_SECONDS = 3.0
_LATEST = 5
"""The commits of a server among which that of the last turn is."""


class Events(Protocol):
    """A stream of the session's events."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]: ...


class Game(Protocol):
    """One player's session of a game. Every method may raise `FootlightsError`."""

    async def begin_turn(self, said: str, params: TurnParams) -> str: ...

    async def cancel(self, turn_id: str | None = None) -> object: ...

    def subscribe(self) -> AbstractAsyncContextManager[Events]: ...

    async def world(self) -> Any: ...

    async def notes(self, act: str = "list") -> dict[str, Any]:
        """The player's notebook, after `list`, `erase`, `agree` or `withdraw`."""
        ...

    async def record(self, turn_id: str) -> CommitRecord | None:
        """The record of a committed turn; None if it cannot be had."""
        ...

    async def summary(self, turn_id: str) -> TurnSummary | None:
        """How a turn ended, and where its time went; None if it cannot be had."""
        ...

    def watch_connection(self, tell: Callable[[bool], object]) -> None:
        """Have `tell` called with False when the connection is lost, and with True when there is one again."""
        ...

    @property
    def name(self) -> str:
        """The name of the NPC who speaks."""
        ...


class LocalGame:
    """A cast on a stage of this process. Commits are kept in memory."""

    def __init__(self, stage: Stage, session: InteractionSession, persona: str | None) -> None:
        self._stage = stage
        self._session = session
        self.name = speaker_name(persona or next(iter(stage.personas), None))

    async def begin_turn(self, said: str, params: TurnParams) -> str:
        return self._session.begin_turn(said, params)

    async def cancel(self, turn_id: str | None = None) -> object:
        return self._session.cancel(turn_id)

    def subscribe(self) -> AbstractAsyncContextManager[Events]:
        return self._session.subscribe()

    async def world(self) -> Any:
        return self._stage.world

    async def notes(self, act: str = "list") -> dict[str, Any]:
        return await notes_of(self._stage, self._session, act)

    async def record(self, turn_id: str) -> CommitRecord | None:
        return await self._stage.ledger.find(self._session.session_id, turn_id)

    async def summary(self, turn_id: str) -> TurnSummary | None:
        return self._session.summary(turn_id)

    def watch_connection(self, tell: Callable[[bool], object]) -> None:
        """There is none that could be lost."""


class RemoteGame:
    """A session on a server."""

    def __init__(self, client: Client, session: ClientSession, persona: str | None, watchers: Watchers) -> None:
        self._client = client
        self._session = session
        self._watchers = watchers
        self.name = speaker_name(persona or session.persona)

    async def begin_turn(self, said: str, params: TurnParams) -> str:
        return await self._session.begin_turn(said, params)

    async def cancel(self, turn_id: str | None = None) -> object:
        return await self._session.cancel(turn_id)

    def subscribe(self) -> AbstractAsyncContextManager[Events]:
        return self._session.subscribe()

    async def world(self) -> Any:
        return await self._client.world()

    async def notes(self, act: str = "list") -> dict[str, Any]:
        return await self._session.notes(act)

    async def record(self, turn_id: str) -> CommitRecord | None:
        return next((each for each in await self._session.commits(_LATEST) if each.turn_id == turn_id), None)

    async def summary(self, turn_id: str) -> TurnSummary | None:
        return await self._session.summary(turn_id)

    def watch_connection(self, tell: Callable[[bool], object]) -> None:
        self._watchers.append(tell)


@asynccontextmanager
async def open_local_game(
    cast: Cast, *, limits: Limits | None = None, trace: Path | None = None, persona: str | None = None
) -> AsyncGenerator[LocalGame]:
    """Raises `InvalidCommand` for a persona that the cast lacks."""
    if persona is not None and persona not in cast.personas:
        raise InvalidCommand(f"There is no persona {persona[:64]!r}; there are: {listed(cast.personas)}.")
    if cast.notebooks is not None:
        cast = cast.notebooks.in_cast(cast, MemoryNotes())  # the world begins anew, and so does what is remembered
    async with open_stage(cast, limits=limits, trace=trace) as stage:
        named = SessionParams(session_id=PLAYER) if stage.notebooks is not None else None
        yield LocalGame(stage, stage.start(named), persona)


@asynccontextmanager
async def open_remote_game(
    url: str, *, token: str | None = None, persona: str | None = None
) -> AsyncGenerator[RemoteGame]:
    """A new session on a server, which is closed at the end. Raises what `connect` raises."""
    from footlights_transports.client.client import connect  # a game of this process needs no client
    from footlights_transports.client.retry import Retry

    watchers: Watchers = []

    is_reachable = True

    def tell(is_connected: bool) -> None:
        nonlocal is_reachable
        is_reachable = is_connected
        for each in watchers:
            each(is_connected)

    async with connect(url, token=token, retry=Retry(tell=tell)) as client:
        session = await client.start()
        yield RemoteGame(client, session, persona, watchers)
        # It ends by itself when it is idle, so a server that does not answer is not waited for.
        with trio.move_on_after(_CLOSING_SECONDS if is_reachable else 0), suppress(FootlightsError):
            await session.close()
