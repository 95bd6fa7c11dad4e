"""Tables of the tavern: its words, patterns and sayings, read from the TOML files beside this module."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any


def tables(name: str) -> dict[str, Any]:
    """The tables of one file."""
    return tomllib.loads(files("footlights_actors.demo.tavern").joinpath(f"{name}.toml").read_text("utf-8"))


def one_line(pattern: str) -> str:
    """A pattern that is written on several lines."""
    return pattern.replace("\n", "")


def any_of(phrases: str) -> str:
    """A pattern for any of these phrases as whole words. They are separated by `|`, and may be on several lines."""
    return rf"\b(?:{one_line(phrases)})\b"


def by_word(names: dict[str, str]) -> dict[str, str]:
    """A table of names by word, from one in which all words of a name are in one string."""
    return {word: name for name, words in names.items() for word in words.split()}


def replacements(pairs: list[list[str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(one_line(pattern)), written) for pattern, written in pairs)
