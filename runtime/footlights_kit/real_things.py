"""Real things: sockets, pipes and processes whose other side is outside of this process hold the virtual clock.

Under an autojumping clock a process that needs 10 ms loses against any virtual timeout, because the clock jumps the
moment no task is runnable. So before a jump the run really waits for the descriptors that its tasks wait for, if what
makes them ready is outside. It is not waited for

- a listening socket, because a connection from this process is there at once, and one from outside need not come;
- a socket or a pipe whose other end is in this process: what was written is there at once.

What does not come within `thread_timeout` real seconds is waited for a moment only from then on, in later runs too. So
a scenario that tests a timeout waits that long once, and a process that is then killed still ends in time.

Descriptors are known on Linux. Elsewhere real things do not hold the clock.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from typing import TYPE_CHECKING

from footlights_kit.trio_hooks import AwaitedFile, awaited_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FOLDER = "/proc/self/fd"


def files_outside() -> list[AwaitedFile]:
    """In a run: the descriptors that its tasks wait for, and that something outside makes ready."""
    return [each for each in awaited_files() if _is_outside(each)]


def await_files(files: Iterable[AwaitedFile], patience: float) -> bool:
    """Wait until one of these is ready; false if that takes longer."""
    poll = select.poll()
    for each in files:
        poll.register(each.fd, select.POLLIN * each.to_read | select.POLLOUT * each.to_write)
    return bool(poll.poll(patience * 1000))


def _is_outside(file: AwaitedFile) -> bool:
    link = os.readlink(f"{_FOLDER}/{file.fd}")  # noqa: PTH115 - asked at every rest of a run with sockets
    if link.startswith("pipe:"):
        return sum(_link(each) == link for each in os.listdir(_FOLDER)) == 1  # noqa: PTH208 - as above
    if link.startswith("socket:"):
        return _is_socket_outside(file)
    return "pidfd" in link


def _is_socket_outside(file: AwaitedFile) -> bool:
    with socket.socket(fileno=os.dup(file.fd)) as it:
        if it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return False
        if it.family == socket.AF_UNIX:
            pid: int
            pid, _, _ = struct.unpack("3i", it.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid != os.getpid()
        try:
            peer = it.getpeername()
        except OSError:
            return file.to_write  # it is connecting; a socket without a peer need not get anything
    return peer not in _own_addresses()


def _own_addresses() -> Iterator[object]:
    for name in os.listdir(_FOLDER):  # noqa: PTH208 - as above
        if _link(name).startswith("socket:"):
            with socket.socket(fileno=os.dup(int(name))) as each:
                yield each.getsockname()


def _link(name: str) -> str:
    try:
        return os.readlink(f"{_FOLDER}/{name}")  # noqa: PTH115 - as above
    except OSError:
        return ""  # the descriptor that lists the others
