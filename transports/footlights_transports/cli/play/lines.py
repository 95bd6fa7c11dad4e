"""Lines of the player: from a terminal with line editing, or from any file descriptor.

What was typed can be called back with the arrow keys while the program runs. It is not written to disk, because it is
what somebody said.
"""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext, suppress
from io import FileIO
from typing import TYPE_CHECKING, Protocol, Self, cast

import trio
from attrs import define

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import TextIOWrapper

DISCARDED = "\x03"
"""Stands for a line that the player discarded with Ctrl-C."""


class Lines(Protocol):
    async def receive(self, prompt: str) -> str | None:
        """The player's next line, `DISCARDED`, or None at the end of the input."""
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
class _Reading:
    """A line that a thread waits for."""

    tell: Callable[[], object]
    line: str | None = None


class TerminalLines:
    """The lines of a person at a terminal, edited by GNU readline where there is one. To be entered with `with`.

    A thread edits the line. There Ctrl-C must be a key and not a signal: a signal is for the main thread, and even
    there `input` misses it if it comes between two keys. So while a line is edited, the terminal sends no signal, and
    Ctrl-C is bound to a macro that discards the line and enters `DISCARDED` instead. Without GNU readline it is a
    signal as ever, and the line goes on being edited.
    """

    def __init__(self) -> None:
        self._reading: _Reading | None = None
        self._ready = trio.Event()
        self._keep = _set_up_readline()
        self._key = _InterruptKey(sys.stdin.fileno()) if self._keep is not None else None
        cast("TextIOWrapper", sys.stdin).reconfigure(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._key is not None:
            self._key.restore()  # a thread may still be editing

    async def receive(self, prompt: str) -> str | None:
        """The next line. A cancelled call leaves its thread waiting, and the next call gets the line of that thread."""
        with self._key or nullcontext():
            if self._reading is None:
                self._ready = trio.Event()
                token, ready = trio.lowlevel.current_trio_token(), self._ready
                self._reading = _Reading(lambda: token.run_sync_soon(ready.set))
                threading.Thread(target=_read, args=(prompt, self._reading), name="a line", daemon=True).start()
            else:
                sys.stdout.write(prompt)
                sys.stdout.flush()
            await self._ready.wait()
        line, self._reading = self._reading.line, None
        if self._keep is not None and line is not None and len(line.strip()) > 1:  # a y or an n is no use later
            self._keep(line)
        return line


def _read(prompt: str, reading: _Reading) -> None:
    try:
        reading.line = input(prompt)
    except EOFError:
        print()
    with suppress(trio.RunFinishedError):  # the conversation is over
        reading.tell()


def _set_up_readline() -> Callable[[str], None] | None:
    """Bind Ctrl-C, and return what adds a line to the history; None without GNU readline."""
    try:
        import readline
    except ModuleNotFoundError:
        return None
    if "libedit" in (readline.__doc__ or ""):
        return None
    readline.set_auto_history(False)
    readline.parse_and_bind(r'"\C-x\C-k": kill-whole-line')
    readline.parse_and_bind(r'"\C-x\C-v": quoted-insert')
    readline.parse_and_bind(r'"\C-c": "\C-x\C-k\C-x\C-v\C-c\C-m"')
    return readline.add_history


class _InterruptKey:
    """The key of a terminal that sends SIGINT. Inside of `with`, no key does."""

    def __init__(self, fd: int) -> None:
        import termios  # there is none on Windows, and no readline either

        self._termios = termios
        self._fd = fd
        self._before = termios.tcgetattr(fd)

    def __enter__(self) -> None:
        self._set(b"\0")

    def __exit__(self, *_: object) -> None:
        self._set(self._before[6][self._termios.VINTR])

    def restore(self) -> None:
        """Everything as it was at first."""
        self._termios.tcsetattr(self._fd, self._termios.TCSANOW, self._before)

    def _set(self, key: bytes) -> None:
        now = self._termios.tcgetattr(self._fd)  # readline changes other settings
        now[6][self._termios.VINTR] = key
        self._termios.tcsetattr(self._fd, self._termios.TCSANOW, now)
