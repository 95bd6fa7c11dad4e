"""Redactor: replaces secrets and personal data in texts and JSON values.

It recognises patterns (keys, tokens, e-mail addresses, phone and card numbers) and the names of fields whose values are
secret. Its time is linear in the length of the input. It cannot be complete: a secret without a known pattern passes,
so a host adds patterns for its own secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import Factory, field, frozen

from footlights.redaction.patterns import STANDARD_PATTERNS, SecretPattern
from footlights.redaction.secret_fields import REDACTED, SecretFields, plain_all
from footlights.redaction.spans import merged, replaced

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights.redaction.spans import Span

MAX_DEPTH = 64
"""A value that is nested deeper is redacted as a whole."""

STANDARD_FIELDS = (
    *("password", "passwd", "pwd", "passphrase", "secret", "token", "api key", "access key", "secret key"),
    *("private key", "session key", "encryption key", "signing key", "secret id", "secret value"),
    *("authorization", "credential", "cookie", "cvv", "secret key base", "account key", "app key", "master key"),
    *(
        "auth key",
        "unseal key",
        "deploy key",
        "recovery key",
        "pass code",
        "ssh pass",
        "smtp pass",
        "user pass",
    ),
    *(
        "db pass",
        "pw",
        "auth pass",
        "passwort",
        "kennwort",
        "wachtwoord",
        "contraseña",
        "mot de passe",
        "senha",
        "hasło",
    ),
    *("lösenord", "пароль", "密码", "密碼", "パスワード", "비밀번호"),
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


def _replacement(hidden: str) -> str:
    """A list or an object becomes a string, so that it is still one value."""
    return f'"{REDACTED}"' if hidden[0] in "[{" else REDACTED


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

    def spans(self, text: str) -> list[Span]:
        """Where the text has secret patterns and values of secret fields (`name=value`, `name: value`)."""
        characters = frozenset(text)
        patterns = [each for each in self.patterns if not (each.needs and characters.isdisjoint(each.needs))]
        found = [span for pattern in patterns for span in pattern.spans(text)]
        return merged([*found, *self._secret.spans(text)])

    def text(self, text: str) -> Redacted:
        """The text without what `spans` finds."""
        left = replaced(text, self.spans(text), _replacement)
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
