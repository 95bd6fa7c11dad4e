"""Patterns of secrets and personal data: what is known by its shape, its check digits, or the words before it.

The standard ones are data: `rules.toml`. None backtracks without bound: what repeats is possessive or has a limit, so
that time is linear in the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.redaction.checks import CHECKS

if TYPE_CHECKING:
    from footlights.redaction.spans import Span

MAX_CHECKS = 2_000
"""Further matches of one pattern in one text are redacted without their check, which takes longer than to find them."""

Check: TypeAlias = Callable[[str], bool]


def _compiled(given: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        expression = re.compile(given)
    except re.error:
        raise RegistrationError("A pattern to redact is not a regular expression.") from None
    if expression.fullmatch(""):
        raise RegistrationError("A pattern to redact matches the empty text.")
    return expression


def _set_of(characters: str) -> frozenset[str]:
    return frozenset(characters)


_DATA = files("footlights.redaction")
_RULES: Mapping[str, Any] = tomllib.loads(_DATA.joinpath("rules.toml").read_text("utf-8"))
_THING = re.compile("".join(_RULES["parts"]["thing"]))


@frozen
class SecretPattern:
    """A pattern to redact. Raises `RegistrationError` for an invalid expression, or one that matches the empty text.

    An expression of the host may be slow: one that backtracks without bound blocks the redaction.
    """

    name: str
    """A name for people."""
    expression: re.Pattern[str] = field(converter=_compiled)
    """The pattern. If its first group matched, only that group is redacted."""
    check: Check | None = None
    """A further test of the matched text."""
    is_number: bool = field(default=False, kw_only=True)
    """Whether a word before it that names a thing, as in "order no.", says that it is the number of no person."""
    needs: frozenset[str] = field(default=frozenset(), converter=_set_of, kw_only=True)
    """Characters of which a text must have one, to save the time of a search in vain."""

    def spans(self, text: str) -> list[Span]:
        """Where the text matches, as far as it is redacted."""
        spans: list[Span] = []
        for number, match in enumerate(self.expression.finditer(text)):
            begin, end = match.span(1 if self.expression.groups and match[1] else 0)
            if self.is_number and _THING.search(text, max(0, begin - 40), begin):
                continue
            if self.check is None or number >= MAX_CHECKS or self.check(text[begin:end]):
                spans.append((begin, end))
        return spans


def _vendor_tokens() -> str:
    alphabets = {
        "hex": "0-9a-f",
        "upper": "A-Z0-9",
        "alnum": "A-Za-z0-9",
        "word": r"\w-",
        "dotted": r"\w.-",
        "base64": r"\w.+/=-",
    }
    rows = [line.split("\t") for line in _DATA.joinpath("vendor_tokens.tsv").read_text("utf-8").splitlines()]
    shapes = [
        f"(?:{'|'.join(map(re.escape, row[2].split()))})[{alphabets[row[0]]}]{{{row[1]},}}+"
        for row in rows
        if len(row) > 1
    ]
    return rf"(?a:(?<![A-Za-z0-9])(?:{'|'.join(shapes)}))"


def _standard() -> Iterator[SecretPattern]:
    parts = {"vendor_token": _vendor_tokens()}

    def joined(pieces: str | list[str]) -> str:
        return re.sub("«([a-z_]+)»", lambda part: parts[part[1]], "".join(pieces))

    for name, pieces in _RULES["parts"].items():
        parts[name] = joined(pieces)
    for rule in _RULES["rules"]:
        yield SecretPattern(
            rule["is"],
            joined(rule["pattern"]),
            CHECKS[rule["check"]] if "check" in rule else None,
            is_number=rule.get("is_number", False),
            needs=rule.get("needs", ""),
        )


STANDARD_PATTERNS = tuple(_standard())
"""The default patterns."""
