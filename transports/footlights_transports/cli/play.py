"""`footlights play`: a conversation of one player with the innkeeper, one turn at a time.

In a terminal, Ctrl-C interrupts the turn, or leaves at the prompt, as the end of the input does. Without a terminal the
output is plain text without delays, and Ctrl-C ends the program as usual.
"""

from __future__ import annotations

import re
import signal
import sys
from functools import partial
from io import FileIO
from typing import TYPE_CHECKING, Protocol

import trio

from footlights import CommitFinal, FootlightsError, TurnInterrupted, TurnParams, open_stage
from footlights_transports.cli.development import development_mode
from footlights_transports.cli.narration import Narration, Tone, note, tell_approvals, tell_changes
from footlights_transports.cli.screen import EndWords, Typed, is_terminal, standard_screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from pathlib import Path

    from footlights import Cast, Stage, StreamEvent, Subscription
    from footlights_transports.cli.screen import Screen

SPEAKER = "Innkeeper"
WELCOME = "You enter the Mended Lantern. Ask for a room, an ale or a rumour."
KEYS = "Ctrl-C interrupts the innkeeper, Ctrl-D leaves."
FAREWELL = "The door closes behind you."
_ANSWER = re.compile(r"\s*/(yes|no) (a-[0-9]{6,15})\s*")


class Lines(Protocol):
    async def receive(self) -> str | None:
        """The player's next line, or None at the end of the input."""
        ...


class FdLines:
    """The lines of a file descriptor.

    A thread reads each line, because only a thread can wait for a terminal, a pipe and a file alike. The thread may
    still wait when the program ends, so it reads without a buffer: Python aborts if a thread then holds the lock of
    `sys.stdin`.
    """

    def __init__(self, fd: int) -> None:
        self._file = FileIO(fd, closefd=False)
        # One reader at a time: a second one would take bytes out of the line that the first one waits for.
        self._limiter = trio.CapacityLimiter(1)

    async def receive(self) -> str | None:
        """The next line without its end; None when there are no more. Bytes that are not UTF-8 are replaced.

        A cancelled call leaves its thread waiting, and the line that the thread then reads is lost.
        """
        line = await trio.to_thread.run_sync(self._file.readline, abandon_on_cancel=True, limiter=self._limiter)
        return line.decode(errors="replace").rstrip("\r\n") if line else None


def play_here(cast: Cast, trace: Path | None = None) -> bool:
    """Play on standard input and output, and write traces to the directory `trace`, if given.

    Returns whether a turn failed without a terminal, where nobody reads why.
    """
    return trio.run(_play_here, cast, trace)


async def _play_here(cast: Cast, trace: Path | None) -> bool:
    lines, screen = FdLines(sys.stdin.fileno()), standard_screen()
    # Whoever plays is the developer: there are no other players, and no tokens.
    with development_mode(sys.stderr, partial(screen.show, EndWords())):
        if not is_terminal():
            return await play(cast, lines, screen, trace=trace)
        screen.show(note(Tone.ASIDE, WELCOME))
        screen.show(note(Tone.ASIDE, KEYS))
        with trio.open_signal_receiver(signal.SIGINT) as interrupts:
            await play(cast, lines, screen, interrupts, trace)
        screen.show(note(Tone.ASIDE, FAREWELL))
        return False


async def play(
    cast: Cast,
    lines: Lines,
    screen: Screen,
    interrupts: AsyncIterable[object] | None = None,
    trace: Path | None = None,
) -> bool:
    """Play until the lines end, or until an interrupt at the prompt. Returns whether a turn failed."""
    try:
        async with open_stage(cast, trace=trace) as stage:
            conversation = _Conversation(stage, lines, screen)
            if interrupts is None:
                await conversation.run()
                return conversation.has_failed
            async with trio.open_nursery() as nursery:
                nursery.start_soon(conversation.take_interrupts, interrupts)
                await conversation.run()
                nursery.cancel_scope.cancel(reason="the player has left")
            return conversation.has_failed
    finally:
        screen.leave()


class _Conversation:
    def __init__(self, stage: Stage, lines: Lines, screen: Screen) -> None:
        self._stage = stage
        self._session = stage.start()
        self._lines = lines
        self._screen = screen
        self._asking: trio.CancelScope | None = None
        self.has_failed = False
        """Whether a turn failed."""

    async def run(self) -> None:
        async with self._session.subscribe() as stream:
            while (line := await self._ask()) is not None:
                if line.strip():
                    self._screen.show(Typed(line))
                    await self._take_turn(line, stream)

    async def take_interrupts(self, interrupts: AsyncIterable[object]) -> None:
        async for _ in interrupts:
            if self._asking is None:
                self._session.cancel()
            else:
                self._asking.cancel(reason="the player interrupted the prompt")

    async def _ask(self) -> str | None:
        line = None
        with trio.CancelScope() as self._asking:
            self._screen.ask()
            line = await self._lines.receive()
        self._asking = None
        return line

    async def _take_turn(self, line: str, stream: Subscription) -> None:
        try:
            turn_id = self._session.begin_turn(line, _params(line))
        except FootlightsError as error:
            self._screen.show(note(Tone.BAD, f"{error.code}: {error}"))
            return
        narration = Narration(SPEAKER)
        async for event in stream.until_commit(turn_id):
            for piece in narration.tell(event):
                self._screen.show(piece)
            if isinstance(event.payload, TurnInterrupted):
                self.has_failed = self.has_failed or event.payload.error is not None
            if isinstance(event.payload, CommitFinal):
                await self._show_changes(event)

    async def _show_changes(self, event: StreamEvent) -> None:
        record = await self._stage.ledger.find(event.session_id, event.turn_id)
        if record is not None:
            for piece in (*tell_changes(record.changes), *tell_approvals(record.artifacts)):
                self._screen.show(piece)


def _params(line: str) -> TurnParams:
    """`/yes a-000001` and `/no a-000001` answer an approval."""
    answer = _ANSWER.fullmatch(line)
    return TurnParams() if answer is None else TurnParams(approvals={answer[2]: answer[1] == "yes"})
