"""Play on standard input and output: in a terminal with line editing, else line by line."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_transports.cli.development import development_mode
from footlights_transports.cli.play.conversation import converse
from footlights_transports.cli.play.lines import FdLines, TerminalLines
from footlights_transports.cli.play.script import play_script
from footlights_transports.cli.screen import EndWords, is_terminal, standard_screen
from footlights_transports.cli.turn_view import Tone, note

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from typing import BinaryIO

    from footlights_transports.cli.play.games import Game
    from footlights_transports.cli.screen import Screen

KEYS = "Ctrl-C interrupts, Ctrl-D leaves."


@frozen
class Opening:
    """A game that can be opened, and what is said to the player before and after it."""

    open_game: Callable[[], AbstractAsyncContextManager[Game]]
    persona: str | None
    welcome: str
    farewell: str | None = None
    shows_bugs: bool = False
    """Whether whoever plays is the developer of the game, who gets the tracebacks of its bugs."""


def play_here(opening: Opening, *, as_json: bool) -> int:
    """The exit code. Raises `FootlightsError` if the game cannot be opened or cannot go on."""
    screen = standard_screen()
    shown = development_mode(sys.stderr, partial(screen.show, EndWords())) if opening.shows_bugs else nullcontext()
    with shown:
        if as_json:
            return trio.run(_play_script, opening)
        if not is_terminal():
            return trio.run(_play_lines, opening, screen)
        trio.run(_play_at_terminal, opening, screen)
    return 0


async def _play_at_terminal(opening: Opening, screen: Screen) -> None:
    # Interrupts are taken only while somebody plays: before, as with a server that does not answer, Ctrl-C leaves.
    async with opening.open_game() as game:
        with trio.open_signal_receiver(signal.SIGINT) as interrupts, TerminalLines() as lines:
            screen.show(note(Tone.ASIDE, opening.welcome))
            screen.show(note(Tone.ASIDE, KEYS))
            await converse(game, lines, screen, interrupts, persona=opening.persona)
    if opening.farewell is not None:
        screen.show(note(Tone.ASIDE, opening.farewell))


async def _play_lines(opening: Opening, screen: Screen) -> int:
    async with opening.open_game() as game:
        failed = await converse(game, FdLines(sys.stdin.fileno()), screen, persona=opening.persona)
    return 1 if failed else 0


async def _play_script(opening: Opening) -> int:
    async with opening.open_game() as game:
        lines, show, complain = FdLines(sys.stdin.fileno()), _to(sys.stdout.buffer), _to(sys.stderr.buffer)
        failed = await play_script(game, lines, show, complain, persona=opening.persona)
    return 1 if failed else 0


def _to(file: BinaryIO) -> Callable[[bytes], object]:
    """Lines as they are, whatever the encoding of the terminal: JSON is UTF-8."""

    def write(line: bytes) -> None:
        file.write(line + b"\n")
        file.flush()

    return write
