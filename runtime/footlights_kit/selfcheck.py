"""Self-check of the hooks in `trio_hooks` against the installed trio.

A hook that silently stopped working would make an exploration pass without exploring anything. So each hook is used
once and its effect is checked; otherwise HooksMoved names the version of trio and the missing effect.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from footlights_kit.trio_hooks import (
    PLUMBING,
    awaited_files,
    break_clock,
    calling_through,
    hooked_threads,
    is_cancelled,
    moved,
    pending_cancel,
    scheduled_by,
    scopes_around,
    send_from_thread,
    start_thread,
    watched_scopes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@cache
def check_hooks() -> None:
    """Raise HooksMoved unless every hook works. Costs a few milliseconds, once per process."""
    _check_plumbing()
    _check_schedule()
    _check_threads()
    _check_break()
    _check_scopes()


def _check_plumbing() -> None:
    async def main() -> set[str]:
        own = trio.lowlevel.current_task()
        return {task.name for task in _family(trio.lowlevel.current_root_task()) if task is not own}

    names = trio.run(main)
    if names ^ PLUMBING:
        raise moved(f"the tasks of an empty run are {sorted(names)}")


def _family(task: trio.lowlevel.Task | None) -> Iterator[trio.lowlevel.Task]:
    if task is not None:
        yield task
        for nursery in task.child_nurseries:
            for child in nursery.child_tasks:
                yield from _family(child)


def _check_schedule() -> None:
    first, again = ([_stepping_order(seed) for seed in range(8)] for _ in range(2))
    if first != again:
        raise moved("a seed does not determine the order of tasks")
    if len(set(first)) == 1:
        raise moved("the order of tasks does not depend on the seed")


def _stepping_order(seed: int) -> tuple[int, ...]:
    order: list[int] = []

    async def step(number: int) -> None:
        order.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(step, number)

    with scheduled_by(seed):
        trio.run(main)
    return tuple(order)


def _check_threads() -> None:
    calls: list[str] = []
    tokens: list[trio.lowlevel.TrioToken] = []

    class Relay:
        def run_sync_soon(self, fn: Callable[[], object]) -> None:
            calls.append("relay")
            tokens[0].run_sync_soon(fn)

    def start(fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None) -> None:
        calls.append("start")
        start_thread(fn, deliver, name)

    def send(token: trio.lowlevel.TrioToken | None, message: Any) -> Any:
        calls.append("send" if hasattr(message, "queue") else "send without a queue")
        with calling_through(Relay()):
            return send_from_thread(token, message)

    async def main() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        await trio.to_thread.run_sync(trio.from_thread.run_sync, calls.append, "loop")

    with hooked_threads(start, send):
        trio.run(main)
    if calls != ["start", "send", "relay", "loop"]:
        raise moved(f"a call to a thread and back was seen as {calls}")


def _check_break() -> None:
    clock = trio.testing.MockClock()
    break_clock(clock, ZeroDivisionError())
    try:
        clock.current_time()
    except ZeroDivisionError:
        return
    raise moved("a MockClock cannot be made to fail")


def _check_scopes() -> None:
    ended: list[tuple[trio.CancelScope, BaseException | None]] = []
    pending: list[trio.Cancelled | None] = []
    files: list[int] = []

    class Looking(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            if task.name not in PLUMBING:
                pending.append(pending_cancel(task))

        def before_io_wait(self, timeout: float) -> None:
            files.append(len(awaited_files()))

    around: list[trio.CancelScope] = []
    cancelled: list[bool] = []

    async def main() -> bool:
        with trio.CancelScope() as outer, trio.CancelScope(shield=True) as inner:
            around.extend(scopes_around(trio.lowlevel.current_task()))
            inner.cancel()
            cancelled.extend([is_cancelled(outer), is_cancelled(inner)])
            await trio.sleep_forever()
        kinds = [(scope, type(error)) for scope, error in ended if scope in (outer, inner)]
        return (
            around == [inner] and cancelled == [False, True] and kinds == [(inner, trio.Cancelled), (outer, type(None))]
        )

    with watched_scopes(lambda scope, error: ended.append((scope, error))):
        seen = trio.run(main, instruments=[Looking()])
    if not seen or not isinstance(pending[-1], trio.Cancelled) or pending[0] is not None:
        raise moved("a cancel cannot be followed from its scope to a task and back")
    if sys.platform == "linux" and not any(files):
        raise moved("the descriptors that a run waits for cannot be seen")
