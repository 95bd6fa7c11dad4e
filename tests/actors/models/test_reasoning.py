from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from footlights_actors.models.reasoning import ThoughtFilter

_PIECES = st.sampled_from(
    [
        *("<think>", "</think>", "<thinking>", "</thinking>", "<reasoning>", "</reasoning>"),
        *("<", ">", "/", "</", "<thin", "k>", "<THINK>", "</Think>", "think", "\n", " ", "a bed", "é", "\u212a", "İ"),
        *("<think >", "< /think\n>", "< ", "think ", " " * 20),
    ]
)
_TEXTS = st.lists(_PIECES, max_size=12).map("".join)


def _shown(*pieces: str) -> str:
    thoughts = ThoughtFilter()
    return "".join([thoughts.feed(piece) for piece in pieces]) + thoughts.finish()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A room?", "A room?"),
        ("<think>a bed</think>A room?", "A room?"),
        ("Well. <think>a bed</think> A room?", "Well.  A room?"),
        ("<THINK>a bed</Think>A room?", "A room?"),
        ("<thinking>a</thinking><reasoning>b</reasoning>A room?", "A room?"),
        ("<think>a <reasoning>b</reasoning> c</think>A room?", "A room?"),
        ("<think>a <think>b</think> a bed</think>A room?", "A room?"),
        ("<think>a <think>b</think> a bed, and one is still open", ""),
        ("<think>a <reasoning>b</think> a bed</reasoning>A room?", "A room?"),
        ("<think>a</reasoning> a bed</think>A room?", "A room?"),
        ("<think >a bed</think >A room?", "A room?"),
        ("<think\n>a bed</think>A room?", "A room?"),
        ("< think>a bed< / think >A room?", "A room?"),
        ("1 < 2 and <thinker> < reason >", "1 < 2 and <thinker> < reason >"),
        ("A room? <think>a bed, and no end", "A room? "),
        ("A room? <think>a bed</thi", "A room? "),
        ("a bed</think>A room?", "a bedA room?"),
        ("</think>A room?", "A room?"),
        ("2 < 3, <b>and</b> </thin", "2 < 3, <b>and</b> </thin"),
        ("thin\u212a: <thin\u212a>", "thin\u212a: <thin\u212a>"),
        ("", ""),
    ],
)
def test_thoughts_are_taken_out_and_nothing_else_is(text: str, shown: str) -> None:
    assert _shown(text) == shown


def test_the_blank_between_a_thought_and_the_first_word_goes_with_the_thought() -> None:
    assert _shown("<think>\na bed\n</think>", "\n", "\nA room?\n", "\nYes.") == "A room?\n\nYes."
    assert _shown("  A room?") == "  A room?"


def test_only_what_may_become_a_tag_waits() -> None:
    thoughts = ThoughtFilter()
    assert thoughts.feed("A room <") == "A room "
    assert thoughts.feed("/thinkin") == ""
    assert thoughts.feed("g or not") == "</thinking or not"
    assert thoughts.feed("hing <") == "hing "
    assert thoughts.finish() == "<"


@given(text=_TEXTS, cuts=st.lists(st.integers(0, 80), max_size=8))
@example(text="<think>a</think>b", cuts=list(range(17)))
def test_however_a_text_is_cut_the_same_is_shown(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(edges)]
    assert _shown(*pieces) == _shown(text)


@given(said=st.text("ab <\n"), thought=st.text("ab <\n"), rest=st.text("ab <\n"))
def test_no_thought_is_shown_and_all_that_is_said_is(said: str, thought: str, rest: str) -> None:
    expected = said + (rest if said else rest.lstrip())
    assert _shown(*f"{said}<think>{thought}</think>{rest}") == expected
