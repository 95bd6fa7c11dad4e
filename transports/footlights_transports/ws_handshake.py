"""What a WebSocket handshake asks for, and why it is refused.

A client connects to `/v1` with the subprotocol `footlights.v1`, and shows its token in the Authorization header. A
browser cannot set headers: it offers a second subprotocol, `bearer.TOKEN`. `?batch=1` asks for arrays of events.

Where there is a chat gateway, a client may connect to its paths too, and need offer no subprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import orjson
from attrs import field, frozen

from footlights.errors import InvalidCommand
from footlights_transports.dialects import kgent
from footlights_transports.dialects.native import SUBPROTOCOL, Unauthorized, UnsupportedVersion, error_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_websocket import WebSocketRequest

    from footlights.events import JsonValue
    from footlights_transports.gate import Gate, User

PATH = "/v1"

_BEARER = "bearer."


@frozen
class Admitted:
    """Who connected, and whether it wants its events in arrays."""

    user: User
    in_batches: bool


@frozen
class Visitor:
    """Who comes to the chat gateway, and for what."""

    user: User
    target: kgent.Target
    query: str
    subprotocol: str | None
    """What it offered and gets."""


@frozen
class Refused:
    """The answer to a handshake that fails: an HTTP status, and the error as JSON.

    Not the exception itself: through its traceback it would hold the request, and this answer too.
    """

    status: int
    error: Mapping[str, JsonValue] = field(converter=error_json)

    @property
    def body(self) -> bytes:
        return orjson.dumps({"error": self.error})


def judge(request: WebSocketRequest, gate: Gate, *, has_gateway: bool = False) -> Admitted | Visitor | Refused:
    """Whether this handshake may go on. Only the gateway itself knows whether a visitor finds what it wants."""
    try:
        target = urlsplit(request.path)
        in_batches = parse_qs(target.query).get("batch") == ["1"]
    except ValueError:
        return Refused(404, InvalidCommand(f"Connect to {PATH}."))
    wanted = kgent.read_path(target.path) if has_gateway else None
    if target.path != PATH and wanted is None:
        return Refused(404, InvalidCommand(f"Connect to {PATH}."))
    try:
        # wsproto takes it out of the headers, and trio-websocket shows only those.
        gate.check_host(request._event.host)  # pyright: ignore[reportPrivateUsage]
        gate.check_origin(_header(request, b"origin"))
    except Unauthorized as error:
        return Refused(403, error)
    if _header(request, b"transfer-encoding") is not None or _header(request, b"content-length") not in (None, "0"):
        # What follows the head must be frames, and whoever counts those must not be led astray.
        return Refused(400, InvalidCommand("A handshake has no body."))
    if wanted is None and SUBPROTOCOL not in request.proposed_subprotocols:
        return Refused(400, UnsupportedVersion(f"Offer the subprotocol {SUBPROTOCOL}."))
    try:
        user = gate.admit(_authorization(request))
    except Unauthorized as error:
        return Refused(401, error)
    if wanted is None:
        return Admitted(user, in_batches)
    offered = kgent.SUBPROTOCOL in request.proposed_subprotocols
    return Visitor(user, wanted, target.query, kgent.SUBPROTOCOL if offered else None)


def _authorization(request: WebSocketRequest) -> str | None:
    header = _header(request, b"authorization")
    if header is not None:
        return header
    for offered in request.proposed_subprotocols:
        if offered.startswith(_BEARER):
            return f"Bearer {offered.removeprefix(_BEARER)}"
    return None


def _header(request: WebSocketRequest, name: bytes) -> str | None:
    for each, value in request.headers:
        if each.lower() == name:
            return value.decode("latin-1")
    return None
