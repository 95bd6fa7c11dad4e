"""Screens show each piece once: plain text in a file, wrapped words and a progress bar in a terminal."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from footlights_transports.cli.screen import (
    EndWords,
    Line,
    Loading,
    PlainScreen,
    TerminalScreen,
    Typed,
    Words,
    printable,
)
from footlights_transports.cli.turn_view import Tone, note

PIECES = (
    Typed("A room?"),
    Loading("innkeeper", None),
    Loading("innkeeper", 0.5),
    note(Tone.ASIDE, "ready"),
    Words("Innkeeper: "),
    Words("Here is"),
    Words(" your room."),
    Words("\n"),
    note(Tone.GOOD, "committed c-1"),
)


def test_the_plain_screen_writes_plain_text() -> None:
    out = StringIO()
    screen = PlainScreen(out)
    for piece in PIECES:
        screen.show(piece)
    screen.leave()
    assert out.getvalue().splitlines() == [
        "> A room?",
        "  · innkeeper is loading …",
        "  · ready",
        "Innkeeper: Here is your room.",
        "  ✓ committed c-1",
    ]


def terminal_screen(width: int = 60) -> tuple[TerminalScreen, StringIO]:
    out = StringIO()
    return TerminalScreen(Console(file=out, force_terminal=True, width=width, height=20, _environ={})), out


ERASE = "\r\x1b[2K"


def test_text_cannot_turn_the_line_around_that_it_stands_in() -> None:
    # U+202E would show the rest of the line, and what the game says there, from right to left.
    assert printable("to \u202ethe bank\u2066") == "to \ufffdthe bank\ufffd"
    assert printable("\u200f\u05e9\u05dc\u05d5\u05dd") == "\u200f\u05e9\u05dc\u05d5\u05dd"


def test_a_terminal_shows_the_bar_only_while_loading() -> None:
    screen, out = terminal_screen()
    for piece in PIECES[:3]:
        screen.show(piece)
    begun, half = out.getvalue().split(ERASE)
    assert all("innkeeper is loading" in each for each in (begun, half))
    assert "━" * 18 in half
    screen.show(PIECES[3])
    assert out.getvalue().split(ERASE)[2].endswith("  · ready\x1b[0m\n")


@pytest.mark.parametrize("width", [10, 24, 60])
def test_a_bar_stays_in_its_line(width: int) -> None:
    screen, out = terminal_screen(width)
    screen.show(Loading("innkeeper", 1.0))
    assert "\n" not in out.getvalue()
    assert out.getvalue().count("━") == {10: 0, 24: 0, 60: 36}[width]


def test_a_bar_is_erased_when_the_screen_is_left() -> None:
    screen, out = terminal_screen()
    screen.show(Loading("innkeeper", 0.5))
    screen.leave()
    assert out.getvalue().endswith(ERASE)


def test_a_terminal_does_not_repeat_what_the_player_typed() -> None:
    screen, out = terminal_screen()
    screen.show(Typed("A room?"))
    assert out.getvalue() == ""


def test_a_terminal_wraps_words_as_they_come_and_reads_no_markup() -> None:
    screen, out = terminal_screen(width=20)
    for piece in (Words("Odo: "), Words("[bold]one"), Words(" two three"), EndWords()):
        screen.show(piece)
    assert out.getvalue().endswith("[bold]one two\nthree\n")


def test_a_terminal_wraps_lines_under_their_first_word() -> None:
    screen, out = terminal_screen(width=20)
    screen.show(note(Tone.ASIDE, "one two three four five"))
    screen.show(Line("a plain line that is long"))
    assert re.sub(r"\x1b\[\d*m", "", out.getvalue()).splitlines() == [
        "  · one two three",
        "    four five",
        "a plain line that is",
        "long",
    ]


def test_without_colours_a_terminal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    out = StringIO()
    screen = TerminalScreen(Console(file=out, force_terminal=True, width=60, _environ={"NO_COLOR": "1"}))
    screen.show(note(Tone.GOOD, "committed"))
    assert "\x1b[3" not in out.getvalue()
    assert "✓ committed" in out.getvalue()
