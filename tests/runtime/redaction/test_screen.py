"""Secrets that are split over tokens are hidden, nothing is lost or moved by it, and little is held back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.events import ErrorInfo, Ext, Heard, InterruptReason, ToolCallResult, TurnInterrupted
from footlights.redaction.screen import MAX_HELD, Found, Screen, covered_text
from footlights.redaction.secret_filter import SecretFilter
from footlights.redaction.spans import blotted

if TYPE_CHECKING:
    from collections.abc import Iterable

SECRETS = SecretFilter()
ROWS = [json.loads(line) for line in (Path(__file__).parent / "corpus" / "dev.jsonl").read_text("utf-8").splitlines()]
KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def said(screen: Screen, pieces: Iterable[str]) -> str:
    text = ""
    for piece in pieces:
        text += screen.take(piece, len(text))
    return text + screen.flush(len(text))


def test_token_by_token_as_much_is_found_as_in_the_whole_text() -> None:
    missed = alarms = 0
    for row in ROWS[::3]:
        screen = Screen(SECRETS)
        assert said(screen, row["text"]) == row["text"]
        alarms += bool(screen.spans) and not row["spans"]
        whole = SECRETS.redactor.spans(row["text"])
        for begin, end, _ in row["spans"]:
            in_pieces, at_once = (any(a <= begin and end <= b for a, b in spans) for spans in (screen.spans, whole))
            missed += at_once and not in_pieces
    assert (missed, alarms) == (0, 0)


TEXTS = st.one_of(st.sampled_from([row["text"] for row in ROWS]), st.text(max_size=200))


@given(TEXTS, st.lists(st.integers(1, 40), min_size=1))
def test_however_a_text_is_split_it_is_let_through_in_order_and_whole(text: str, sizes: list[int]) -> None:
    screen = Screen(SECRETS)
    place, out = 0, ""
    while place < len(text):
        size = sizes[place % len(sizes)]
        out += screen.take(text[place : place + size], len(out))
        place += size
        assert text.startswith(out)
        assert min(place, len(text)) - len(out) <= MAX_HELD + 2 * 40
        before = screen.covered(out, 0)
    out += screen.flush(len(out))
    assert out == text
    whole = screen.covered(out, 0)
    assert len(whole) == len(text)
    assert not text or whole.startswith(before), "what a subscriber has been shown never changes"
    assert all(a <= b for (_, a), (b, _) in zip(screen.spans, screen.spans[1:], strict=False))


@given(st.lists(st.integers(1, 9), min_size=1))
def test_a_vendor_token_is_hidden_however_it_is_split(sizes: list[int]) -> None:
    text, screen = f"Here it is: {KEY} and so on.", Screen(SECRETS)
    pieces, place = list[str](), 0
    while place < len(text):
        size = sizes[place % len(sizes)]
        pieces.append(text[place : place + size])
        place += size
    assert KEY not in screen.covered(said(screen, pieces), 0)
    assert screen.covered(text, 0) == text.replace(KEY, "*" * len(KEY))


def test_prose_is_held_back_by_a_word() -> None:
    screen = Screen(SECRETS)
    assert screen.take("The attic ", 0) == "The attic "
    assert screen.take("is fr", 10) == "is "
    assert screen.take("ee, ", 13) == "free, "
    assert screen.take("and quiet.", 19) == "and "
    assert screen.flush(23) == "quiet."


def test_a_key_of_many_lines_is_not_held_until_its_end() -> None:
    screen, said_so_far = Screen(SECRETS), ""
    for line in [
        "-----BEGIN RSA PRIVATE " + "KEY-----\n",
        *["MIIEoAIBAAKCAQEAnnwithKV5lgZOFeDLbTqHrfl6RvNaaFlhjBjxu4u7qAm\n"] * 40,
    ]:
        said_so_far += screen.take(line, len(said_so_far))
    assert len(said_so_far) > 2_000
    assert "MII" not in screen.covered(said_so_far, 0)


def test_what_was_found_in_a_tools_result_is_hidden_where_it_is_quoted() -> None:
    screen = Screen(SECRETS)
    screen.note({"rows": [{"user": "ada", "password": "three little words"}], "mail": "ada@example.org"})
    text = said(screen, "Ada says: three little words. Her mail is ada@example.org, she said.")
    assert screen.covered(text, 0) == f"Ada says: {'*' * 18}. Her mail is {'*' * 15}, she said."


def test_text_that_was_refused_is_forgotten() -> None:
    screen = Screen(SECRETS)
    assert screen.take(f"{KEY} is it", 0) == f"{KEY} is "
    assert screen.spans
    assert screen.take("Good evening, ", 0) == "Good evening, "  # of the first text, nothing was said
    assert screen.covered("Good evening, ", 0) == "Good evening, "
    screen.take("my fr", 14)
    screen.drop()
    assert screen.flush(17) == ""


class Moderation:
    def find(self, text: str, *, ended: bool) -> Found:
        place = text.find("dragon")
        settled = len(text) if ended else max(len(text) - 6, 0)
        return Found([] if place < 0 else [(place, place + 6)], settled)


class Broken:
    def find(self, text: str, *, ended: bool) -> Found:
        raise ValueError(text)


def test_a_host_brings_a_filter_of_its_own() -> None:
    screen = Screen(Moderation())
    text = said(screen, "Beware of the dragon here")
    assert screen.covered(text, 0) == "Beware of the ****** here"
    assert covered_text(Moderation(), "a dragon") == "a ******"


def test_a_filter_that_raises_hides_all_and_stops_nothing() -> None:
    screen = Screen(Broken())
    assert said(screen, ["Good ", "evening."]) == "Good evening."
    assert screen.covered("Good evening.", 0) == "*" * 13


def test_what_tools_and_ends_say_is_covered() -> None:
    screen = Screen(SECRETS)
    said(screen, f"It is {KEY} now")
    result = ToolCallResult("c", "t", False, summary=f"read {KEY}", error=ErrorInfo("x", f"no {KEY}"))
    covered = screen.cover(result)
    assert isinstance(covered, ToolCallResult)
    assert covered.summary == "read " + "*" * len(KEY)
    assert covered.error == ErrorInfo("x", "no " + "*" * len(KEY))
    ended = TurnInterrupted(InterruptReason.CANCELED, heard=Heard(3, f"It is {KEY[:9]}"))
    assert screen.cover(ended) == TurnInterrupted(InterruptReason.CANCELED, heard=Heard(3, "It is *********"))
    ext = Ext("ext.a.b", {"password": "hunter2", "n": [1, "ada@example.org", None]})
    covered = screen.cover(ToolCallResult("c", "t", False, ext=ext))
    assert covered is not None
    assert covered.ext == Ext("ext.a.b", {"password": "*******", "n": [1, "*" * 15, None]})
    assert screen.cover(ToolCallResult("c", "t", False, summary="four rooms")) is None


def test_the_work_for_each_character_is_bounded() -> None:
    """A filter gets at most 64 characters for each new one, and a window that ends."""
    asked = list[int]()

    class Counting:
        def find(self, text: str, *, ended: bool) -> Found:
            asked.append(len(text))
            return Found([(0, len(text))], 0)

    screen, out = Screen(Counting()), 0
    for _ in range(20_000):
        out += len(screen.take("ab ", out))
    assert sum(asked) <= 65 * 60_000
    assert max(asked) <= 16_384 + 2 * 1_024


@pytest.mark.parametrize("text", ["", "abc"])
def test_blots_take_the_place_of_what_they_hide(text: str) -> None:
    assert blotted(text, []) == text
    assert blotted("abc", [(1, 3)]) == "a**"
