"""The player's lines, from a file descriptor.

Each line is read by a thread, because only a thread can wait for a terminal, a pipe and a file alike. It may be
left waiting when the program ends, so it reads without a buffer: whoever leaves Python while a thread holds the lock
of `sys.stdin` is aborted.
"""

from __future__ import annotations

from io import FileIO

import trio


class FdLines:
    def __init__(self, fd: int) -> None:
        self._file = FileIO(fd, closefd=False)
        # One reader at a time: a second one would take bytes out of the line that the first one waits for.
        self._limiter = trio.CapacityLimiter(1)

    async def receive(self) -> str | None:
        """The next line without its end; None when there are no more. Bytes that are not UTF-8 are replaced.

        A call that is cancelled leaves its reader waiting: the line that comes then is lost.
        """
        line = await trio.to_thread.run_sync(self._file.readline, abandon_on_cancel=True, limiter=self._limiter)
        return line.decode(errors="replace").rstrip("\r\n") if line else None
