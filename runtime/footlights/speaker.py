"""Speaker: the player of a session, as the host describes it.

What a host says about a player is shown to the facts of personas, to tools, workloads and rules. It is in no ledger, no
log and no trace. Only its `name` is in the session's own stream, in `turn_accepted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import orjson
from attrs import field, frozen

from footlights.authority.digest import NotCanonical, canonical
from footlights.errors import InvalidCommand, TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_ABOUT_BYTES = 4_096
_MAX_ABOUT_DEPTH = 8
_NOTHING = b"{}"


@frozen
class Speaker:
    """The player of a session."""

    session_id: str
    """The session's id."""
    _about: bytes = field(default=_NOTHING, repr=False)

    @property
    def about(self) -> dict[str, Any]:
        """A copy of `SessionParams.about`; empty if the host said nothing."""
        return {} if self._about is _NOTHING else orjson.loads(self._about)

    @property
    def is_described(self) -> bool:
        """Whether the host said anything about this player."""
        return self._about is not _NOTHING

    @property
    def name(self) -> str | None:
        """The `name` in `about`, if that is a text."""
        name = self.about.get("name")
        return name if isinstance(name, str) else None


def speaker_of(session_id: str, about: Mapping[str, JsonValue]) -> Speaker:
    """The player of this session. Raises `InvalidCommand` if `about` is no JSON object, or too large."""
    return Speaker(session_id, _written(about)) if about else Speaker(session_id)


def checked_about(about: object) -> dict[str, JsonValue]:
    """A copy of what a host says about a player. Raises `InvalidCommand`, which quotes nothing of it."""
    if not isinstance(about, Mapping):
        raise InvalidCommand("about must be a JSON object.")
    return cast("dict[str, JsonValue]", orjson.loads(_written(cast("Mapping[str, JsonValue]", about))))


def _written(about: Mapping[str, JsonValue]) -> bytes:
    try:
        return canonical(dict(about), max_bytes=MAX_ABOUT_BYTES, max_depth=_MAX_ABOUT_DEPTH)
    except NotCanonical as error:
        raise InvalidCommand(f"about is not plain JSON: {error.reason}.") from None
    except TooLarge:
        raise InvalidCommand(
            f"about has at most {MAX_ABOUT_BYTES} bytes as JSON, and {_MAX_ABOUT_DEPTH} levels."
        ) from None
