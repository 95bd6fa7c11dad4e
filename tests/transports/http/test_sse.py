"""The Server-Sent Events response: keep-alives, the end of the stream, disconnects and shutdown."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from footlights_transports.http.sse import KEEP_ALIVE, STREAMS, OpenStreams, SseResponse

if TYPE_CHECKING:
    from starlette.types import Message
    from trio.testing import MockClock


class Texts(SseResponse):
    """Sends texts from a channel, and ends with it."""

    drained = False

    def __init__(self, keep_alive: float, streams: OpenStreams | None = None) -> None:
        super().__init__(keep_alive)
        self._state = {STREAMS: streams or OpenStreams()}
        self.send, self._receive = trio.open_memory_channel[bytes](10)
        self.sent: list[bytes] = []
        self.client_leaves = trio.Event()

    @property
    def is_drained(self) -> bool:
        return self.drained

    def opening(self) -> bytes:
        return b"first\n\n"

    async def next_text(self) -> bytes | None:
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    async def respond(self) -> None:
        async def receive() -> Message:
            await self.client_leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                self.sent.append(message["body"])
            await trio.lowlevel.checkpoint()

        await self({"state": self._state}, receive, send)


async def test_a_comment_follows_each_silence_and_empty_text_begins_a_new_one(quiet_clock: MockClock) -> None:
    response = Texts(keep_alive=10.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(response.respond)
        await trio.sleep(9)
        await response.send.send(b"")
        await trio.sleep(9)
        assert response.sent == [b"first\n\n"]
        await trio.sleep(2)
        await response.send.send(b"next\n\n")
        await trio.sleep(15)
        response.send.close()
    assert response.sent == [b"first\n\n", KEEP_ALIVE, b"next\n\n", KEEP_ALIVE, b""]


async def test_a_client_that_disconnects_ends_the_response() -> None:
    response = Texts(keep_alive=inf)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(response.respond)
        await wait_all_tasks_blocked()
        response.client_leaves.set()
    assert response.sent == [b"first\n\n", b""]


async def test_at_shutdown_a_response_ends_once_it_is_drained() -> None:
    streams = OpenStreams()
    drained, busy, late = (Texts(inf, streams) for _ in range(3))
    async with trio.open_nursery() as nursery:
        for response in (drained, busy):
            nursery.start_soon(response.respond)
        await wait_all_tasks_blocked()
        drained.drained = True
        streams.leave()
        late.drained = True
        nursery.start_soon(late.respond)
        await wait_all_tasks_blocked()
        assert drained.sent == late.sent == [b"first\n\n", b""]
        await busy.send.send(b"last\n\n")
        busy.send.close()
    assert busy.sent == [b"first\n\n", b"last\n\n", b""]
