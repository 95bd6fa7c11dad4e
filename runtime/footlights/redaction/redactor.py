"""Secrets and personal data taken out of what is shown.

A redactor knows shapes (keys, tokens, e-mail addresses, phone and card numbers) and names of fields whose values are
nobody's business. It takes time linear in what it is given. It is a net, not a proof: what looks like nothing special
passes, so a host that knows its own secrets adds their patterns.
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
"""What is nested deeper is taken out as a whole."""

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
    """A shape to take out. Raises `RegistrationError` for a pattern that is no regular expression or matches nothing.

    A host's own expression decides how long it takes: one that backtracks without bound stalls whoever redacts.
    """

    name: str
    """For people."""
    expression: re.Pattern[str] = field(converter=_compiled)
    """What it looks like. If its first group took part, only that is taken out."""
    check: Check | None = None
    """Looks closer at what was found."""

    def removed_from(self, text: str) -> str:
        """The text without what has this shape."""
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
    """No word: it has a digit, a capital in the middle, or more letters than words have."""
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
"""What is recognised without being told."""

STANDARD_FIELDS = (
    *("password", "passwd", "pwd", "passphrase", "secret", "token", "api key", "access key", "secret key"),
    *("private key", "session key", "encryption key", "signing key", "secret id", "secret value"),
    *("authorization", "credential", "cookie", "cvv"),
)
"""Names, or ends of names, of fields whose values are taken out, whatever their case and punctuation. A plural counts
too, unless its value is a number: `max_tokens: 512` stays."""


@frozen
class Redacted:
    """A text without its secrets."""

    text: str
    applied: bool
    """Whether anything was taken out."""


@frozen
class RedactedValue:
    """A JSON value without its secrets."""

    value: JsonValue
    applied: bool
    """Whether anything was taken out."""


@frozen
class Redactor:
    """Takes secrets out of texts and JSON values."""

    patterns: tuple[SecretPattern, ...] = field(default=STANDARD_PATTERNS, converter=tuple[SecretPattern, ...])
    """Shapes to take out, one after the other."""
    fields: tuple[str, ...] = field(default=STANDARD_FIELDS, converter=plain_all)
    """Names of fields whose values are taken out."""
    _secret: SecretFields = field(
        init=False, repr=False, default=Factory(lambda self: SecretFields(self.fields), takes_self=True)
    )

    def text(self, text: str) -> Redacted:
        """This text, without secret shapes and without values of secret fields (`name=value`, `name: value`)."""
        left = text
        for pattern in self.patterns:  # first: a shape may have many lines, and the value of a field ends with its own
            left = pattern.removed_from(left)
        left = self._secret.removed_from(left)
        return Redacted(left, left != text)

    def value(self, value: JsonValue) -> RedactedValue:
        """This value, without secrets in its texts, its names and its secret fields, however deep."""
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
