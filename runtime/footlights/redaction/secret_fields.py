"""Secret fields in a text: `name=value`, `"name": "value"`, `<name>value</name>`, `Cookie: the whole line`.

Where the end of a value is ambiguous, the longer reading is redacted. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import Factory, field, frozen

from footlights.redaction.placeholders import is_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from footlights.redaction.spans import Span

REDACTED = "[redacted]"
"""Replacement of a redacted value."""

_NOT_LETTERS = re.compile(r"[\W_]+")
_LOOK_BACK = 48
"""Number of characters before a separator that are searched for a name."""

_SEPARATOR = re.compile(r"(?:\\{0,8}[\"'])?[ \t]{0,8}(=>|:=|=|:|\uff1a)([ \t]{0,8}(?:\r?\n[ \t]{1,16})?)")
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
_HARMLESS_COOKIE = re.compile(
    r"(?i)(?:\s*(?:theme|lang|language|locale|currency|tz|timezone|consent|path|domain|samesite|max-age|expires|secure"
    r"|httponly)(?:=[^;]{0,40})?(?:;|\Z))+"
)
"""Preferences, which are no secrets."""
_SCHEME = re.compile(
    r"(?i)[\"' ]*(?:(?:bearer|basic|digest|token|negotiate|(?:api-?)?key|aws\S*|ntlm|hawk|oauth|mac|signature|dpop)\b"
    r"|\S+(?:\s+\S*\d\S*)?[\s\"']*\Z)"
)
"""Beginning of a credential in an Authorization header, and not of a sentence."""

_WORDS = re.compile(r"[A-Za-z]+[ ,][A-Za-z ,.;'-]+|inherit")


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

    def spans(self, text: str) -> list[Span]:
        """Where the text has values of secret fields, without the quotes around them."""
        return [*self._elements(text), *self._assigned(text)]

    def _elements(self, text: str) -> Iterator[Span]:
        for element in _ELEMENT.finditer(text):
            value = element[2]
            if self.is_secret(element[1], counts=_NUMBER.fullmatch(value.strip()) is not None) and value != REDACTED:
                yield element.span(2)

    def _assigned(self, text: str) -> Iterator[Span]:
        done = place = 0
        while separator := _SEPARATOR.search(text, place):
            place = separator.end()
            name = text[max(done, separator.start() - _LOOK_BACK) : separator.start()].rpartition("\n")[2]
            if not self.is_secret(name, counts=_NUMBER.match(text, place) is not None):
                continue
            if self._names_another(text, place):
                continue
            if value := self._value(text, separator, plain(name)):
                done = place = value.end()
                before, after = _quotes(value[0])
                hidden = value.start() + before, value.end() - after
                found = text[slice(*hidden)]
                is_sentence = not (before or self._is_value(plain(name), found))
                if not is_sentence and not is_placeholder(found, is_quoted=before > 0):
                    yield hidden

    def _names_another(self, text: str, place: int) -> bool:
        """Whether another name follows, as in "token: password: x", where the value belongs to the second name."""
        inner = _INNER_NAME.match(text, place)
        if inner is None or _SEPARATOR.match(text, inner.end()) is None:
            return False
        return plain(inner[1]) in self.names

    @staticmethod
    def _is_value(name: str, found: str) -> bool:
        """Whether a value without quotes is one of this field, and no words of a sentence that only begins like it."""
        if name.endswith("authorization"):
            return _SCHEME.match(found) is not None
        if name.endswith(("cookie", "cookies")):
            return ("=" in found or " " not in found) and not _HARMLESS_COOKIE.fullmatch(found)
        if name.endswith("token") and found.isdecimal():
            return len(found) > 4
        return not (name.endswith(("secret", "secrets", "credentials")) and _WORDS.fullmatch(found))

    def _value(self, text: str, separator: re.Match[str], name: str) -> re.Match[str] | None:
        place = separator.end()
        if enclosed := _ENCLOSED_VALUE.match(text, place):
            return enclosed
        if separator[1] in ":\uff1a" and name.endswith((*_WHOLE_LINES, *self._plurals)):
            return _LINE_VALUE.match(text, place)
        if separator[2] or separator[1] in ":\uff1a":
            return _PHRASE_VALUE.match(text, place)
        return _WORD_VALUE.match(text, place)


def _quotes(value: str) -> tuple[int, int]:
    """The lengths of the quotes around a value, which stay: of both, or only the first if it was never closed."""
    opening = len(value) - len(value.lstrip("\\"))
    if value[opening : opening + 1] not in ('"', "'"):
        return 0, 0
    quote = value[: opening + 1]
    return len(quote), len(quote) if len(value) >= 2 * len(quote) and value.endswith(quote) else 0
