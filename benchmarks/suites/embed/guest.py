"""Guest: a stage in trio's guest mode, which runs on the game loop's thread between the frames."""

from __future__ import annotations

from contextlib import contextmanager
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from footlights import open_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from outcome import Outcome

    from footlights import Cast, InteractionSession, StreamEvent


class Guest:
    """A stage as a guest of the game loop, made by `guest_stage`."""

    def __init__(self, cast: Cast, players: int) -> None:
        self._cast = cast
        self._players = players
        self._ready: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._leave = trio.Event()
        self._outcome: Outcome[None] | None = None
        self._sessions: list[InteractionSession] = []
        self.came: list[StreamEvent] = []

    # -- called by the game loop

    def begin_turns(self) -> None:
        for session in self._sessions:
            session.begin_turn("Go on.")

    def end_turns(self) -> None:
        for session in self._sessions:
            session.cancel()
        while any(session.statistics().turns_by_state for session in self._sessions):
            self._ready.get()()

    def take_events(self) -> None:
        self.came.clear()

    def wait_until(self, due: float) -> None:
        """Run trio's callbacks until this time."""
        while (left := due - perf_counter()) > 0:
            try:
                run = self._ready.get(timeout=left)
            except Empty:
                return
            run()

    def open(self) -> None:
        trio.lowlevel.start_guest_run(
            self._main, run_sync_soon_threadsafe=self._ready.put, done_callback=self._note_outcome
        )
        while self._outcome is None and len(self._sessions) < self._players:
            self._ready.get()()

    def close(self) -> None:
        self._leave.set()
        while self._outcome is None:
            self._ready.get()()
        self._outcome.unwrap()

    # -- run by trio

    def _note_outcome(self, outcome: Outcome[None]) -> None:
        self._outcome = outcome

    async def _main(self) -> None:
        async with open_stage(self._cast) as stage, trio.open_nursery() as nursery:
            for _ in range(self._players):
                session = stage.start()
                await nursery.start(self._read, session)
                self._sessions.append(session)
            await self._leave.wait()
            nursery.cancel_scope.cancel(reason="everything was measured")

    async def _read(self, session: InteractionSession, task_status: trio.TaskStatus[None]) -> None:
        async with session.subscribe() as stream:
            task_status.started()
            while batch := await stream.receive_batch():
                self.came += batch


@contextmanager
def guest_stage(cast: Cast, players: int) -> Generator[Guest]:
    guest = Guest(cast, players)
    guest.open()
    try:
        yield guest
    finally:
        guest.close()
