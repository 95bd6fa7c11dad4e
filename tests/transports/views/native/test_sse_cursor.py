"""A cursor says what a client has, in a word that fits into a header; and no other word is taken for one."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import FootlightsError, InvalidCommand
from footlights.stream.cursor import ALL_SEEN, Cursor
from footlights_transports.views.native.sse_cursor import MAX_CURSOR_CHARS, read_cursor, write_cursor

turn_ids = st.builds("t{}-{:06d}".format, st.integers(1, 2), st.integers(0, 12)) | st.text(
    "t0123456789-", min_size=1, max_size=20
)
seqs = st.integers(-1, ALL_SEEN) | st.just(ALL_SEEN)
cursors = st.builds(Cursor, st.dictionaries(turn_ids, seqs, max_size=12), st.sets(turn_ids, max_size=4))


def words_of(value: object) -> str:
    return urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


@given(cursors)
def test_a_cursor_can_be_read_back(cursor: Cursor) -> None:
    word = write_cursor(cursor)
    assert read_cursor(word) == cursor
    assert word.isascii()
    assert word.replace("-", "").replace("_", "").isalnum()


def test_the_largest_cursors_that_a_stage_can_make_fit() -> None:
    waiting = {f"t7-{number:06}": 1_000_000_000 for number in range(0, 2 * (64 + 33), 2)}
    assert len(write_cursor(Cursor(waiting, set(waiting)))) < MAX_CURSOR_CHARS
    kept = {f"t7-{number:06}": ALL_SEEN for number in range(1, 4_001)}
    queued = {f"t7-{number:06}": 0 for number in range(4_001, 4_096)}
    word = write_cursor(Cursor(kept | queued))
    assert len(word) < 400
    assert read_cursor(word).after == kept | queued


@given(st.text() | st.binary().map(lambda data: urlsafe_b64encode(data).decode()))
def test_whatever_else_comes_is_refused(word: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        read_cursor(word)
    assert str(refused.value) == "Last-Event-ID: is not an id that this server gave out."


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_cursor_of_another_shape_is_refused(value: object) -> None:
    try:
        cursor = read_cursor(words_of(value))
    except FootlightsError as error:
        assert error.code == "invalid_command"  # noqa: PT017 - either is fine, and nothing else
    else:
        assert isinstance(value, list)
        assert write_cursor(cursor)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "=",
        "a b",
        "WzEse30sW10sW11d=",
        "a",
        "A" * (MAX_CURSOR_CHARS + 1),
        "ÿ",
        words_of({}),
        words_of([2, {}, {}]),
        words_of([1, {}, {}, {}]),
        words_of([True, {}, {}, {}]),
        words_of([2.0, {}, {}, {}]),
        words_of([2, [], {}, {}]),
        words_of([2, {"t1": 1}, {}, {}]),
        words_of([2, {"t1": []}, {}, {}]),
        words_of([2, {"t1": ["1"]}, {}, {}]),
        words_of([2, {"t1": [True]}, {}, {}]),
        words_of([2, {"t1": [-2]}, {}, {}]),
        words_of([2, {"t1": [ALL_SEEN]}, {}, {}]),
        words_of([2, {"t1": [1, 1]}, {}, {}]),
        words_of([2, {"": [1]}, {}, {}]),
        words_of([2, {"t" * 65: [1]}, {}, {}]),
        words_of([2, {}, [], {}]),
        words_of([2, {}, {"t1": "1"}, {}]),
        words_of([2, {}, {"t1": True}, {}]),
        words_of([2, {}, {"t1": 0}, {}]),
        words_of([2, {}, {"t1": -1}, {}]),
        words_of([2, {}, {"t1": 2}, {}]),
        words_of([2, {}, {"t1-000001": 1_000_000_000_000}, {}]),
        words_of([2, {}, {}, "t1"]),
        words_of([2, {}, {}, {"t1": None}]),
    ],
)
def test_no_word_but_ours_is_taken(word: str) -> None:
    with pytest.raises(InvalidCommand):
        read_cursor(word)


def test_a_cursor_names_only_so_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_transports.views.native.sse_cursor.MAX_CURSORS", 2)
    assert read_cursor(words_of([2, {"t1": [1]}, {"t2": 1}, {}])).after == {"t1": 1, "t2": ALL_SEEN}
    for too_many in (
        [2, {"t1": [1]}, {"t1-000001": 2}, {}],
        [2, {}, {"t1-000001": 3}, {}],
        [2, {}, {}, {f"t{number}": 1 for number in range(5)}],
    ):
        with pytest.raises(InvalidCommand):
            read_cursor(words_of(too_many))
