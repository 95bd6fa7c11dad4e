"""Session API of the contract suite: the operations that every transport offers. The suite uses nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights import EventType
from footlights.stream.cursor import ALL_SEEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from footlights import Cast, CommitOutcome, Limits, SessionParams, StreamEvent, TurnParams


class Decision(Protocol):
    @property
    def commit_digest(self) -> str: ...
    @property
    def commit_outcome(self) -> CommitOutcome: ...


class Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...
    async def __anext__(self) -> StreamEvent: ...
    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]: ...
    @property
    def cursor(self) -> Mapping[str, int]: ...
    @property
    def terminal_seen(self) -> frozenset[str]: ...


class Guest(Protocol):
    @property
    def session_id(self) -> str: ...
    async def begin_turn(
        self, said: str, params: TurnParams | None = None, *, request_id: str | None = None
    ) -> str: ...
    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]: ...
    async def finalize(self, turn_id: str) -> Decision: ...
    async def heard(self, turn_id: str, seq: int) -> None: ...
    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()
    ) -> AbstractAsyncContextManager[Stream]: ...
    async def close(self) -> None: ...


class House(Protocol):
    async def start(self, params: SessionParams | None = None) -> Guest: ...


class Door(Protocol):
    def __call__(self, cast: Cast, limits: Limits | None = None) -> AbstractAsyncContextManager[House]: ...


class Followed:
    """A stream that only knows how to give the next event."""

    def __init__(self, after: Mapping[str, int] | None) -> None:
        self._whole = {turn_id for turn_id, seq in (after or {}).items() if seq == ALL_SEEN}

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        if event.event_type is EventType.COMMIT_FINAL:
            self._whole.add(event.turn_id)
        return event

    async def _next(self) -> StreamEvent | None:
        raise NotImplementedError

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        return _UntilCommit(self, turn_id)

    def has_all_of(self, turn_id: str) -> bool:
        return turn_id in self._whole


class _UntilCommit:
    def __init__(self, stream: Followed, turn_id: str) -> None:
        self._stream = stream
        self._turn_id = turn_id

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._stream.has_all_of(self._turn_id):
            raise StopAsyncIteration
        return await anext(self._stream)
