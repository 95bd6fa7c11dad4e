"""WebSocket handshake: checks the request, and says who connects and for what, or why it is refused.

A client connects to the path of an endpoint, offers its subprotocol, and has a token in the Authorization header. A
browser cannot set headers, so it offers a second subprotocol, `bearer.TOKEN`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson
from attrs import field, frozen

from footlights.errors import InvalidCommand
from footlights_transports.errors import Unauthorized, UnsupportedVersion, error_json
from footlights_transports.websocket.endpoint import Visitor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_websocket import WebSocketRequest

    from footlights.events import JsonValue
    from footlights_transports.access.policy import AccessPolicy, User
    from footlights_transports.websocket.endpoint import Endpoint

_BEARER = "bearer."
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")
"""16 bytes in base64."""


@frozen
class Admitted:
    """A client that may connect, unless the endpoint refuses it."""

    endpoint: Endpoint
    visitor: Visitor
    subprotocol: str | None
    """The subprotocol that it offered and gets."""


@frozen
class Refused:
    """The response to a handshake that fails: an HTTP status, and the error as JSON.

    It does not hold the exception, whose traceback would hold the request.
    """

    status: int
    error: Mapping[str, JsonValue] = field(converter=error_json)
    quotes: bool = field(default=False, kw_only=True)
    """Whether the message may contain a name that the client gave, so that it is not logged."""

    @property
    def body(self) -> bytes:
        return orjson.dumps({"error": self.error})


def check_client(request: WebSocketRequest, policy: AccessPolicy) -> User | Refused:
    """Who connects, whatever for. The message of a refusal consists of fixed words."""
    try:
        # wsproto takes the host out of the headers, and trio-websocket shows only those.
        policy.check_host(request._event.host)  # pyright: ignore[reportPrivateUsage]
        policy.check_origin(_header(request, b"origin"))
    except Unauthorized as error:
        return Refused(403, error)
    refused = _check_rfc_6455(request)
    if refused is not None:
        return refused
    if _header(request, b"transfer-encoding") is not None or _header(request, b"content-length") not in (None, "0"):
        # After the head there must be frames: the frame gate would take a body for them.
        return Refused(400, InvalidCommand("A handshake has no body."))
    try:
        return policy.admit(_authorization(request))
    except Unauthorized as error:
        return Refused(401, error)


def check_endpoint(
    request: WebSocketRequest, path: str, endpoints: Sequence[Endpoint], user: User
) -> Admitted | Refused:
    """What this user connects to, by its path in the world. The message of a refusal consists of fixed words."""
    found = _find(path, endpoints)
    if found is None:
        paths = " or ".join(each.path for each in endpoints)
        return Refused(404, InvalidCommand(f"Connect to {paths or 'another server: this one has no WebSocket'}."))
    endpoint, names, query = found
    offers = endpoint.subprotocol in request.proposed_subprotocols
    if endpoint.requires_subprotocol and not offers:
        return Refused(400, UnsupportedVersion(f"Offer the subprotocol {endpoint.subprotocol}."))
    return Admitted(endpoint, Visitor(user, names, query), endpoint.subprotocol if offers else None)


def _find(path: str, endpoints: Sequence[Endpoint]) -> tuple[Endpoint, Mapping[str, str], str] | None:
    """The endpoint of a path, the names in the path, and the query."""
    try:
        target = urlsplit(path)
    except ValueError:
        return None
    for each in endpoints:
        names = each.names_in(target.path)
        if names is not None:
            return each, names, target.query
    return None


def _check_rfc_6455(request: WebSocketRequest) -> Refused | None:
    """Check the requirements of sections 4.2.1 and 11.3 that wsproto does not."""
    # wsproto does not keep the version; h11, below it, does.
    http = request._connection._wsproto.handshake._h11_connection  # pyright: ignore[reportPrivateUsage]
    version = http.their_http_version
    if version is None or not version.startswith(b"1.") or version == b"1.0":
        return Refused(505, UnsupportedVersion("Connect with HTTP/1.1."))
    if len(_values(request, b"sec-websocket-version")) != 1:
        return Refused(400, InvalidCommand("Send one Sec-WebSocket-Version."))
    keys = _values(request, b"sec-websocket-key")
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        return Refused(400, InvalidCommand("Send one Sec-WebSocket-Key: 16 bytes in base64."))
    return None


def _authorization(request: WebSocketRequest) -> str | None:
    header = _header(request, b"authorization")
    if header is not None:
        return header
    for offered in request.proposed_subprotocols:
        if offered.startswith(_BEARER):
            return f"Bearer {offered.removeprefix(_BEARER)}"
    return None


def _header(request: WebSocketRequest, name: bytes) -> str | None:
    values = _values(request, name)
    return values[0].decode("latin-1") if values else None


def _values(request: WebSocketRequest, name: bytes) -> list[bytes]:
    return [value for each, value in request.headers if each == name]  # wsproto has made the names lower case
