from __future__ import annotations

import json
import math
from datetime import date
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights.authority import NotCanonical, canonical, digest
from footlights.errors import TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

BIG = 2**53


def readable(number: float) -> float:
    """Floats from 2**53 to 1e21 are written as integers that cannot be read back: they are made larger."""
    return number * 1e6 if BIG <= abs(number) < 1e21 else number


numbers = st.integers(1 - BIG, BIG - 1) | st.floats(allow_nan=False, allow_infinity=False).map(readable)
texts = st.text(max_size=12)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


@settings(deadline=None, max_examples=300)
@given(values)
def test_the_fast_way_and_the_rfc8785_package_write_the_same_bytes(value: JsonValue) -> None:
    assert canonical(value) == rfc8785.dumps(value)


class Word(str):
    __slots__ = ()


class Members(dict[str, object]):
    pass


POISON: list[object] = [
    math.nan, math.inf, BIG, -BIG, float(BIG), 1e20, (1,), b"x", {1}, object(), Color.RED, Size.SMALL, Word("x"),
    Members(), "\ud800", {"\ud800": 1}, {1: 1}, {None: 1}, {Color.RED: 1}, {Word("x"): 1}, {Size.SMALL: 1},
    date(1, 1, 1),
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(values, st.lists(st.booleans(), max_size=4), st.sampled_from(POISON))
def test_no_value_hides_one_that_has_no_canonical_form(value: JsonValue, nesting: list[bool], poison: object) -> None:
    for in_list in nesting:
        poison = [value, poison] if in_list else {"a": value, "b": poison}
    with pytest.raises(NotCanonical) as caught:
        canonical(poison)
    assert caught.value.path == "".join("/1" if in_list else "/b" for in_list in reversed(nesting))


@settings(deadline=None)
@given(values)
def test_what_is_written_reads_back_with_the_same_digest(value: JsonValue) -> None:
    assert digest(json.loads(canonical(value))) == digest(value)


@settings(deadline=None)
@given(st.dictionaries(texts, values, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, JsonValue]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, b"null"),
        (-0.0, b"0"),
        (2.0, b"2"),
        (0.1, b"0.1"),
        (1e-6, b"0.000001"),
        (1e-7, b"1e-7"),
        (5e-324, b"5e-324"),
        (1e21, b"1e+21"),
        (BIG - 1, b"9007199254740991"),
        ('\x00\x1f\x7f\n"\\/é\u2028', '"\\u0000\\u001f\x7f\\n\\"\\\\/é\u2028"'.encode()),
        ({"b": 1, "a": [True, {}]}, b'{"a":[true,{}],"b":1}'),
        # By UTF-16 units a key beyond the basic plane comes before one at its end, by code points after it.
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'.encode()),
    ],
)
def test_values_are_written_as_rfc_8785_says(value: JsonValue, written: bytes) -> None:
    assert canonical(value) == written


def test_digests_never_change_between_versions() -> None:
    assert digest({}) == "6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279"
    assert (
        digest({"é": [1, 2.5, -0.0, None], "a": "\U0001f600"})
        == "1b6b0488b48fa67153d43f61fe35174ac8eec2cfa1e963377177fa9ddf95b542"
    )


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, ""),
        ([0, math.inf], "/1"),
        ({"a": {"b": [-math.inf]}}, "/a/b/0"),
        ({"a/b": {"c~d": BIG}}, "/a~1b/c~0d"),
        ([-BIG], "/0"),
        ([float(BIG)], "/0"),
        ([1e20], "/0"),
        (["ok", "\ud800"], "/1"),
        ({"a": {"\udfff": 1}}, "/a"),
        ({"a": {1: "one"}}, "/a"),
        ({"a": {None: 1}}, "/a"),
        ({"a": (1, 2)}, "/a"),
        ([b"bytes"], "/0"),
        ([{1, 2}], "/0"),
        ([Color.RED], "/0"),
        ([Size.SMALL], "/0"),
        ([object()], "/0"),
    ],
)
def test_a_value_without_one_meaning_is_refused_with_its_place(value: object, path: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical(value)
    assert caught.value.path == path
    assert caught.value.code == "not_canonical"


def test_a_value_that_contains_itself_is_too_large() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(TooLarge):
        canonical(loop)


def test_limits_are_exact() -> None:
    assert canonical([[1]], max_depth=2, max_bytes=5) == b"[[1]]"
    with pytest.raises(TooLarge):
        canonical([[1]], max_depth=1)
    with pytest.raises(TooLarge):
        canonical([[1]], max_bytes=4)
    assert canonical({"é": [1]}, max_depth=2, max_bytes=10) == '{"é":[1]}'.encode()
    with pytest.raises(TooLarge):
        canonical({"é": [1]}, max_depth=1)
    with pytest.raises(TooLarge):
        canonical({"é": [1]}, max_bytes=9)
    with pytest.raises(TooLarge):
        canonical([[]], max_depth=1)


def test_shared_parts_cannot_make_a_value_that_takes_forever_to_write() -> None:
    value: object = 0
    for _ in range(60):
        value = [value, value]
    with pytest.raises(TooLarge):
        canonical(value, max_bytes=1000)
