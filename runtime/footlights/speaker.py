"""Speaker: the player of a session, as the host describes it.

What a host says about a player is shown to the facts of personas, to tools, workloads and rules. It is in no ledger, no
log and no trace. Only its `name` is in the session's own stream, in `turn_accepted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import orjson
from attrs import field, frozen

from footlights.authority.digest import NotCanonical, canonical, to_keep
from footlights.authority.intents import NOTHING_KNOWN
from footlights.errors import InvalidCommand, TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_ABOUT_BYTES = 4_096
_MAX_ABOUT_DEPTH = 8


@frozen
class Speaker:
    """The player of a session."""

    session_id: str
    """The session's id."""
    about_json: bytes = field(default=NOTHING_KNOWN, repr=False)
    """`SessionParams.about` as canonical JSON."""

    @property
    def about(self) -> dict[str, Any]:
        """A copy of `SessionParams.about`; empty if the host said nothing."""
        return cast("dict[str, Any]", orjson.loads(self.about_json))

    @property
    def name(self) -> str | None:
        """The `name` in `about`, if that is a text."""
        name = self.about.get("name")
        return name if isinstance(name, str) else None


def checked_about(about: object) -> dict[str, JsonValue]:
    """A copy of what a host says about a player. Raises `InvalidCommand`, which quotes nothing of it."""
    return cast("dict[str, JsonValue]", orjson.loads(written_about(about)))


def written_about(about: object) -> bytes:
    """The same as canonical JSON."""
    if not isinstance(about, Mapping):
        raise InvalidCommand("about must be a JSON object.")
    if not about:
        return NOTHING_KNOWN
    try:
        facts = dict(cast("Mapping[str, JsonValue]", about))
        return to_keep(canonical(facts, max_bytes=MAX_ABOUT_BYTES, max_depth=_MAX_ABOUT_DEPTH))
    except NotCanonical as error:
        raise InvalidCommand(f"about is not plain JSON: {error.reason}.") from None
    except TooLarge:
        raise InvalidCommand(
            f"about has at most {MAX_ABOUT_BYTES} bytes as JSON, and {_MAX_ABOUT_DEPTH} levels."
        ) from None
