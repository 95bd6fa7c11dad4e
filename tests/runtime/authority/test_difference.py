"""The difference between two values that users are shown, as operations that make the second of the first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights.authority import JsonWorld, apply_patch, patch
from footlights.authority.difference import difference

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4)
)
LARGE = st.dictionaries(st.sampled_from([f"key-{n}" for n in range(60)]), VALUES, min_size=30)


def as_view(value: Any) -> Any:
    return JsonWorld(value).view()


def half_a_view(value: Any) -> Any:
    """As a `visibility` returns it: plain outside, with views in it."""
    return {key: as_view(each) for key, each in value.items()} if isinstance(value, dict) else as_view(value)


def as_it_is(value: Any) -> Any:
    return value


@settings(max_examples=40)
@given(shape=st.sampled_from([as_view, half_a_view, as_it_is]), before=VALUES | LARGE, after=VALUES | LARGE)
def test_a_difference_makes_the_second_of_the_first(shape: Any, before: Any, after: Any) -> None:
    operations = list(difference(shape(before), shape(after), ""))
    assert apply_patch(before, operations) == after
    assert bool(operations) == (JsonWorld(before).digest() != JsonWorld(after).digest())


@settings(max_examples=10)
@given(world=LARGE, key=st.sampled_from([f"key-{n}" for n in range(60)]), value=VALUES)
def test_a_change_of_a_large_world_is_found_where_it_is(world: Any, key: str, value: Any) -> None:
    before = JsonWorld({**world, key: "x"})
    operations = list(difference(before.view(), before.changed((patch.replace(f"/{key}", value),)).view(), ""))
    assert all(each.path.startswith(f"/{key}") for each in operations)
    assert len(operations) == (value != "x")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 2, 3], [0, 1, 2, 3], [patch.add("/0", 0)]),
        ([1, 2, 3], [1, 3], [patch.remove("/1")]),
        ([1, 2], [1, 2, 3], [patch.add("/2", 3)]),
        ([True], [1], [patch.replace("/0", 1)]),
        ([{"a": 1, "b": 2}], [{"a": 1, "b": 3}], [patch.replace("/0/b", 3)]),
        ({"a/b": 1}, {}, [patch.remove("/a~1b")]),
        ([0] * 5000 + [1], [0] * 4999 + [1], [patch.replace("", [*[0] * 4999, 1])]),
        ([0] * 5000, [0] * 5001, [patch.add("/5000", 0)]),
    ],
)
def test_a_small_change_is_a_small_difference(before: Any, after: Any, expected: list[patch.PatchOp]) -> None:
    assert list(difference(before, after, "")) == expected
    assert apply_patch(before, expected) == after
