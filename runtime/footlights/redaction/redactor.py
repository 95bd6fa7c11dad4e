"""Redactor: replaces secrets and personal data in texts and JSON values.

It recognises patterns (keys, tokens, e-mail addresses, phone and card numbers) and the names of fields whose values are
secret. Its time is linear in the length of the input. It cannot be complete: a secret without a known pattern passes,
so a host adds patterns for its own secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, field, frozen

from footlights.errors import RegistrationError
from footlights.redaction.secret_fields import REDACTED, SecretFields, plain_all

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_DEPTH = 64
"""A value that is nested deeper is redacted as a whole."""

Check: TypeAlias = Callable[[str], bool]


def _compiled(given: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        expression = re.compile(given)
    except re.error:
        raise RegistrationError("A pattern to redact is not a regular expression.") from None
    if expression.fullmatch(""):
        raise RegistrationError("A pattern to redact matches the empty text.")
    return expression


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

    def removed_from(self, text: str) -> str:
        """The text with every match redacted."""
        return self.expression.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        group = 1 if self.expression.groups and match[1] else 0
        found = match[group]
        if self.check is not None and not self.check(found):
            return match[0]
        before = match.start(group) - match.start()
        return match[0][:before] + REDACTED + match[0][before + len(found) :]


def _has_digit(found: str) -> bool:
    return any(character.isdigit() for character in found)


def _is_token(found: str) -> bool:
    """Whether it is a token and not a word: it has a digit, an inner capital, or more letters than words have."""
    return _has_digit(found) or len(found) >= 22 or any(character.isupper() for character in found[1:])


def _is_card(found: str) -> bool:
    digits = [int(character) for character in found if character.isdigit()]
    doubled = (each if place % 2 == 0 else each * 2 - 9 * (each > 4) for place, each in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def _digits(low: int, high: int) -> Check:
    return lambda found: low <= sum(character.isdigit() for character in found) <= high


_WORD = r"(?<![A-Za-z0-9_-])"
_NUMBER = r"(?<![\w.+/-])(?<!\d:)"
_CARD = _NUMBER + r"(?=[45]|2[2-7]|3[0-8]|6[0245])"

STANDARD_PATTERNS = (
    SecretPattern(
        "private key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}-----|\Z)"
    ),
    SecretPattern("JSON web token", _WORD + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)?"),
    SecretPattern("password in an address", r"(?<=://)[^\s/:@]{0,256}:([^\s/]{1,256})@"),
    SecretPattern("bearer token", r"(?i)\b(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,4096})", _is_token),
    SecretPattern("API key", _WORD + r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}+", _has_digit),
    SecretPattern("AWS key", _WORD + r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    SecretPattern("Google key", _WORD + r"AIza[A-Za-z0-9_-]{35,}+"),
    SecretPattern("GitHub token", _WORD + r"(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{20,}+"),
    SecretPattern("other token", _WORD + r"(?:xox[abeprs]-|hf_|npm_|pypi-)[A-Za-z0-9_-]{16,}+"),
    SecretPattern("e-mail address", r"(?<![\w.%+-])\w[\w.%+-]*+@(?:[\w-]++\.)+\w{2,}+"),
    SecretPattern("card number", _CARD + r"\d{13,19}(?![\w-])", _is_card),
    SecretPattern("card number", _CARD + r"\d{4}(?:[ .-]\d{4}){3}(?:[ .-]\d{3})?(?![\w-])", _is_card),
    SecretPattern("card number", _CARD + r"\d{4}(?:[ .-]\d{4}){3}(?![\w-])", _is_card),
    SecretPattern("card number", _CARD + r"\d{4}[ .-]\d{6}[ .-]\d{4,5}(?![\w-])", _is_card),
    SecretPattern("phone number", r"(?<![\w.+-])\+\d(?:[ ().-]{0,2}\d){7,14}(?![\w-])"),
    SecretPattern("phone number", _NUMBER + r"(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-. ]\d{4}(?!\w|[.-]\d)"),
    SecretPattern(
        "phone number", _NUMBER + r"\(?0\d{1,4}\)?[ /-]{1,2}\d{3,8}(?:[ -]\d{2,8}){0,3}(?![\w-])", _digits(9, 15)
    ),
    SecretPattern(
        "phone number", r"(?i)\b(?:tel|phone|mobile|fax)[\"']?\.?:? {0,2}[\"']?(\d[\d ().-]{5,18}\d)", _digits(7, 15)
    ),
)
"""The default patterns."""

STANDARD_FIELDS = (
    *("password", "passwd", "pwd", "passphrase", "secret", "token", "api key", "access key", "secret key"),
    *("private key", "session key", "encryption key", "signing key", "secret id", "secret value"),
    *("authorization", "credential", "cookie", "cvv"),
)
"""Suffixes of names of fields whose values are redacted, ignoring case and punctuation. Plurals count too, unless the
value is a number: `max_tokens: 512` stays."""


@frozen
class Redacted:
    """A redacted text."""

    text: str
    applied: bool
    """Whether anything was redacted."""


@frozen
class RedactedValue:
    """A redacted JSON value."""

    value: JsonValue
    applied: bool
    """Whether anything was redacted."""


@frozen
class Redactor:
    """Redacts texts and JSON values."""

    patterns: tuple[SecretPattern, ...] = field(default=STANDARD_PATTERNS, converter=tuple[SecretPattern, ...])
    """Patterns to redact, in this order."""
    fields: tuple[str, ...] = field(default=STANDARD_FIELDS, converter=plain_all)
    """Names of fields whose values are redacted."""
    _secret: SecretFields = field(
        init=False, repr=False, default=Factory(lambda self: SecretFields(self.fields), takes_self=True)
    )

    def text(self, text: str) -> Redacted:
        """The text without secret patterns and without the values of secret fields (`name=value`, `name: value`)."""
        left = text
        for (
            pattern
        ) in self.patterns:  # before the fields: a pattern may span lines, the value of a field ends with its line
            left = pattern.removed_from(left)
        left = self._secret.removed_from(left)
        return Redacted(left, left != text)

    def value(self, value: JsonValue) -> RedactedValue:
        """The value without secrets in its strings, field names and secret fields, at any depth."""
        left = self._value(value, 0)
        return RedactedValue(left, not (left is value or left == value))

    def _value(self, value: JsonValue, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self.text(value).text
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return REDACTED if self.text(str(value)).applied else value
        if depth == MAX_DEPTH:
            return REDACTED
        if isinstance(value, list):
            return [self._value(each, depth + 1) for each in value]
        return self._object(value, depth)

    def _object(self, members: dict[str, JsonValue], depth: int) -> dict[str, JsonValue]:
        left: dict[str, JsonValue] = {}
        for name, value in members.items():
            shown = self.text(name).text
            while shown in left:
                shown += "+"
            counts = isinstance(value, int | float)
            hidden = self._secret.is_secret(name, counts=counts) and not (value is None or isinstance(value, bool))
            left[shown] = REDACTED if hidden else self._value(value, depth + 1)
        return left
