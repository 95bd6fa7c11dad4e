"""Wrapping keeps words whole, in whatever pieces they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from footlights_transports.cli.wrapping import Wrapping, wrapped

WIDTH = 8


def written(*pieces: str, width: int = WIDTH) -> str:
    wrapping = Wrapping()
    return "".join(wrapping.add(piece, width) for piece in pieces) + wrapping.flush(width)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two", "one two"),
        ("one two three", "one two\nthree"),
        ("a word that is long", "a word\nthat is\nlong"),
        ("unbreakable-and-too-long x", "unbreakable-and-too-long\nx"),
        ("is unbreakable-and-so-on x", "is\nunbreakable-and-so-on x"),
        ("one\ntwo", "one\ntwo"),
        ("日本語 日本", "日本語\n日本"),
        ("日本語の日本語です。", "日本語の\n日本語で\nす。"),
        ("so 日本語です", "so 日本\n語です"),
        ("👨‍👩‍👧 👍🏽 ❤️ 👍🏽", "👨‍👩‍👧 👍🏽 ❤️\n👍🏽"),
        ("12345678 ", "12345678"),
        ("  two", "  two"),
    ],
)
def test_lines_break_between_words(text: str, lines: str) -> None:
    assert written(text) == lines


def test_a_word_that_comes_in_pieces_stays_whole() -> None:
    assert written("one un", "bre", "ak", " tw", "o") == "one\nunbreak\ntwo"


def test_a_word_is_written_as_soon_as_it_is_known_to_end() -> None:
    wrapping = Wrapping()
    assert [wrapping.add(piece, WIDTH) for piece in ("on", "e t", "wo", "\n")] == ["", "one", "", " two\n"]


def test_a_line_with_a_mark_goes_on_under_its_first_word() -> None:
    assert wrapped("  · one two three\n", 12) == "  · one two\n    three\n"
    assert wrapped("no mark here", 8) == "no mark\nhere"


@given(st.text(st.sampled_from("ab,-日。👍 \n"), max_size=60), st.integers(4, 12), st.data())
def test_pieces_make_no_difference_and_nothing_is_lost(text: str, width: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert written(*pieces, width=width) == written(text, width=width)
    assert "".join(written(text, width=width).split()) == "".join(text.split())


@given(st.lists(st.text("abc", min_size=1, max_size=6), max_size=20), st.integers(6, 20))
def test_no_line_of_narrow_words_is_wider_than_the_terminal(words: list[str], width: int) -> None:
    lines = written(" ".join(words), width=width).split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(lines).split() == words
