"""Lines of the player: from a terminal with line editing, or from any file descriptor.

What was typed can be called back with the arrow keys while the program runs. It is not written to disk, because it is
what somebody said.
"""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from io import FileIO
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import trio
from attrs import Factory, define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from io import TextIOWrapper
    from types import FrameType

try:
    import readline

    readline.set_auto_history(False)
    _keep: Callable[[str], None] | None = readline.add_history
except ModuleNotFoundError:  # Windows: the console edits lines itself
    _keep = None

_T = TypeVar("_T")


class Lines(Protocol):
    async def receive(self, prompt: str) -> str | None:
        """The player's next line, or None at the end of the input."""
        ...


class FdLines:
    """The lines of a file descriptor, without a prompt.

    A thread reads each line, because only a thread can wait for a terminal, a pipe and a file alike. The thread may
    still wait when the program ends, so it reads without a buffer: Python aborts if a thread then holds the lock of
    `sys.stdin`.
    """

    def __init__(self, fd: int) -> None:
        self._file = FileIO(fd, closefd=False)
        # One reader at a time: a second one would take bytes out of the line that the first one waits for.
        self._limiter = trio.CapacityLimiter(1)

    async def receive(self, prompt: str = "") -> str | None:
        """The next line without its end; None when there are no more. Bytes that are not UTF-8 are replaced.

        A cancelled call leaves its thread waiting, and the line that the thread then reads is lost.
        """
        line = await trio.to_thread.run_sync(self._file.readline, abandon_on_cancel=True, limiter=self._limiter)
        return line.decode(errors="replace").rstrip("\r\n") if line else None


@define(eq=False)
class _Ask:
    """One question for a line, from the conversation to the main thread."""

    prompt: str
    answered: Callable[[], object]
    line: str | None = None


@define(eq=False)
class Terminal:
    """The lines and the interrupts of a person at a terminal; `converse` runs the conversation.

    `input` edits lines, and only on the main thread does Ctrl-C end it and discard the half line. So the main thread
    belongs to the terminal, and trio runs on a thread of its own.
    """

    _asked: SimpleQueue[_Ask | None] = Factory(lambda: SimpleQueue["_Ask | None"]())
    _interrupt: Callable[[], object] | None = None
    _is_editing: bool = False

    def converse(self, play: Callable[[], Awaitable[_T]]) -> _T:
        """The result of `play`, in which `receive` and `interrupts` may be used. Call it from the main thread."""
        result: Future[_T] = Future()

        def run() -> None:
            try:
                result.set_result(trio.run(play))
            except BaseException as error:  # noqa: BLE001 - raised again on the main thread
                result.set_exception(error)
            finally:
                self._asked.put(None)

        cast("TextIOWrapper", sys.stdin).reconfigure(errors="replace")
        before = signal.signal(signal.SIGINT, self._take_signal)
        try:
            threading.Thread(target=run, name="footlights play", daemon=True).start()
            while (ask := self._asked.get()) is not None:
                self._answer(ask)
        finally:
            signal.signal(signal.SIGINT, before)
        return result.result()

    async def receive(self, prompt: str) -> str | None:
        """The next line; None at the end of the input. Waits until cancelled if Ctrl-C discards the line."""
        answered, token = trio.Event(), trio.lowlevel.current_trio_token()
        ask = _Ask(prompt, lambda: token.run_sync_soon(answered.set))
        self._asked.put(ask)
        await answered.wait()
        return ask.line

    @contextmanager
    def interrupts(self) -> Generator[trio.MemoryReceiveChannel[None]]:
        """An item for each Ctrl-C inside of the block; outside of it, Ctrl-C ends the program."""
        press, pressed = trio.open_memory_channel[None](inf)
        token = trio.lowlevel.current_trio_token()
        self._interrupt = lambda: token.run_sync_soon(press.send_nowait, None)
        try:
            yield pressed
        finally:
            self._interrupt = None

    # -- on the main thread

    def _take_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_editing or self._interrupt is None:
            raise KeyboardInterrupt
        self._interrupt()

    def _answer(self, ask: _Ask) -> None:
        try:
            self._is_editing = True
            ask.line = _edited(ask.prompt)
            self._is_editing = False
        except EOFError:
            print()
        except KeyboardInterrupt:
            self._is_editing = False
            print()
            if self._interrupt is not None:
                self._interrupt()
                return
            raise
        finally:
            self._is_editing = False
        ask.answered()


def _edited(prompt: str) -> str:
    line = input(prompt)
    if _keep is not None and len(line.strip()) > 1:  # a y or an n is no use later
        _keep(line)
    return line
