"""Native HTTP system: a Footlights server over HTTP, events as server-sent events."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import trio

from footlights import wire
from footlights.errors import Busy, FootlightsError, InvalidCommand, InvalidEvent, SessionClosed
from footlights.laws import Violation
from footlights_bench.scenario.systems.http_stream import HttpAddress, open_events, open_response, whole
from footlights_bench.scenario.systems.native import CLOSING
from footlights_transports.client.progress import Progress
from footlights_transports.client.protocol import LawBroken

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights.events import StreamEvent


class HttpPlayer:
    """A client of a session: one connection for its events, and one for each command."""

    def __init__(
        self, address: HttpAddress, session_id: str, turn: Mapping[str, Any], events: AsyncIterator[str]
    ) -> None:
        self._address = address
        self._session_id = session_id
        self._turn = turn
        self._events = events
        self._progress = Progress({})

    async def begin_turn(self, said: str) -> str:
        params = {"params": dict(self._turn)} if self._turn else {}
        begun = await ask(self._address, "POST", f"/v1/sessions/{self._session_id}/turns", {"input": said, **params})
        self._progress.expect(begun["turn_id"])
        return str(begun["turn_id"])

    async def cancel(self, turn_id: str) -> None:
        await ask(self._address, "POST", f"/v1/sessions/{self._session_id}/turns/{turn_id}/cancel")

    async def receive_batch(self) -> Sequence[StreamEvent]:
        async for data in self._events:
            try:
                event = wire.decode(data)
            except InvalidEvent as error:
                raise LawBroken(Violation("envelope", self._session_id, None, None, str(error))) from None
            self._progress.take(event)
            return [event]
        raise SessionClosed("The stream of events has ended.")

    async def cut(self) -> None:
        raise InvalidCommand("Connections are cut only over WebSocket.")

    def open_audience(self) -> AbstractAsyncContextManager[HttpPlayer]:
        raise Busy("Stalled clients are played only over WebSocket.")


class NativeHttp:
    """A Footlights server at an HTTP address."""

    shares_loop = False

    def __init__(self, name: str, address: HttpAddress, turn: Mapping[str, Any]) -> None:
        self.name = name
        self._address = address
        self._turn = turn

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[HttpPlayer]:
        session_id = str((await ask(self._address, "POST", "/v1/sessions", {}))["session_id"])
        path = f"/v1/sessions/{session_id}"
        async with open_events(self._address, "GET", f"{path}/events") as events:
            yield HttpPlayer(self._address, session_id, self._turn, events)
            with suppress(FootlightsError), trio.move_on_after(CLOSING):
                await ask(self._address, "DELETE", path)

    def open_probe(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def depths(self) -> None:
        return None


async def ask(address: HttpAddress, method: str, path: str, body: object = None) -> dict[str, Any]:
    """The JSON of a response. Raises `ConnectionLost` and `Refused`."""
    async with open_response(address, method, path, body) as pieces:
        data = await whole(pieces)
    read: dict[str, Any] = json.loads(data) if data else {}
    return read
