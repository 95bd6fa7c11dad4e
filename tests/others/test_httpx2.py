"""httpcore2 and httpx2, cancelled everywhere, against a server that answers on a real socket."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import httpcore2
import httpx2
import pytest
import trio

from footlights_kit import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_kit import Trial

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

pytestmark = pytest.mark.others


async def answer(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        async with stream:
            async for _ in stream:
                await stream.send_all(ANSWER)


@asynccontextmanager
async def server() -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, answer, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/"
        nursery.cancel_scope.cancel()


def test_a_pool_serves_the_next_request_whatever_became_of_the_first() -> None:
    async def scenario(trial: Trial) -> None:
        async with server() as url, httpcore2.AsyncConnectionPool(max_connections=1) as pool:
            with trial.part():
                await pool.request("GET", url)
            with trio.fail_after(5):
                response = await pool.request("GET", url)
            assert response.content == b"hello"
            assert len(pool.connections) <= 1

    assert cancel_everywhere(scenario, orders=1, pairs=10).points > 10


def test_a_stream_of_a_client_may_be_cancelled_at_any_point() -> None:
    async def scenario() -> None:
        async with server() as url, httpx2.AsyncClient() as client, client.stream("GET", url) as response:
            assert b"".join([part async for part in response.aiter_bytes()]) == b"hello"

    assert cancel_everywhere(scenario, orders=1).points > 10
