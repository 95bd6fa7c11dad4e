"""The `[dexi]` section: what runs take out of what they show, besides what is always taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import RegistrationError
from footlights.redaction.redactor import STANDARD_FIELDS, STANDARD_PATTERNS, Redactor, SecretPattern
from footlights_transports.config.read import section
from footlights_transports.config.schema import DEXI

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from footlights_transports.config.source import Source


def read_redactor(source: Source) -> Redactor:
    """What cannot be is complained of, and not repeated: a pattern may say much about a secret."""
    given = section(source, ("dexi",), DEXI)
    patterns = _patterns(source, given.get("secret_patterns", ()))
    return Redactor((*STANDARD_PATTERNS, *patterns), (*STANDARD_FIELDS, *given.get("secret_fields", ())))


def _patterns(source: Source, expressions: Iterable[str]) -> Iterator[SecretPattern]:
    for number, expression in enumerate(expressions, 1):
        try:
            yield SecretPattern("of the host", expression)
        except RegistrationError as error:
            source.complain(("dexi", "secret_patterns"), f"cannot be used: number {number}: {error}")
