"""Asked system: a server that answers one request a turn, such as most model servers.

A turn is an asynchronous generator that yields what the player sees. A cancel closes it, which for such a server means
to close the connection.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager, nullcontext
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Protocol

import trio

from footlights.errors import Busy, FootlightsError, InvalidCommand
from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Payload,
    StreamEvent,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

_WAITING = 10_000


class Moment(StrEnum):
    """What a player of any server sees of a turn."""

    ACCEPTED = "accepted"
    """The server has taken the turn."""
    TEXT = "text"
    """A piece of the answer."""
    END = "end"
    """The answer is complete."""
    COMMITTED = "committed"
    """What the turn changed is true. A turn that never says so is committed at its end."""


class Conversation(Protocol):
    """One player of the server."""

    def ask(self, said: str) -> AsyncGenerator[Moment]:
        """One turn. Raises `FootlightsError` if it fails."""
        ...


class _AskedPlayer:
    def __init__(self, conversation: Conversation, nursery: trio.Nursery) -> None:
        self._conversation = conversation
        self._nursery = nursery
        self._send, self._receive = trio.open_memory_channel[StreamEvent](_WAITING)
        self._scopes: dict[str, trio.CancelScope] = {}
        self._ids = count(1)

    async def begin_turn(self, said: str) -> str:
        turn_id = f"t{next(self._ids)}"
        await trio.lowlevel.checkpoint()
        self._nursery.start_soon(self._play, turn_id, said)
        return turn_id

    async def cancel(self, turn_id: str) -> None:
        await trio.lowlevel.checkpoint()
        if turn_id in self._scopes:
            self._scopes[turn_id].cancel(reason="the player cancels")

    async def receive_batch(self) -> Sequence[StreamEvent]:
        return [await self._receive.receive()]

    async def cut(self) -> None:
        raise InvalidCommand("Each turn has a connection of its own: there is none to cut.")

    def open_audience(self) -> AbstractAsyncContextManager[_AskedPlayer]:
        raise Busy("Nobody can follow the turns of another player on such a server.")

    async def _play(self, turn_id: str, said: str) -> None:
        failure: FootlightsError | None = None
        scope = self._scopes[turn_id] = trio.CancelScope()
        with scope:
            try:
                await self._see_all(turn_id, said)
            except FootlightsError as error:
                failure = error
        del self._scopes[turn_id]
        if scope.cancelled_caught:
            self._say(turn_id, TurnInterrupted(InterruptReason.CANCELED))
        elif failure is not None:
            told = ErrorInfo(failure.code, str(failure))
            self._say(turn_id, TurnInterrupted(InterruptReason.MODEL_ERROR, error=told))
        self._say(turn_id, CommitFinal("", CommitOutcome.OK))

    async def _see_all(self, turn_id: str, said: str) -> None:
        has_ended = False
        async with aclosing(self._conversation.ask(said)) as moments:
            async for moment in moments:
                match moment:
                    case Moment.ACCEPTED:
                        self._say(turn_id, TurnAccepted())
                    case Moment.TEXT:
                        self._say(turn_id, TokenDelta(" ", 0))
                    case Moment.END:
                        has_ended = True
                        self._say(turn_id, TurnFinal(""))
                    case Moment.COMMITTED:
                        return
        if not has_ended:
            self._say(turn_id, TurnFinal(""))

    def _say(self, turn_id: str, payload: Payload) -> None:
        stamp = int(1e3 * trio.current_time())
        self._send.send_nowait(StreamEvent(SCHEMA_V, "", turn_id, 0, stamp, EVENT_TYPES[type(payload)], payload))


class Asked:
    """A server whose players are made by `converse`; a system for a scenario."""

    shares_loop = False

    def __init__(self, name: str, converse: Callable[[], Conversation]) -> None:
        self.name = name
        self._converse = converse

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[_AskedPlayer]:
        async with trio.open_nursery() as nursery:
            yield _AskedPlayer(self._converse(), nursery)
            nursery.cancel_scope.cancel(reason="the run is over")

    def open_probe(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def depths(self) -> None:
        return None
