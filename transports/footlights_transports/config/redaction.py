"""Settings of `[redaction]`: the views whose text is covered, and what must not be in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attrs import evolve

from footlights.checks import listed
from footlights.errors import RegistrationError
from footlights.extras import advice
from footlights.redaction.numbers import missing_extras
from footlights.redaction.patterns import STANDARD_PATTERNS, SecretPattern
from footlights.redaction.redactor import STANDARD_FIELDS, Redactor
from footlights.redaction.secret_filter import SecretFilter
from footlights_transports.config.schema import REDACTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from footlights import Cast
    from footlights_transports.config.source import KeyPath, Source
    from footlights_transports.views.base.view import View

log = logging.getLogger("footlights.config")


def cover_views(source: Source, cast: Cast | None, views: Sequence[View]) -> Cast | None:
    """The cast with an output filter, if any of these views is to be covered by one. Problems go to `source`.

    A cast that has a filter of its own keeps it.
    """
    given = source.section(("redaction",), REDACTION)
    names = {view.name(): view for view in views}
    for name in set(given.get("views", ())) - names.keys():
        source.complain(("redaction", "views"), f"names {name}, which is no view; there are: {listed(names)}.")
    covered = [view for name, view in names.items() if name in given.get("views", ())]
    patterns = (*STANDARD_PATTERNS, *host_patterns(source, ("redaction", "patterns"), given.get("patterns", ())))
    if not covered or cast is None:
        return cast
    if cast.output_filter is None:
        if lacks := missing_extras():
            log.warning("not found in what views show: %s; %s", " and ".join(lacks), advice("redaction"))
        fields = (*STANDARD_FIELDS, *given.get("fields", ()))
        cast = evolve(cast, output_filter=SecretFilter(Redactor(patterns, fields)))
    for view in covered:
        view.output_filter = cast.output_filter
    return cast


def host_patterns(source: Source, path: KeyPath, expressions: Iterable[str]) -> Iterator[SecretPattern]:
    """The patterns that can be used. Problems do not repeat one, which may reveal much about a secret."""
    for number, expression in enumerate(expressions, 1):
        try:
            yield SecretPattern("of the host", expression)
        except RegistrationError as error:
            source.complain(path, f"cannot be used: number {number}: {error}")
