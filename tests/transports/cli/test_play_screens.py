"""The screens show each piece once: the plain one as plain text, the rich one with care for the terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from footlights_transports.cli.play.narration import Asked, Loading, Note, Speaker, Speech, SpeechEnd, Tone
from footlights_transports.cli.play.plain import PlainScreen
from footlights_transports.cli.play.rich import RichScreen, wrap

PIECES = (
    Asked("A room?"),
    Loading("innkeeper", None),
    Loading("innkeeper", 0.5),
    Note(Tone.ASIDE, "ready"),
    Speaker("Innkeeper"),
    Speech("Here is"),
    Speech(" your room."),
    SpeechEnd(),
    Note(Tone.GOOD, "committed c-1"),
)


def test_the_plain_screen_writes_plain_text() -> None:
    out = StringIO()
    screen = PlainScreen(out)
    screen.ask()
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


def rich_screen(width: int = 60) -> tuple[RichScreen, StringIO]:
    out = StringIO()
    return RichScreen(Console(file=out, force_terminal=True, width=width, height=20, _environ={})), out


def test_the_rich_screen_shows_the_bar_only_while_loading() -> None:
    screen, out = rich_screen()
    hide, show = "\x1b[?25l", "\x1b[?25h"
    screen.ask()
    for piece in PIECES[:3]:
        screen.show(piece)
    assert "innkeeper is loading" in out.getvalue()
    assert out.getvalue().count(hide) == 1
    assert show not in out.getvalue()
    screen.show(PIECES[3])
    assert show in out.getvalue()


def test_the_rich_screen_gives_the_cursor_back_when_it_is_left_in_the_middle() -> None:
    screen, out = rich_screen()
    screen.show(Loading("innkeeper", 0.5))
    screen.leave()
    assert "\x1b[?25h" in out.getvalue()


def test_the_rich_screen_does_not_repeat_what_the_player_typed() -> None:
    screen, out = rich_screen()
    screen.show(Asked("A room?"))
    assert out.getvalue() == ""


def test_the_rich_screen_streams_words_and_takes_nothing_for_markup() -> None:
    screen, out = rich_screen(width=20)
    for piece in (Speaker("Odo"), Speech("[bold]one"), Speech(" two three"), SpeechEnd()):
        screen.show(piece)
    assert out.getvalue().endswith("[bold]one two\nthree\n")


@pytest.mark.parametrize(
    ("text", "column", "wrapped", "ends_at"),
    [
        ("one two", 0, "one two", 7),
        (" three", 7, "\nthree", 5),
        ("a word that is long", 0, "a word\nthat is\nlong", 4),
        ("unbreakable-and-too-long", 0, "unbreakable-and-too-long", 24),
        ("one\ntwo", 5, "one\ntwo", 3),
        ("日本語 日本", 0, "日本語\n日本", 4),
        ("trailing ", 2, "\ntrailing ", 9),
    ],
)
def test_words_are_wrapped_as_they_come(text: str, column: int, wrapped: str, ends_at: int) -> None:
    assert wrap(text, column, width=8) == (wrapped, ends_at)
