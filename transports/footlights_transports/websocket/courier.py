"""One task that sends for all subscribers of a server, as long as nobody has to wait.

To wake a task for each event of each connection costs more than all that is then done for it. So the task of a
subscriber sleeps while its connection takes at once what it is sent: the courier goes round all that have something,
takes it and sends it. Where a connection would have to wait, its own task goes on, and the courier waits for nobody.
"""

from __future__ import annotations

from itertools import islice
from math import inf
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

from footlights_transports.websocket.writer import LONGEST_GATHERING

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import StreamEvent, Subscription
    from footlights_transports.websocket.writer import FrameWriter

MOST_AT_ONCE = 32
"""Errands of one round. Others can be heard between two rounds, and for those who wait more is joined meanwhile."""
_REST_FOR_WORK = 9
"""After a round of batches there is none for so many times as long as it took, but never for longer than
`LONGEST_GATHERING`: they get a tenth of the time, and more only where a round takes very long."""


class Errand:
    """One subscriber's events and the connection that they go to."""

    __slots__ = ("_courier", "_error", "_stream", "_task", "writer")

    def __init__(self, courier: Courier, stream: Subscription, writer: FrameWriter) -> None:
        self._courier = courier
        self._stream = stream
        self._task: trio.lowlevel.Task | None = None
        self._error: Exception | None = None
        self.writer = writer

    @enable_ki_protection
    async def run(self) -> None:
        """Have the courier send. Returns when the subscriber's own task is to look what there is, and go on.

        Raises what is wrong with an event that cannot be sent. Not always a checkpoint.
        """
        if not (self._stream.is_live and self.writer.takes_at_once):
            return
        self._stream.call_when_ready(self._call)
        if not self._stream.is_empty:
            self._call()
        self._task = trio.lowlevel.current_task()
        try:
            await wait_task_rescheduled(self._abort)
        finally:
            self._stream.call_when_ready(None)
        if self._error is not None:
            raise self._error

    def _call(self) -> None:
        self._courier.call(self)

    def _abort(self, _raise_cancel: object) -> Abort:
        self._task = None
        return Abort.SUCCEEDED

    @property
    def is_over(self) -> bool:
        """Whether the subscriber's own task goes on."""
        return self._task is None

    def load(self, encode: Callable[[StreamEvent], bytes]) -> bool:
        """Give the writer what waits, if it may be sent now. Whether there is something to send."""
        if not (self._stream.is_live and self.writer.is_clear):
            self.hand_over()
            return False
        try:
            events = self._stream.receive_nowait()
            self.writer.put_events(list(map(encode, events)))
        except Exception as error:  # noqa: BLE001 - a boundary: what fails here is one connection
            self._fail(error)
            return False
        if not self._stream.is_empty:
            self._call()
        return bool(events)

    def send(self) -> None:
        """Send what the writer was given, and leave to the subscriber's own task what could not be sent."""
        try:
            is_sent = self.writer.send_nowait()
        except Exception as error:  # noqa: BLE001 - a boundary, as above
            self._fail(error)
        else:
            if not is_sent:
                self.hand_over()

    def _fail(self, error: Exception) -> None:
        self._error = error
        self.hand_over()

    def hand_over(self) -> None:
        """Let the subscriber's own task go on."""
        task, self._task = self._task, None
        if task is not None:
            reschedule(task)


class Courier:
    """Sends for everybody whose errand runs: at once, or what has gathered for those who asked for batches."""

    def __init__(self, encode: Callable[[StreamEvent], bytes]) -> None:
        self._encode = encode
        self._called: dict[Errand, None] = {}
        self._gathering: dict[Errand, None] = {}
        self._next_batches_at = inf
        self._no_batches_before = 0.0
        self._waiting: trio.lowlevel.Task | None = None

    def errand(self, stream: Subscription, writer: FrameWriter) -> Errand:
        """What is to be sent where. It has to be run."""
        return Errand(self, stream, writer)

    def call(self, errand: Errand) -> None:
        """There is something for this one."""
        self._called[errand] = None
        task, self._waiting = self._waiting, None
        if task is not None:
            reschedule(task)

    def take_along(self, errand: Errand) -> None:
        """If there is something for this one, its writer gets it now: the caller is about to send on it."""
        if errand in self._called and not errand.is_over and not errand.writer.in_batches:
            del self._called[errand]
            errand.load(self._encode)

    @enable_ki_protection
    async def run(self) -> None:
        """Go round whenever there is something, until cancelled."""
        while True:
            await self._wait()
            self._go_round()

    async def _wait(self) -> None:
        if self._called:
            await trio.lowlevel.checkpoint()
        elif not self._gathering:
            await self._wait_for_a_call()
        else:
            with trio.move_on_at(self._next_batches_at):
                await self._wait_for_a_call()

    async def _wait_for_a_call(self) -> None:
        # A parking lot would do, at several times the cost: this is waited for with every event.
        self._waiting = trio.lowlevel.current_task()
        await wait_task_rescheduled(self._abort)

    def _abort(self, _raise_cancel: object) -> Abort:
        self._waiting = None
        return Abort.SUCCEEDED

    def _go_round(self) -> None:
        at_once: list[Errand] = []
        for errand in list(islice(self._called, MOST_AT_ONCE)):
            del self._called[errand]
            if errand.writer.in_batches:
                self._gather(errand)
            else:
                at_once.append(errand)
        self._send(at_once)
        now = trio.current_time()
        if now >= self._next_batches_at:
            self._send_batches(now)

    def _gather(self, errand: Errand) -> None:
        self._gathering[errand] = None
        self._next_batches_at = min(self._next_batches_at, max(self._no_batches_before, errand.writer.due_at))

    def _send_batches(self, now: float) -> None:
        gathered, self._gathering = self._gathering, {}
        self._next_batches_at = inf
        early = [errand for errand in gathered if errand.writer.due_at > now and not errand.is_over]
        self._send([errand for errand in gathered if errand.writer.due_at <= now])
        done_at = trio.current_time()
        self._no_batches_before = done_at + min((done_at - now) * _REST_FOR_WORK, LONGEST_GATHERING)
        for errand in early:
            self._gather(errand)

    def _send(self, errands: list[Errand]) -> None:
        writers = {errand.writer: errand for errand in errands if not errand.is_over and errand.load(self._encode)}
        for errand in writers.values():
            errand.send()
