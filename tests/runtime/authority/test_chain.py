from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import rfc8785
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from footlights.authority import chain

if TYPE_CHECKING:
    from footlights.events import JsonValue

SEED = chain.seed("0" * 64)


def test_the_links_never_change_between_versions() -> None:
    assert SEED == "fcffc1f32660479b6febdc87052f84bc5d0fb38cdec77c59b8dcd6015bcd3e6f"
    assert chain.link_epoch(SEED, 1, 1) == "951772b70e7dd4c1b93af7499732ff3feae01738f2284ae4d08e48cf570ccd04"
    assert chain.link(SEED, 1, 1, "c" * 64) == "5708d3105fd9ab76327b82fe46a15a1ca49860a016fe23a5aa2017e7a034ecb4"


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


digests = st.text("0123456789abcdef", min_size=64, max_size=64)
counts = st.integers(1, 2**53 - 1)


@given(digests, counts, counts, digests)
def test_a_link_is_the_digest_of_its_members(previous: str, position: int, epoch: int, commit_digest: str) -> None:
    members: dict[str, JsonValue] = {
        "previous": previous, "position": position, "epoch": epoch, "commit_digest": commit_digest,
    }  # fmt: skip
    assert chain.link(previous, position, epoch, commit_digest) == blake3(rfc8785.dumps(members)).hexdigest()


def test_an_epoch_is_a_link_too() -> None:
    heads = [SEED, chain.link_epoch(SEED, 1, 1), chain.link_epoch(SEED, 2, 1), chain.link_epoch(SEED, 1, 2)]
    assert all(one != other for one, other in pairwise(sorted(heads)))


def test_ledgers_that_began_otherwise_have_nothing_in_common() -> None:
    assert chain.seed("1" * 64) != SEED
