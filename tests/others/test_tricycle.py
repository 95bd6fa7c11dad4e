"""tricycle, cancelled everywhere: locks for readers and writers, service nurseries, buffered streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from tricycle import BufferedReceiveStream, MultiCancelScope, RWLock, open_service_nursery

from footlights_kit import cancel_everywhere

if TYPE_CHECKING:
    from footlights_kit import Trial

pytestmark = pytest.mark.others


def test_a_lock_is_free_for_readers_and_writers_whoever_was_cancelled() -> None:
    async def scenario(trial: Trial) -> None:
        lock = RWLock()

        async def reader() -> None:
            async with lock.read_locked():
                await trio.sleep(1)

        async def writer() -> None:
            async with lock.write_locked():
                await trio.sleep(1)

        with trial.part():
            async with trio.open_nursery() as nursery:
                for each in (reader, writer, reader):
                    nursery.start_soon(each)
        with trio.fail_after(1):
            async with lock.write_locked():
                pass
            async with lock.read_locked():
                pass

    assert cancel_everywhere(scenario, pairs=20).points > 20


def test_a_reader_behind_a_writer_that_was_cancelled_gets_the_lock() -> None:
    async def scenario(trial: Trial) -> None:
        lock = RWLock()

        async def holder() -> None:
            async with lock.read_locked():
                await trio.sleep(10)

        async def late_reader() -> None:
            await trio.sleep(1)
            async with lock.read_locked():
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(holder)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(late_reader)
            with trial.part() as part:
                async with lock.write_locked():
                    pass
            with trio.fail_after(0.5 if part.cancelled_caught and trio.current_time() >= 1 else 15):
                async with lock.read_locked():
                    pass

    assert cancel_everywhere(scenario, pairs=20).points > 5


def test_the_tasks_of_a_service_nursery_outlive_its_body() -> None:
    async def scenario() -> None:
        is_up = False

        async def service(*, task_status: trio.TaskStatus[None]) -> None:
            nonlocal is_up
            is_up = True
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                is_up = False

        async with open_service_nursery() as nursery:
            await nursery.start(service)
            try:
                await trio.sleep(1)
            finally:
                assert is_up
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario).points > 10


def test_a_buffered_stream_loses_nothing_when_a_receive_is_cancelled() -> None:
    async def scenario(trial: Trial) -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        stream = BufferedReceiveStream(theirs)

        async def sender() -> None:
            for part in (b"he", b"ll", b"o"):
                await ours.send_all(part)
                await trio.sleep(1)

        got = b""
        async with ours, stream, trio.open_nursery() as nursery:
            nursery.start_soon(sender)
            with trial.part():
                got = await stream.receive_exactly(5)
            if not got:
                got = await stream.receive_exactly(5)
        assert got == b"hello"

    assert cancel_everywhere(scenario, pairs=20).points > 5


def test_scopes_that_are_cancelled_together_are_cancelled() -> None:
    async def scenario(trial: Trial) -> None:
        scopes = MultiCancelScope()
        ended = 0

        async def worker() -> None:
            nonlocal ended
            with scopes.open_child():
                await trio.sleep(10)
            ended += 1

        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(worker)
            trial.aim(scopes.cancel)
            await trio.sleep(1)
            trial.disarm()
            scopes.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert ended == 2

    assert cancel_everywhere(scenario, pairs=20).points > 5
