"""Spans of a text: where it holds what must not be shown, and the text without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Span: TypeAlias = tuple[int, int]
"""Where it begins, and where it has ended."""
BLOT = "*"
"""Stands for each hidden character, so that offsets stay what they are. One byte: a blotted text is never larger."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same places as spans that are sorted and disjoint."""
    whole: list[Span] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(end, whole[-1][1])
        elif end > begin:
            whole.append((begin, end))
    return whole


def replaced(text: str, spans: Iterable[Span], replacement: Callable[[str], str]) -> str:
    """The text with what these spans hold replaced. They are sorted and disjoint."""
    parts: list[str] = []
    done = 0
    for begin, end in spans:
        parts += text[done:begin], replacement(text[begin:end])
        done = end
    return "".join((*parts, text[done:])) if parts else text


def blotted(text: str, spans: Iterable[Span]) -> str:
    """The text with as many blots as hidden characters."""
    return replaced(text, spans, lambda hidden: BLOT * len(hidden))
