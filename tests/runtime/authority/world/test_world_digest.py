"""The digest of a world is what docs/design/world.md says, whoever computes it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from footlights.authority import JsonWorld, canonical, digest
from tests.kit.peers.js_peer import nodes
from tests.runtime.authority.world import by_the_page
from tests.runtime.authority.world.documents import DOCUMENTS, LARGE, SMALL


@settings(max_examples=60)
@given(DOCUMENTS)
def test_a_second_implementation_has_the_same_digest(document: Any) -> None:
    assert JsonWorld(document).digest() == by_the_page.d(document).hex()


@given(SMALL)
def test_a_small_world_has_the_digest_of_its_canonical_json(document: Any) -> None:
    if len(canonical(document)) <= 1024:
        assert JsonWorld(document).digest() == digest(document)


@pytest.mark.parametrize("node", nodes())
def test_an_implementation_in_javascript_has_the_same_digest(node: str) -> None:
    documents: list[Any] = []

    @settings(max_examples=30)
    @given(LARGE)
    def collect(document: Any) -> None:
        documents.append(document)

    collect()
    script = Path(__file__).with_name("by_the_page.mjs")
    lines = b"".join(canonical(each) + b"\n" for each in documents)
    said = subprocess.run([node, script], input=lines, capture_output=True, check=True, timeout=60).stdout
    assert said.decode().split() == [JsonWorld(each).digest() for each in documents]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"door": "shut"}, "1ae5052f779f9fb56d8c7af0a839f1bf1534fa484a9d5b12924bbe812f37819e"),
        ({f"k{i:03}": i for i in range(200)}, "164a8ab21e8f16b1895b835ef4b700120c4e2cc590ad744edc496d40ceb7bb67"),
        ([i * i for i in range(1_000)], "268d41e42a4bb26a74f4d03e321c5cb6d6da9ce39123992a12f966e7318d5dea"),
        (
            {"long": "x" * 2_000, "rooms": {f"r{i}": {"guest": None, "price": i} for i in range(100)}, "n": 1},
            "a2a68afa85e32083a771020b975d7f480a8c01655329ee096cb062571f34f3a8",
        ),
        (
            [["a" * 600, "b" * 600], {"c": "d" * 2_000}, 7],
            "c3e11817a648e217d9a94ae22d7cfa2c61fb50cecf3ee6d54f57cf170d271c61",
        ),
    ],
)
def test_the_digest_of_a_world_stays_what_it_was(document: Any, expected: str) -> None:
    assert JsonWorld(document).digest() == expected
