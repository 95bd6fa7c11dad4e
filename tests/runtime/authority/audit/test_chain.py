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
    assert SEED == "73c62303c6778a6ad53e8fcd8b78797018d3cb320f58bdd97270a5dd30947aba"
    assert chain.link_epoch(SEED, 1, 1) == "e175f41311d45ef549a537b2ee963ade66c2996c4273103e3d89884cc9c7a84c"
    assert chain.link(SEED, 1, 1, "c" * 64) == "b55fab8566ed0311ba90c5e98eaf1c91025b67b5adaac651aa0f8ad76ce1e75c"
    assert chain.link_tool(SEED, 1, 1, "k", "ok") == "a63ab13a7d7a3ecefafe84623b5de80b1748fed8999abff883091dc493cc7a56"


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


@pytest.mark.parametrize(
    "other",
    [
        chain.link_tool(SEED[::-1], 1, 1, "k", "ok"),
        chain.link_tool(SEED, 2, 1, "k", "ok"),
        chain.link_tool(SEED, 1, 2, "k", "ok"),
        chain.link_tool(SEED, 1, 1, "j", "ok"),
        chain.link_tool(SEED, 1, 1, "k", "error"),
    ],
)
def test_a_step_of_a_tool_is_a_link_over_all_that_it_says(other: str) -> None:
    assert chain.link_tool(SEED, 1, 1, "k", "ok") != other


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
