"""Decision document: the part of a `ModeDecision` that the ledger records, validated before the turn begins.

A decision from `decide` always passes. One that a host built by hand may hold anything; then `begin_turn` raises, and
neither the turn nor the ledger nor the committer sees it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from footlights.authority.digest import NotCanonical, canonical
from footlights.errors import InvalidCommand, TooLarge
from footlights.modes.record import ModeDecision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.events import JsonValue

MAX_DECISION_BYTES = 16_000
_ID = re.compile(r"[a-z0-9][a-z0-9_.:/@-]{0,127}")


def decision_document(decision: ModeDecision) -> dict[str, JsonValue]:
    """A copy of the decision's document: plain JSON, and every text in it an id. Raises `InvalidCommand`."""
    if type(decision) is not ModeDecision:
        raise InvalidCommand("decision must be a ModeDecision.")
    try:
        document: dict[str, JsonValue] = orjson.loads(canonical(decision.document, max_bytes=MAX_DECISION_BYTES))
    except (NotCanonical, TooLarge, AttributeError, TypeError):
        # The message must not quote the value, which may be a player's text.
        raise InvalidCommand(f"decision is not plain JSON of {MAX_DECISION_BYTES} bytes at most.") from None
    if not all(map(_ID.fullmatch, _texts(document))):
        raise InvalidCommand("decision holds a text that is no id.")
    return document


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for each in value.values():
                yield from _texts(each)
        case _:
            pass
