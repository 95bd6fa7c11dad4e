"""Processes, pipes and sockets of other processes hold the virtual clock; those of this process do not."""

from __future__ import annotations

import socket
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from footlights_kit import cancel_everywhere
from footlights_kit.real_things import await_files

if TYPE_CHECKING:
    from footlights_kit.trio_hooks import AwaitedFile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are known on Linux")

SLOWLY = "import time; time.sleep(0.02); print('done')"
PEER = """
import socket, sys, time
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as it:
    time.sleep(0.02)
    it.sendall(b"late")
"""


def test_a_process_is_in_time() -> None:
    async def scenario() -> None:
        with trio.fail_after(0.005):
            done = await trio.run_process([sys.executable, "-c", SLOWLY], capture_stdout=True)
        assert done.stdout == b"done\n"

    assert cancel_everywhere(scenario, replay="order=0").runs == 1


def test_a_slow_peer_in_another_process_is_in_time() -> None:
    async def scenario() -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.run_process, [sys.executable, "-c", PEER, str(port)]))
            # Its connection is not waited for: it need not come.
            with trio.CancelScope(shield=True):
                stream = await listener.accept()
            with trio.fail_after(0.005):
                async with stream:
                    assert await stream.receive_some() == b"late"

    assert cancel_everywhere(scenario, replay="order=0").runs == 1


def test_a_socket_whose_other_end_is_here_lets_time_pass() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            with trio.move_on_after(20):
                await trio.lowlevel.wait_readable(ours)
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            async with listener:
                client = await trio.open_tcp_stream(*listener.socket.getsockname())
                async with client, await listener.accept() as server:
                    with trio.move_on_after(20):
                        await client.receive_some()
                    with trio.move_on_after(20):
                        await listener.accept()
                    await server.send_all(b"x")
                    assert await client.receive_some() == b"x"

    assert cancel_everywhere(scenario, orders=1, thread_timeout=1000).points > 10


def test_a_process_that_dies_too_late_is_cancelled_at_every_point_it_can_be() -> None:
    async def scenario() -> None:
        with trio.move_on_after(0.005) as limit:
            await trio.run_process(["sleep", "0.01"])
        assert not limit.cancelled_caught or trio.current_effective_deadline() < 0

    explored = cancel_everywhere(scenario, orders=1)
    assert explored.points > 3


def test_what_is_outside_holds_the_clock_for_a_while_only() -> None:
    async def scenario() -> None:
        process = await trio.lowlevel.open_process(["sleep", "600"], stdin=subprocess.DEVNULL)
        try:
            with trio.move_on_after(20):
                await process.wait()
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    assert cancel_everywhere(scenario, replay="order=0", thread_timeout=0.05).runs == 1


def test_a_process_that_outlives_its_timeout_still_ends_in_time_when_it_is_killed() -> None:
    """Otherwise trio warns that it ignored the signal for five seconds, and here a warning is an error."""

    async def scenario() -> None:
        with trio.move_on_after(5):
            await trio.run_process(["sleep", "600"])

    assert cancel_everywhere(scenario, orders=1, thread_timeout=0.2).points > 3


def test_what_never_comes_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    patiences: list[float] = []

    def note(files: list[AwaitedFile], patience: float) -> bool:
        patiences.append(patience)
        return await_files(files, patience)

    async def scenario() -> None:
        with trio.move_on_after(5):
            await trio.run_process(["sleep", "600"])

    monkeypatch.setattr("footlights_kit.run_limits.await_files", note)
    assert cancel_everywhere(scenario, orders=1, thread_timeout=0.5).runs > 3
    assert [each for each in patiences if each > 0.1] == [0.5]
