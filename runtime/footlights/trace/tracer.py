"""Tracer of a stage: writes every settled turn to the trace files.

A turn is traced as a whole, when it is settled or left in doubt, from the replay that it keeps for resuming
subscribers; so tracing costs a running turn nothing. Turns that cannot be written, or that exceed the backlog, are
dropped whole and counted. A failure here never affects a turn, a commit or the shutdown.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.wire.trace import encode_trace

if TYPE_CHECKING:
    from footlights.stream.replay import Replay
    from footlights.trace.files import TraceFiles

log = logging.getLogger("footlights.tracer")

MAX_WAITING_TURNS = 4_096
MAX_WAITING_SIZE = 32_000_000
"""In characters; each event other than text counts as `EVENT_SIZE`."""
EVENT_SIZE = 256

LINGER = 0.1
"""Seconds for which the first turn of a batch waits for others, because one write for many turns is cheaper."""

_MAX_BATCH = 256
_LINES_BETWEEN_CHECKPOINTS = 16


class Tracer:
    """`closed` is set when nothing more will be written."""

    def __init__(
        self,
        files: TraceFiles,
        *,
        fresh: bool,
        shutdown_deadline: float,
        max_waiting_turns: int = MAX_WAITING_TURNS,
        max_waiting_size: int = MAX_WAITING_SIZE,
    ) -> None:
        self.left_out = 0
        self.closed = trio.Event()
        self._closing = trio.Event()
        self._files = files
        self._fresh = fresh
        self._shutdown_deadline = shutdown_deadline
        self._max_waiting_size = max_waiting_size
        self._waiting_size = 0
        self._in_hand = 0
        self._untold = 0
        self._failing = False
        self._lines_until_checkpoint = _LINES_BETWEEN_CHECKPOINTS
        # A limiter of its own, so that a hanging disk takes no thread from other components.
        self._limiter = trio.CapacityLimiter(1)
        self._scope = trio.CancelScope(shield=True)
        self._send, self._receive = trio.open_memory_channel["Replay"](max_waiting_turns)

    def trace(self, turn: Replay) -> None:
        """Queue a turn that has ended. Never waits, and never raises."""
        size = _size(turn)
        if self._waiting_size + size > self._max_waiting_size:
            self._leave_out(1)
            return
        try:
            self._send.send_nowait(turn)
        except trio.WouldBlock:
            self._leave_out(1)
        else:
            self._waiting_size += size

    def close(self) -> None:
        """End of turns: write the backlog, or give up at the deadline."""
        self._closing.set()
        self._send.close()
        self._scope.deadline = trio.current_time() + self._shutdown_deadline

    @enable_ki_protection
    async def run(self) -> None:
        """Write until `close` is called. Shielded, so that the last turns of a cancelled host are traced."""
        try:
            with self._scope:
                async for turn in self._receive:
                    with trio.move_on_after(LINGER):
                        await self._closing.wait()
                    await self._trace([turn, *self._queued()])
            self._leave_out(self._in_hand + self._receive.statistics().current_buffer_used)
            self._tell_what_was_left_out()
        finally:
            self.closed.set()  # in any case, because the stage waits for it

    def _queued(self) -> list[Replay]:
        ready = min(_MAX_BATCH - 1, self._receive.statistics().current_buffer_used)
        return [self._receive.receive_nowait() for _ in range(ready)]

    async def _trace(self, batch: list[Replay]) -> None:
        self._waiting_size -= sum(map(_size, batch))
        self._in_hand = len(batch)
        await self._write(await self._formatted(batch))
        self._in_hand = 0

    async def _formatted(self, batch: list[Replay]) -> deque[bytes]:
        """Format here and not in the thread: a computing thread would hold the GIL for longer than these slices."""
        formatted: deque[bytes] = deque()
        for turn in batch:
            try:
                formatted.append(await self._format(turn))
            except Exception as error:  # noqa: BLE001 - a boundary: a turn that cannot be formatted is dropped
                self._in_hand -= 1
                self._leave_out(1)
                _tell(
                    logging.ERROR, "%s of %s cannot be traced: %s", turn.turn_id, turn.session_id, type(error).__name__
                )
        return formatted

    async def _format(self, turn: Replay) -> bytes:
        lines: list[bytes] = []
        for event in turn.events():
            lines.append(encode_trace(event))
            self._lines_until_checkpoint -= 1
            if not self._lines_until_checkpoint:
                self._lines_until_checkpoint = _LINES_BETWEEN_CHECKPOINTS
                await trio.lowlevel.checkpoint()
        return b"".join(lines)

    async def _write(self, turns: deque[bytes]) -> None:
        try:
            await trio.to_thread.run_sync(
                partial(self._append, turns),
                abandon_on_cancel=True,
                limiter=self._limiter,
                thread_name="footlights trace",
            )
        except Exception as error:  # noqa: BLE001 - a boundary: a failing disk must affect nothing else
            self._leave_out(len(turns))
            self._note_failure(error)
        else:
            self._failing = False
            self._tell_what_was_left_out()

    def _append(self, turns: deque[bytes]) -> None:
        """Runs in the worker thread."""
        if self._fresh:
            self._files.put_aside()
            self._fresh = False  # before the write: a retry must not rotate again
        self._files.append(turns)

    def _leave_out(self, turns: int) -> None:
        self.left_out += turns
        self._untold += turns

    def _note_failure(self, error: Exception) -> None:
        if not self._failing:
            self._failing = True
            # Type and errno only: the message of an error may quote data.
            _tell(
                logging.WARNING,
                "The trace cannot be written: %s %s",
                type(error).__name__,
                getattr(error, "errno", None),
            )

    def _tell_what_was_left_out(self) -> None:
        if self._untold:
            _tell(logging.WARNING, "%d turns were left out of the trace.", self._untold)
            self._untold = 0


def _tell(level: int, sentence: str, *values: object) -> None:
    with suppress(Exception):  # a boundary: the host's log handlers may fail too
        log.log(level, sentence, *values)


def _size(turn: Replay) -> int:
    return turn.text_length + EVENT_SIZE * turn.kept_events
