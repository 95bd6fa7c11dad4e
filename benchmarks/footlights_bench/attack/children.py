"""Processes of the suite that talk to it in lines of JSON over their standard input and output.

Attackers and the bystander run in processes of their own, so that neither waits for the other's work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from footlights_bench.attack.target import CannotAttack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from trio.abc import ReceiveStream, SendStream

_CHUNK = 65_536
_SECONDS_TO_START = 30
ATTACKER, BYSTANDER = 5, -10
"""Niceness. On a machine with few cores attackers must not take their turn from the bystander, who measures them."""


class Lines:
    """JSON values, one a line, over a pair of streams."""

    def __init__(self, sending: SendStream, receiving: ReceiveStream) -> None:
        self._sending = sending
        self._receiving = receiving
        self._buffer = b""

    async def send(self, value: object) -> None:
        await self._sending.send_all(json.dumps(value).encode() + b"\n")

    async def receive(self) -> Any:
        """None at the end."""
        while b"\n" not in self._buffer:
            data = await self._receiving.receive_some(_CHUNK)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (value := await self.receive()) is not None:
            yield value


class Child:
    """A process that was started, seen from the suite."""

    def __init__(self, module: str, lines: Lines) -> None:
        self._module = module
        self._lines = lines

    async def tell(self, value: object) -> None:
        try:
            await self._lines.send(value)
        except trio.BrokenResourceError:
            raise CannotAttack(f"{self._module} ended too early.") from None

    async def hear(self, seconds: float) -> Any:
        """What it says next. Raises `CannotAttack` if it ends, takes longer, or cannot do its work."""
        value: Any = {"cannot_attack": f"{self._module} said nothing for {seconds:.0f} seconds."}
        with trio.move_on_after(seconds):
            value = await self._lines.receive()
        match value:
            case None:
                raise CannotAttack(f"{self._module} ended without a report; its error stands above.")
            case {"cannot_attack": str() as why}:
                raise CannotAttack(why)
            case _:
                return value


@asynccontextmanager
async def child(module: str, job: object) -> AsyncGenerator[Child]:
    """A process that runs a module of this package, and has said that it is ready. It is killed on leaving."""
    # In a session of its own: Linux may share processors by session, and then a flood would slow the bystander down.
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        started = Child(module, Lines(process.stdin, process.stdout))
        await started.tell(job)
        await started.hear(_SECONDS_TO_START)
        yield started
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def run_child(work: Callable[[Any, Lines], Awaitable[None]], *, niceness: int) -> None:
    """The other side: `work` gets the job, says when it is ready, and reports."""
    with suppress(PermissionError):  # only root may be less nice
        os.nice(niceness)
    trio.run(partial(_run, work))


async def _run(work: Callable[[Any, Lines], Awaitable[None]]) -> None:
    async with trio.lowlevel.FdStream(os.dup(0)) as receiving, trio.lowlevel.FdStream(os.dup(1)) as sending:
        lines = Lines(sending, receiving)
        refusals: list[str] = []
        try:
            await work(await lines.receive(), lines)
        except* (CannotAttack, OSError, trio.TooSlowError) as group:
            refusals = [str(error) or type(error).__name__ for error in group.exceptions]
        if refusals:
            await lines.send({"cannot_attack": refusals[0]})
