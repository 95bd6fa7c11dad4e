"""`fail_everywhere`: errors at awaits, Ctrl-C at lines, and what they leave behind."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit import ExplorationFailed, LocksHeld, fail_everywhere

if TYPE_CHECKING:
    from footlights_kit.trial import Trial


async def greet(stream: trio.abc.Stream) -> bytes | bytearray:
    await stream.send_all(b"hello")
    return await stream.receive_some()


async def greeting() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with ours, theirs, trio.open_nursery() as nursery:
        nursery.start_soon(greet, ours)
        await greet(theirs)


def test_every_await_fails_once_and_the_error_may_leave() -> None:
    explored = fail_everywhere(greeting, OSError)
    assert (explored.points, explored.runs) == (4, 5)


def test_an_error_that_is_raised_because_of_it_may_leave_and_another_may_not() -> None:
    async def wrapped() -> None:
        try:
            await greeting()
        except* OSError as group:
            raise trio.BrokenResourceError from group.exceptions[0]

    async def confused() -> None:
        with suppress(OSError):
            await trio.sleep(1)
        raise LookupError("always")

    assert fail_everywhere(wrapped, OSError).points == 4
    with pytest.raises(ExplorationFailed, match="LookupError: always"):
        fail_everywhere(confused, OSError)


def test_what_is_not_given_back_when_an_await_fails_is_found_and_replayed() -> None:
    async def scenario() -> None:
        lock = trio.Lock()
        await lock.acquire()
        await trio.sleep(1)
        lock.release()

    with pytest.raises(ExplorationFailed) as failed:
        fail_everywhere(scenario, lambda: ConnectionResetError("reset by peer"))
    assert isinstance(failed.value.__cause__, LocksHeld)
    assert "raised at point 1 (main step 2 at t=0)" in str(failed.value)
    assert "in scenario: await trio.sleep(1)" in str(failed.value)
    with pytest.raises(ExplorationFailed):
        fail_everywhere(scenario, ConnectionResetError, replay=failed.value.replay)
    assert fail_everywhere(scenario, ConnectionResetError, replay="order=0 points=0").points == 1


def test_an_operation_that_failed_has_done_nothing() -> None:
    async def scenario(trial: Trial) -> None:
        send, receive = trio.open_memory_channel[int](1)
        trial.aim()
        try:
            await send.send(1)
        except OSError:
            assert receive.statistics().current_buffer_used == 0
        else:
            assert await receive.receive() == 1
        trial.disarm()
        with send, receive:
            pass

    assert fail_everywhere(scenario, OSError).points == 2


def test_ctrl_c_comes_before_every_line() -> None:
    async def scenario() -> None:
        balance = {"a": 1, "b": 0}
        try:
            await trio.sleep(1)
            balance["a"] -= 1
            balance["b"] += 1
        finally:
            assert sum(balance.values()) == 1, "money is lost"

    with pytest.raises(ExplorationFailed, match=r"KeyboardInterrupt raised at .*: money is lost") as failed:
        fail_everywhere(scenario, KeyboardInterrupt)
    assert 'in scenario: balance["b"] += 1' in str(failed.value)


def test_ctrl_c_may_leave() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            await trio.sleep(2)

    assert fail_everywhere(scenario, KeyboardInterrupt).points > 3
