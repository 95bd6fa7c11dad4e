"""Broadcaster: one task that sends the events of every subscription of a WebSocket server.

**The idea.** The obvious server has a task for each subscription: it waits for events, encodes them, sends them. With
200 clients that follow one session, each token then wakes 200 tasks, and waking a task costs several times what is
done for it: an event is encoded once for all (`Encodings`), and a send that need not wait is one system call. So the
task of a subscription sleeps, in `Delivery.run`. When an outbox gets something, it calls its delivery (a plain call),
which adds itself to the set of the broadcaster and wakes that one task. The broadcaster goes round: for each delivery
in the set it takes the waiting events, gives them to the `FrameWriter` of the connection, and has it send, without
waiting.

**Slow clients.** The broadcaster never waits for a client. If the socket does not take everything, the rest stays with
the stream, and the delivery is handed over: its own task is woken, waits in `FrameWriter.flush` until the rest is out,
and goes back to `run`. The same happens with TLS, which takes nothing without waiting: to the broadcaster, such a
connection is one whose socket is always full. And when a subscription has ended (closed or detached) and its last
event was taken, it is handed over so that its own task learns why. There is no other way for an event to reach a
socket, so each exists once.

**Why it is correct.**

- *Order.* A subscription has one reader at a time: the broadcaster while `run` is entered, else none.
  Events go outbox, writer, stream, each a queue; and a writer is given events only while its stream is clear, that is,
  while no task is in the middle of a send and nothing is left of the last one. So nothing overtakes.
- *Nothing is forgotten.* `run` registers its call before it looks whether something waits already. A round removes a
  delivery from the set before it takes from it, so what arrives later adds it again; and if more waits than one round
  takes, `load` adds it again itself.
- *Backpressure.* Nothing is taken from an outbox whose connection is not clear. So a slow client's events stay where
  delivery classes and limits apply, and what is in flight for it is at most one round.
- *Fairness.* A round serves at most 32 deliveries, 256 events each, and there is a checkpoint after each round. One
  that has more is added behind the others.
- *Failure.* What fails for one delivery is raised in its own task, and ends that connection. The broadcaster itself
  calls nothing else that may raise.

**Batches.** A client that asked for batches gets one at most every 20 ms, and at once after silence. Its delivery
waits in a second set until the connection is due. Rounds of batches together get a tenth of the time: after one that
took 3 ms there is none for 27 ms, though never for longer than 100 ms. So with many such clients batches come less
often and hold more. If a connection had to be handed over, its own task did a part of the work, which the round cannot
measure; then the lateness of the round is taken as the sign of a busy loop.

**What was rejected.** A task for each subscription: with 200 clients it gave 0.53 of the events of a bare loop, which
only sends; the broadcaster gives more (docs/performance.md). A broadcaster that waits for sockets, with a
limit: one slow client would delay all others. `trio.Event` or a parking lot to wake the broadcaster: several times the
cost, with each event. Sending at most once in a millisecond: more would be joined, and every first word would wait. A
second way to send, from the subscription's own task, for TLS and for ended streams: it gathered batches by rules of its
own, and each change had to be made in both.
"""

from __future__ import annotations

from itertools import islice
from math import inf
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import StreamEvent, Subscription
    from footlights_transports.websocket.writer import FrameWriter

MAX_DELIVERIES_PER_ROUND = 32
LONGEST_GATHERING = 0.1
"""Seconds after which batches are sent however busy the loop is."""
_REST_PER_WORK = 9
"""Seconds without batches for each second that a round of batches took."""
_REST_PER_LATENESS = 8
"""The same for each second that the round came late, if connections were handed over."""


class Delivery:
    """The events of one subscription, on their way to one connection."""

    __slots__ = ("_broadcaster", "_error", "_stream", "_task", "writer")

    def __init__(self, broadcaster: Broadcaster, stream: Subscription, writer: FrameWriter) -> None:
        self._broadcaster = broadcaster
        self._stream = stream
        self._task: trio.lowlevel.Task | None = None
        self._error: Exception | None = None
        self.writer = writer

    @enable_ki_protection
    async def run(self) -> None:
        """Let the broadcaster send, until this task has to `flush` the writer or the subscription has ended.

        Raises what is wrong with an event that cannot be sent. Always a checkpoint.
        """
        self._stream.call_when_ready(self._call)
        if not (self._stream.is_live and self._stream.is_empty):
            self._call()
        self._task = trio.lowlevel.current_task()
        try:
            await wait_task_rescheduled(self._abort)
        finally:
            self._stream.call_when_ready(None)
        if self._error is not None:
            raise self._error

    def _call(self) -> None:
        self._broadcaster.call(self)

    def _abort(self, _raise_cancel: object) -> Abort:
        self._task = None
        return Abort.SUCCEEDED

    @property
    def is_handed_over(self) -> bool:
        """Whether its own task goes on, so that the broadcaster has to leave it alone."""
        return self._task is None

    def load(self, encode: Callable[[StreamEvent], bytes]) -> bool:
        """Give the writer what waits, if its stream is clear. Whether there is something to send."""
        if not self.writer.is_clear:
            self._hand_over()
            return False
        try:
            events = self._stream.receive_nowait()
            self.writer.put_events(list(map(encode, events)))
        except Exception as error:  # noqa: BLE001 - a boundary: what fails here is one connection
            self._fail(error)
            return False
        if not self._stream.is_empty:
            self._call()
        elif not self._stream.is_live:
            self._hand_over()
        return bool(events)

    def send(self) -> bool:
        """Send what the writer was given. Whether all of it is sent; else this delivery is handed over."""
        try:
            is_sent = self.writer.send_nowait()
        except Exception as error:  # noqa: BLE001 - a boundary, as above
            self._fail(error)
            return False
        if not is_sent:
            self._hand_over()
        return is_sent

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._hand_over()

    def _hand_over(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            reschedule(task)


class Broadcaster:
    """Sends the events of every running delivery: at once, or in rounds to clients that asked for batches."""

    def __init__(self, encode: Callable[[StreamEvent], bytes]) -> None:
        self._encode = encode
        self._called: dict[Delivery, None] = {}
        self._gathering: dict[Delivery, None] = {}
        self._next_batches_at = inf
        self._planned_for = inf
        """When the broadcaster meant to send the next batches, if it waits for that time."""
        self._no_batches_before = 0.0
        self._waiting: trio.lowlevel.Task | None = None

    def call(self, delivery: Delivery) -> None:
        """Visit this delivery in the next round: something waits, or its subscription has ended."""
        self._called[delivery] = None
        task, self._waiting = self._waiting, None
        if task is not None:
            reschedule(task)

    def take_along(self, delivery: Delivery) -> None:
        """Give what waits to the writer now, because the caller is about to send a reply on that connection."""
        if delivery in self._called and not delivery.is_handed_over and not delivery.writer.in_batches:
            del self._called[delivery]
            delivery.load(self._encode)

    @enable_ki_protection
    async def run(self) -> None:
        """Go round whenever there is something to send, until cancelled."""
        while True:
            await self._wait()
            self._go_round()

    async def _wait(self) -> None:
        if self._called:
            await trio.lowlevel.checkpoint()
        elif not self._gathering:
            await self._wait_for_a_call()
        else:
            self._planned_for = self._next_batches_at
            with trio.move_on_at(self._planned_for):
                await self._wait_for_a_call()

    async def _wait_for_a_call(self) -> None:
        self._waiting = trio.lowlevel.current_task()
        await wait_task_rescheduled(self._abort)

    def _abort(self, _raise_cancel: object) -> Abort:
        self._waiting = None
        return Abort.SUCCEEDED

    def _go_round(self) -> None:
        at_once: list[Delivery] = []
        for delivery in list(islice(self._called, MAX_DELIVERIES_PER_ROUND)):
            del self._called[delivery]
            if delivery.writer.in_batches:
                self._gather(delivery)
            else:
                at_once.append(delivery)
        self._send(at_once)
        now = trio.current_time()
        if now >= self._next_batches_at:
            self._send_batches(now)

    def _gather(self, delivery: Delivery) -> None:
        self._gathering[delivery] = None
        self._next_batches_at = min(self._next_batches_at, max(self._no_batches_before, delivery.writer.due_at))

    def _send_batches(self, now: float) -> None:
        # Only a round that was planned can be late: the time before a call was idle, not busy.
        late = max(0.0, now - self._planned_for)
        gathered, self._gathering = self._gathering, {}
        self._next_batches_at = self._planned_for = inf
        early = [each for each in gathered if each.writer.due_at > now and not each.is_handed_over]
        is_all_sent = self._send([each for each in gathered if each.writer.due_at <= now])
        done_at = trio.current_time()
        rest = max((done_at - now) * _REST_PER_WORK, 0.0 if is_all_sent else late * _REST_PER_LATENESS)
        self._no_batches_before = done_at + min(rest, LONGEST_GATHERING)
        for delivery in early:
            self._gather(delivery)

    def _send(self, deliveries: list[Delivery]) -> bool:
        """Load them all, and then send once on each connection. Whether every socket took everything."""
        writers = {each.writer: each for each in deliveries if not each.is_handed_over and each.load(self._encode)}
        is_all_sent = True
        for delivery in writers.values():
            is_all_sent = delivery.send() and is_all_sent
        return is_all_sent
