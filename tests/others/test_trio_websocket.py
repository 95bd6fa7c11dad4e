"""trio-websocket, cancelled everywhere: both sides in memory, a server, and a peer that leaves early."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketRequest, wrap_client_stream, wrap_server_stream

from footlights_kit import Deadlocked, ExplorationFailed, cancel_everywhere

pytestmark = pytest.mark.others


async def serve(stream: trio.abc.Stream) -> None:
    async with trio.open_nursery() as nursery:
        request: WebSocketRequest = await wrap_server_stream(nursery, stream)
        async with await request.accept() as connection:
            try:
                while True:
                    await connection.send_message(await connection.get_message())
            except ConnectionClosed:
                pass
        nursery.cancel_scope.cancel()


async def echo() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, theirs)
        async with trio.open_nursery() as inner:
            async with await wrap_client_stream(inner, ours, "a", "/") as connection:  # type: ignore[arg-type]  # any stream
                await connection.send_message("hello")
                assert await connection.get_message() == "hello"
            inner.cancel_scope.cancel()


def test_an_echo_may_be_cancelled_at_any_point() -> None:
    assert cancel_everywhere(echo, orders=1, grace=70).points > 30


async def a_peer_that_leaves_early() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        await ours.aclose()
        with suppress(HandshakeError, ConnectionClosed):
            await wrap_server_stream(nursery, theirs)
        nursery.cancel_scope.cancel()


def test_a_peer_that_leaves_before_its_request_hangs_the_server() -> None:
    """A fault of trio-websocket 0.12.2. If this test fails, it has been mended: tell so in the README of the kit."""
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(a_peer_that_leaves_early)
    assert isinstance(failed.value.__cause__, Deadlocked)
    assert "await wrap_server_stream(nursery, theirs)" in str(failed.value)
