"""`footlights play`: one player, one innkeeper, one turn at a time.

An interrupt while the innkeeper speaks interrupts the innkeeper; at the prompt it leaves, as the end of the input
does. Somebody who is not at a terminal gets plain text without delays, and an interrupt ends the program as usual.
"""

from __future__ import annotations

import re
import signal
import sys
from typing import TYPE_CHECKING, Protocol

import trio
from rich.console import Console

from footlights import CommitFinal, FootlightsError, TurnParams, open_stage
from footlights_transports.cli.play.lines import FdLines
from footlights_transports.cli.play.narration import Asked, Narration, Note, Tone, tell_approvals, tell_changes
from footlights_transports.cli.play.plain import PlainScreen
from footlights_transports.cli.play.rich import RichScreen

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from pathlib import Path

    from footlights import Cast, Stage, StreamEvent, Subscription
    from footlights_transports.cli.play.narration import Piece

SPEAKER = "Innkeeper"
WELCOME = "You enter the Mended Lantern. Ask for a room, an ale or a rumour."
KEYS = "Ctrl-C interrupts the innkeeper, Ctrl-D leaves."
FAREWELL = "The door closes behind you."
_ANSWER = re.compile(r"\s*/(yes|no) (a-[0-9]{6,15})\s*")


class Lines(Protocol):
    async def receive(self) -> str | None:
        """What the player says next; None if nothing more will come."""
        ...


class Screen(Protocol):
    def ask(self) -> None:
        """It is the player's turn to speak."""
        ...

    def show(self, piece: Piece) -> None: ...

    def leave(self) -> None:
        """The play is over, however it ended."""
        ...


def is_terminal() -> bool:
    """Whether somebody sits there."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def play_here(cast: Cast, trace: Path | None = None) -> None:
    """Play on standard input and output; how it went is written to the directory `trace`, if there is one."""
    trio.run(_play_in_terminal if is_terminal() else _play_on_paper, cast, trace)


async def _play_in_terminal(cast: Cast, trace: Path | None) -> None:
    screen = RichScreen(Console(highlight=False))
    screen.show(Note(Tone.ASIDE, WELCOME))
    screen.show(Note(Tone.ASIDE, KEYS))
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        await play(cast, FdLines(sys.stdin.fileno()), screen, interrupts, trace)
    screen.show(Note(Tone.ASIDE, FAREWELL))


async def _play_on_paper(cast: Cast, trace: Path | None) -> None:
    await play(cast, FdLines(sys.stdin.fileno()), PlainScreen(sys.stdout), trace=trace)


async def play(
    cast: Cast,
    lines: Lines,
    screen: Screen,
    interrupts: AsyncIterable[object] | None = None,
    trace: Path | None = None,
) -> None:
    """Talk until there are no more lines, or an interrupt comes while the player is asked."""
    try:
        async with open_stage(cast, trace=trace) as stage:
            conversation = _Conversation(stage, lines, screen)
            if interrupts is None:
                await conversation.hold()
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(conversation.obey, interrupts)
                await conversation.hold()
                nursery.cancel_scope.cancel(reason="the player has left")
    finally:
        screen.leave()


class _Conversation:
    def __init__(self, stage: Stage, lines: Lines, screen: Screen) -> None:
        self._stage = stage
        self._session = stage.start()
        self._lines = lines
        self._screen = screen
        self._asking: trio.CancelScope | None = None

    async def hold(self) -> None:
        async with self._session.subscribe() as stream:
            while (line := await self._ask()) is not None:
                if line.strip():
                    self._screen.show(Asked(line))
                    await self._take_turn(line, stream)

    async def obey(self, interrupts: AsyncIterable[object]) -> None:
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
            self._screen.show(Note(Tone.BAD, f"{error.code}: {error}"))
            return
        narration = Narration(SPEAKER)
        async for event in stream.until_commit(turn_id):
            for piece in narration.tell(event):
                self._screen.show(piece)
            if isinstance(event.payload, CommitFinal):
                await self._show_changes(event)

    async def _show_changes(self, event: StreamEvent) -> None:
        record = await self._stage.ledger.find(event.session_id, event.turn_id)
        if record is not None:
            for piece in (*tell_changes(record.changes), *tell_approvals(record.artifacts)):
                self._screen.show(piece)


def _params(line: str) -> TurnParams:
    """What a line decides: `/yes a-000001` and `/no a-000001` answer an approval."""
    answer = _ANSWER.fullmatch(line)
    return TurnParams() if answer is None else TurnParams(approvals={answer[2]: answer[1] == "yes"})
