"""What goes wrong between a client and its server, and how the client says it.

A refusal of the server is raised as the same class that a stage in this process raises for it. What only a client can
meet is here: that nobody answers, and that what is answered breaks the laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import footlights.errors as known
from footlights.errors import FootlightsError
from footlights_transports.errors import RateLimited, Unauthorized, UnsupportedVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.laws import Violation


class ConnectionLost(FootlightsError):
    """The server cannot be reached. `maybe_done` tells whether the command that was asked for may have been done."""

    code = "connection_lost"

    def __init__(self, message: str, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class LawBroken(FootlightsError):
    """What the server sent is not a lawful stream; `violation` says why. The stream is of no more use."""

    code = "law_broken"

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


_BY_CODE: Mapping[str, type[FootlightsError]] = {
    kind.code: kind
    for kind in (
        known.InvalidCommand,
        known.UnknownSession,
        known.UnknownTurn,
        known.SessionClosed,
        known.Busy,
        known.TooLarge,
        RateLimited,
        Unauthorized,
        UnsupportedVersion,
    )
}


def refusal(code: object, message: object) -> FootlightsError:
    """The error that a server told of. One that nobody knows is a plain `FootlightsError`: `internal`."""
    kind = _BY_CODE.get(code, FootlightsError) if isinstance(code, str) else FootlightsError
    return kind(message if isinstance(message, str) else "The server refused, and did not say why.")
