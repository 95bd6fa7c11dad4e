"""Worker process, as the router sees it: it is started, gets connections, answers, and is started again if it dies."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import frozen

from footlights.errors import FootlightsError
from footlights_transports.server.readiness import CHECK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from footlights_transports.server.readiness import Reason

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LIVED = 10.0
"""Seconds after which the death of a worker counts as the first one."""
_PATIENCE = 2 * CHECK_SECONDS
"""Seconds within which a worker answers, also if its ledger does not."""
_GLANCE = 0.02

log = logging.getLogger("footlights.workers")


@frozen
class Answer:
    """How a worker is."""

    metrics: str
    reasons: Sequence[Reason]
    """Why its main world is not ready; empty if it is, or if the worker has another part of the worlds."""
    rule: str | None


class WorkerFailed(FootlightsError):
    """A worker did not start. It has said why on standard error."""

    code = "worker_failed"


class WorkerProcess:
    """One worker. `arguments` are for `footlights_transports.workers`."""

    def __init__(self, arguments: Mapping[str, object], died: Callable[[], None]) -> None:
        self._arguments = arguments
        self._died = died
        self.epoch = 0
        """How many times the ledger of the main world was opened; 0 if it is another worker's."""
        self.status = 0
        """With what it ended last."""
        self._closing = trio.Event()
        self._process: trio.Process | None = None
        self._ready = trio.Event()
        self._connections: socket.socket | None = None
        self._talk: trio.SocketStream | None = None
        self._read = b""
        self._asked = 0
        """Questions so far. Each answer has the number of its question, because one may come too late."""
        self._turn = trio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.returncode is None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the worker alive, until it has ended after `stop`. Raises `WorkerFailed` if it does not start at all."""
        pause, is_first = _FIRST_PAUSE, True
        while not self._closing.is_set():
            began = trio.current_time()
            self.status = await self._run_once(task_status if is_first else trio.TASK_STATUS_IGNORED)
            if self._closing.is_set():
                break
            if not self._ready.is_set() and is_first:
                raise WorkerFailed("A worker did not start.")
            is_first = False
            if self._ready.is_set():  # else connections wait for it
                self._ready = trio.Event()
            self._died()
            log.error("worker %s died with %d, and is started again", self._arguments["index"], self.status)
            pause = _FIRST_PAUSE if trio.current_time() - began > _LIVED else min(2 * pause, _LONGEST_PAUSE)
            await trio.sleep(pause)

    async def _run_once(self, task_status: trio.TaskStatus[None]) -> int:
        ours, theirs = socket.socketpair()
        talk, their_talk = socket.socketpair()
        with ours, talk:
            with theirs, their_talk:
                arguments = {**self._arguments, "connections": theirs.fileno(), "questions": their_talk.fileno()}
                self._process = await trio.lowlevel.open_process(
                    [sys.executable, "-m", "footlights_transports.workers", orjson.dumps(arguments).decode()],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), their_talk.fileno()),
                    start_new_session=True,  # Ctrl-C is for the router
                )
            if self._closing.is_set():  # `stop` has found the process before
                self._process.terminate()
            ours.setblocking(False)
            self._connections, self._read = ours, b""
            self._talk = trio.SocketStream(trio.socket.from_stdlib_socket(talk))
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._wait_ready, task_status)
                    status = await self._process.wait()
                    nursery.cancel_scope.cancel(reason="the worker has ended")
            except BaseException:
                self._process.kill()
                raise
            finally:
                self._talk = None
        return status

    async def _wait_ready(self, task_status: trio.TaskStatus[None]) -> None:
        hello = await self._answer(0)
        if hello is not None:
            self.epoch = hello["epoch"]
            self._ready.set()
            task_status.started()

    async def take(self, kind: bytes, client: socket.socket) -> None:
        """Pass a connection to the worker, when it is there and reads."""
        while True:
            await self._ready.wait()
            assert self._connections is not None, "a worker that is ready has it"
            try:
                socket.send_fds(self._connections, [kind], [client.fileno()])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._connections)
            except OSError:  # it has just died, or holds too many
                await trio.sleep(_GLANCE)
            else:
                return

    async def ask(self) -> Answer | None:
        """How the worker is; None if it does not answer in time."""
        with trio.move_on_after(_PATIENCE):
            async with self._turn:
                talk = self._talk
                if talk is not None and self._ready.is_set():
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        self._asked += 1
                        await talk.send_all(b"%d\n" % self._asked)
                        answer = await self._answer(self._asked)
                        return None if answer is None else Answer(**answer)
        return None

    async def _answer(self, number: int) -> Mapping[str, Any] | None:
        while True:
            line, end, rest = self._read.partition(b"\n")
            if not end:
                more = b"" if self._talk is None else await self._talk.receive_some()
                if not more:
                    return None
                self._read += more
                continue
            self._read = rest
            answer: dict[str, Any] = orjson.loads(line)
            if answer.pop("number") == number:
                return answer

    def stop(self) -> None:
        """Begin to shut down, in order."""
        self._closing.set()
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)
