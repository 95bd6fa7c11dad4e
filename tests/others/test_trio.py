"""What trio itself promises, cancelled everywhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_kit import Trial

pytestmark = pytest.mark.others


def test_an_item_is_sent_or_the_send_was_cancelled_never_both() -> None:
    async def scenario(trial: Trial) -> None:
        send, receive = trio.open_memory_channel[str](0)
        sent, received = [], []

        async def consumer() -> None:
            received.extend([item async for item in receive])

        async with trio.open_nursery() as nursery, receive:
            nursery.start_soon(consumer)
            with trial.part():
                async with send:
                    await send.send("item")
                    sent.append("item")
            send.close()
            await trio.testing.wait_all_tasks_blocked()
        assert received == sent

    assert cancel_everywhere(scenario).points > 5


def test_a_server_is_left_without_a_socket() -> None:
    async def echo(stream: trio.SocketStream) -> None:
        await stream.send_all(await stream.receive_some())

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, echo, 0, host="127.0.0.1"))
            async with await trio.open_tcp_stream(*listeners[0].socket.getsockname()) as stream:
                await stream.send_all(b"hello")
                assert await stream.receive_some() == b"hello"
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario, orders=1).points > 10


def test_channels_made_of_generators_end() -> None:
    @trio.as_safe_channel
    async def numbers() -> AsyncGenerator[int]:
        for number in range(3):
            yield number
            await trio.sleep(1)

    async def scenario() -> None:
        async with numbers() as channel:
            async for _ in channel:
                await trio.sleep(1)

    assert cancel_everywhere(scenario).points > 10
