"""Transports of the contract suite: in the same process, and over WebSocket with the Python client."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights import open_stage
from footlights_transports import connect
from footlights_transports.access.session_access import SessionAccess
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import Cast, InteractionSession, Limits, SessionParams, Stage, TurnParams
    from tests.transports.contract.session_api import Decision, House


class MemoryGuest:
    def __init__(self, session: InteractionSession) -> None:
        self._session = session
        self.session_id = session.session_id
        self.subscribe = session.subscribe
        self.close = session.close

    async def begin_turn(self, said: str, params: TurnParams | None = None, *, request_id: str | None = None) -> str:
        if request_id is None:
            return self._session.begin_turn(said, params)
        return await self._session.begin_turn_once(said, params, request_id=request_id)

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        return self._session.cancel(turn_id)

    async def finalize(self, turn_id: str) -> Decision:
        return await self._session.finalize(turn_id).wait()

    async def heard(self, turn_id: str, seq: int) -> None:
        self._session.heard(turn_id, seq)


class MemoryHouse:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def start(self, params: SessionParams | None = None) -> MemoryGuest:
        return MemoryGuest(self._stage.start(params))


@asynccontextmanager
async def memory(cast: Cast, limits: Limits | None = None) -> AsyncGenerator[House, None]:
    async with open_stage(cast, limits=limits) as stage:
        yield MemoryHouse(stage)


@asynccontextmanager
async def websocket(cast: Cast, limits: Limits | None = None) -> AsyncGenerator[House, None]:
    async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_ws, SessionAccess(stage), host="127.0.0.1", port=0)
        listening = await nursery.start(serve)
        async with connect(f"ws://127.0.0.1:{listening.port}") as client:
            yield client
        nursery.cancel_scope.cancel()
