"""Secret filter of the settings, and patterns of a host."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from footlights.errors import RegistrationError
from footlights.extras import advice
from footlights.redaction.numbers import missing_extras
from footlights.redaction.patterns import STANDARD_PATTERNS, SecretPattern
from footlights.redaction.redactor import STANDARD_FIELDS, Redactor
from footlights.redaction.secret_filter import SecretFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from footlights_transports.config.source import KeyPath, Source

log = logging.getLogger("footlights.config")


def secret_filter(source: Source, given: Mapping[str, tuple[str, ...]]) -> SecretFilter:
    """The filter that `[redaction]` describes. Problems go to `source`."""
    if lacks := missing_extras():
        log.warning("not found in what views show: %s; %s", " and ".join(lacks), advice("redaction"))
    patterns = (*STANDARD_PATTERNS, *host_patterns(source, ("redaction", "patterns"), given.get("patterns", ())))
    return SecretFilter(Redactor(patterns, (*STANDARD_FIELDS, *given.get("fields", ()))))


def host_patterns(source: Source, path: KeyPath, expressions: Iterable[str]) -> Iterator[SecretPattern]:
    """The patterns that can be used. Problems do not repeat one, which may reveal much about a secret."""
    for number, expression in enumerate(expressions, 1):
        try:
            yield SecretPattern("of the host", expression)
        except RegistrationError as error:
            source.complain(path, f"cannot be used: number {number}: {error}")
