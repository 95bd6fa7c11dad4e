"""Patterns: no regular expression of ours needs what Python 3.11.0 to 3.11.4 does wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.paths import ROOT

_POSSESSIVE_GROUP = re.compile(r"(?<!\\)(?:\)|\{[a-z_]\w*\})(?:[*+?]|\{\d*,?\d*\})\+")
"""A possessive quantifier after a group, or after a name that may stand for one: CPython's gh-106052."""


def possessive_groups(source: str) -> list[int]:
    """The lines that have one."""
    return [number for number, line in enumerate(source.splitlines(), 1) if _POSSESSIVE_GROUP.search(line)]


@pytest.mark.parametrize("pattern", ["(?:ab?c)*+", "(a|b)++x", "(?:a){2,}+", "{before}?+", "(a){3}+"])
def test_the_search_finds_possessive_groups(pattern: str) -> None:
    assert possessive_groups(f"fine = '[a-z]*+'\nwrong = '{pattern}'") == [2]


@pytest.mark.parametrize("pattern", [r"\w++", "[a-z]{8,}+", r"\)*+", "(?>(?:ab?c)*)", r"(\+|-)?"])
def test_possessive_repeats_of_single_characters_are_allowed(pattern: str) -> None:
    assert possessive_groups(pattern) == []


def test_no_pattern_repeats_a_group_possessively() -> None:
    folders = ("actors", "benchmarks", "docs", "runtime", "tests", "transports")
    files = [each for folder in folders for kind in ("py", "toml") for each in (ROOT / folder).rglob(f"*.{kind}")]
    ours = [each for each in files if "third_party" not in each.parts and each != Path(__file__)]
    assert len(ours) > 500
    found = [f"{each}:{line}" for each in ours for line in possessive_groups(each.read_text(encoding="utf-8"))]
    assert not found, f"{found}: write (?>(?:...)*), for possessive groups are wrong in Python 3.11.0 to 3.11.4."
