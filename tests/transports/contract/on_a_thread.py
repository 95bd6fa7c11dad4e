"""Thread transport of the contract suite: a stage on a thread of its own, for a host without trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import trio

from footlights_transports import StageThread
from tests.transports.contract.session_api import Followed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping

    from footlights import Cast, Limits, SessionParams, StreamEvent, TurnParams
    from footlights_transports import PolledStream, ThreadSession
    from tests.transports.contract.session_api import Decision, House

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ThreadStream(Followed):
    def __init__(self, stream: PolledStream, after: Mapping[str, int] | None) -> None:
        super().__init__(after)
        self._stream = stream

    @property
    def cursor(self) -> Mapping[str, int]:
        return self._stream.cursor

    @property
    def terminal_seen(self) -> frozenset[str]:
        return self._stream.terminal_seen

    async def _next(self) -> StreamEvent | None:
        while self._stream.is_open:
            for event in await in_a_thread(self._stream.poll, 1, 1.0):
                return event
        return None


class ThreadGuest:
    """Each call is made on some other thread, as a host would make it."""

    def __init__(self, session: ThreadSession) -> None:
        self._session = session
        self.session_id = session.session_id

    async def begin_turn(self, said: str, params: TurnParams | None = None, *, request_id: str | None = None) -> str:
        return await in_a_thread(partial(self._session.begin_turn, said, params, request_id=request_id))

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        return await in_a_thread(self._session.cancel, turn_id)

    async def finalize(self, turn_id: str) -> Decision:
        return await in_a_thread(self._session.finalize(turn_id).result)

    async def heard(self, turn_id: str, seq: int) -> None:
        await in_a_thread(self._session.heard, turn_id, seq)

    async def close(self) -> None:
        await in_a_thread(self._session.close)

    @asynccontextmanager
    async def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()
    ) -> AsyncGenerator[ThreadStream, None]:
        stream = await in_a_thread(self._session.subscribe, after, terminal_seen)
        try:
            yield ThreadStream(stream, after)
        finally:
            stream.close()


class ThreadHouse:
    def __init__(self, stage: StageThread) -> None:
        self._stage = stage

    async def start(self, params: SessionParams | None = None) -> ThreadGuest:
        return ThreadGuest(await in_a_thread(self._stage.start, params))


@asynccontextmanager
async def thread(cast: Cast, limits: Limits | None = None) -> AsyncGenerator[House, None]:
    stage = StageThread(cast, limits=limits)
    await in_a_thread(stage.__enter__)
    try:
        yield ThreadHouse(stage)
    finally:
        with trio.CancelScope(shield=True):
            await in_a_thread(stage.close)


async def in_a_thread(call: Callable[[*Ts], T], *arguments: *Ts) -> T:
    return await trio.to_thread.run_sync(call, *arguments)
