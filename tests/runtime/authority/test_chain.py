from __future__ import annotations

from itertools import pairwise

import pytest

from footlights.authority import chain

SEED = chain.seed("0" * 64)


def test_the_links_never_change_between_versions() -> None:
    assert SEED == "90eef410fc5fc62bf1a8dc15f121c690dfcefd8f5e0694d77decbbf3853e4711"
    assert chain.link_epoch(SEED, 1, 1) == "34700b55991001b0a410658808b4e1fc5ad1206931eb8543c24bfed1d6e67365"
    assert chain.link(SEED, 1, 1, "c" * 64) == "e639ecff5001b01dcfc3aeb0d8c0a8bab3a8db9f8aed50ecd8e55676c73e36dd"


@pytest.mark.parametrize(
    "other",
    [
        chain.link(SEED[::-1], 1, 1, "c" * 64),
        chain.link(SEED, 2, 1, "c" * 64),
        chain.link(SEED, 1, 2, "c" * 64),
        chain.link(SEED, 1, 1, "d" * 64),
        chain.link_epoch(SEED, 1, 1),
    ],
)
def test_a_link_is_over_all_that_it_says(other: str) -> None:
    assert chain.link(SEED, 1, 1, "c" * 64) != other


def test_an_epoch_is_a_link_too() -> None:
    heads = [SEED, chain.link_epoch(SEED, 1, 1), chain.link_epoch(SEED, 2, 1), chain.link_epoch(SEED, 1, 2)]
    assert all(one != other for one, other in pairwise(sorted(heads)))


def test_ledgers_that_began_otherwise_have_nothing_in_common() -> None:
    assert chain.seed("1" * 64) != SEED
