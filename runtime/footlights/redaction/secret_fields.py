"""Secret fields in a text: `name=value`, `"name": "value"`, `<name>value</name>`, `Cookie: the whole line`.

Where the end of a value is ambiguous, the longer reading is redacted. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import Factory, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = "[redacted]"
"""Replacement of a redacted value."""

_NOT_LETTERS = re.compile(r"[\W_]+")
_LOOK_BACK = 96
"""Number of characters before a separator that are searched for a name."""

_SEPARATOR = re.compile(r"(?:\\{0,8}[\"'])?[ \t]{0,8}(=>|:=|=|:)([ \t]{0,8}(?:\r?\n[ \t]{1,16})?)")
_INNER_NAME = re.compile(r"\\{0,8}[\"']?([A-Za-z_][\w.-]{0,95})")
_HELD = r"\[redacted\]"
# Atomic groups: a possessive repeat of a group is wrong in Python 3.11.0 to 3.11.4, if the group backtracks.
_ENCLOSED = (
    r"\"(?>(?:[^\"\\]++|\\[\s\S]|\"\")*)(?:\"|\\?\Z)"
    r"|'(?>(?:[^'\\]++|\\[\s\S]|'')*)(?:'|\\?\Z)"
    r"|(\\{1,8}[\"'])[\s\S]*?(?:(?<!\\)\1|\Z)"
    rf"|(?!{_HELD})\[[^\]]*+(?:\]|\Z)|\{{[^}}]*+(?:\}}|\Z)"
)
_ENCLOSED_VALUE = re.compile(_ENCLOSED)
_WORD_VALUE = re.compile(rf"[;<(]?(?:{_HELD}|[^\s,;&\"'<>])+")
_PHRASE_VALUE = re.compile(rf"(?:{_HELD}|[^\r\n,;\"')}}\]<]|[,;\"')}}\]](?=\w)|<(?!/))+(?<![ \t])")
_LINE_VALUE = re.compile(r"[^\r\n]+")
_NUMBER = re.compile(r"[+-]?\d[\d.,_]*(?!\w)")
_ELEMENT = re.compile(
    r"<([A-Za-z_][\w.:-]{0,127})(?:\s[^<>]{0,512})?>(<!\[CDATA\[[\s\S]*?(?:\]\]>|\Z)|\s*+[^<\s][^<]*+)"
)
_WHOLE_LINES = ("authorization", "cookie")


def plain(name: str) -> str:
    """The name in lower case without punctuation."""
    return _NOT_LETTERS.sub("", name).casefold()


def plain_all(names: Iterable[str]) -> tuple[str, ...]:
    """The names in lower case without punctuation, sorted and unique."""
    return tuple(sorted({plain(name) for name in names} - {""}))


def _plural(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}s" for name in names)


@frozen
class SecretFields:
    """Names of fields whose values are secret. Names that end with one of them count, and so do plurals."""

    names: tuple[str, ...] = field(converter=plain_all)
    _plurals: tuple[str, ...] = field(init=False, default=Factory(lambda self: _plural(self.names), takes_self=True))

    def is_secret(self, name: str, *, counts: bool = False) -> bool:
        """Whether values of this name are redacted. `counts`: the value is a number, as in `max_tokens: 512`."""
        bare = plain(name)
        return bare.endswith(self.names) or (not counts and bare.endswith(self._plurals))

    def removed_from(self, text: str) -> str:
        """The text with the values of secret fields redacted."""
        return self._without_assignments(_ELEMENT.sub(self._emptied, text))

    def _emptied(self, element: re.Match[str]) -> str:
        if not self.is_secret(element[1], counts=_NUMBER.fullmatch(element[2].strip()) is not None):
            return element[0]
        return element[0][: element.start(2) - element.start()] + REDACTED

    def _without_assignments(self, text: str) -> str:
        parts: list[str] = []
        done = place = 0
        while separator := _SEPARATOR.search(text, place):
            place = separator.end()
            name = text[max(done, separator.start() - _LOOK_BACK) : separator.start()].rpartition("\n")[2]
            if not self.is_secret(name, counts=_NUMBER.match(text, place) is not None):
                continue
            if self._names_another(text, place):
                continue
            if value := self._value(text, separator, plain(name)):
                opening, closing = _quotes(value[0])
                parts += text[done:place], opening + REDACTED + closing
                done = place = value.end()
        return "".join((*parts, text[done:]))

    def _names_another(self, text: str, place: int) -> bool:
        """Whether another name follows, as in "token: password: x", where the value belongs to the second name."""
        inner = _INNER_NAME.match(text, place)
        if inner is None or _SEPARATOR.match(text, inner.end()) is None:
            return False
        return plain(inner[1]) in self.names

    def _value(self, text: str, separator: re.Match[str], name: str) -> re.Match[str] | None:
        place = separator.end()
        if enclosed := _ENCLOSED_VALUE.match(text, place):
            return enclosed
        if separator[1] == ":" and name.endswith((*_WHOLE_LINES, *self._plurals)):
            return _LINE_VALUE.match(text, place)
        if separator[2] or separator[1] == ":":
            return _PHRASE_VALUE.match(text, place)
        return _WORD_VALUE.match(text, place)


def _quotes(value: str) -> tuple[str, str]:
    """The quotes around a value, which stay: both, or only the first if it was never closed."""
    opening = value[: len(value) - len(value.lstrip("\\"))]
    mark = value[len(opening) : len(opening) + 1]
    if mark in ("[", "{"):  # becomes a string, so that it is still one value
        return ("", "") if value.startswith(REDACTED) else ('"', '"')
    if mark not in ('"', "'"):
        return "", ""
    quote = opening + mark
    return quote, quote if len(value) >= 2 * len(quote) and value.endswith(quote) else ""
