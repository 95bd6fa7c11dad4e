"""Server-Sent Events, cut off anywhere: `Last-Event-ID` alone brings back what is missing, and nothing twice."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import httpx2
import pytest
import trio

from footlights import EventType, TurnFinal, laws, open_stage
from footlights.testing import only
from footlights_actors import standard_cast
from footlights_transports.access.session_access import SessionAccess
from tests.kit.cutting_proxy import Fate, open_proxy
from tests.kit.serving import serve_http
from tests.transports.contract.cue_model import CuedModel
from tests.transports.contract.over_http import HttpHouse, SseStream, stop_reading

if TYPE_CHECKING:
    from footlights import StreamEvent
    from tests.transports.contract.over_http import HttpGuest

SPEECH = "Good evening my friend, how do you do?"


class Reader:
    """Knows nothing but the last id, and begins the turn as soon as it listens."""

    def __init__(self, guest: HttpGuest) -> None:
        self._guest = guest
        self._last_id = ""
        self._turn_id: str | None = None
        self.events: list[StreamEvent] = []

    @property
    def has_all(self) -> bool:
        return bool(self.events) and self.events[-1].event_type is EventType.COMMIT_FINAL

    async def read(self, client: httpx2.AsyncClient) -> None:
        """Until the connection is cut, or everything is there."""
        headers = {"last-event-id": self._last_id} if self._last_id else {}
        path = f"/v1/sessions/{self._guest.session_id}/events"
        async with client.stream("GET", path, headers=headers) as response:
            lines = response.aiter_lines()
            stream = SseStream(lines, None)
            try:
                await stream.open()
                self._turn_id = self._turn_id or await self._guest.begin_turn(SPEECH)
                while not self.has_all:
                    self.events.append(await anext(stream))
            finally:
                self._last_id = stream.last_id or self._last_id
                await stop_reading(lines)


async def take_turn_through(port: int, *fates: Fate) -> list[StreamEvent]:
    async with (
        open_proxy(port, fates) as proxy,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=None) as direct,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{proxy.port}", timeout=None) as through,
    ):
        reader = Reader(await HttpHouse(direct).start())
        for _ in range(len(fates) + 1):
            try:
                await reader.read(through)
            except (httpx2.HTTPError, StopAsyncIteration):
                continue
            break
        return reader.events


@pytest.mark.parametrize("rude", [True, False])
async def test_a_cut_at_any_byte_loses_and_repeats_nothing(rude: bool) -> None:
    with trio.fail_after(100):
        async with open_stage(standard_cast(CuedModel())) as stage, trio.open_nursery() as nursery:
            serve = partial(serve_http, SessionAccess(stage), host="127.0.0.1", port=0)
            listening = await nursery.start(serve)
            for at in range(1, 3_600, 97):
                cuts = [Fate(cut_down=at, rude=rude), Fate(cut_down=max(1, at // 2), rude=rude, piece=50)]
                events = await take_turn_through(listening.port, *cuts)
                assert laws.check(events) == []
                assert only(events, TurnFinal).text == SPEECH
                assert events[-1].event_type is EventType.COMMIT_FINAL
            nursery.cancel_scope.cancel()
