"""WebSocket endpoint: a path that a view serves, and what the server needs to know of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import trio
    from trio_websocket import WebSocketConnection

    from footlights_transports.access.policy import User
    from footlights_transports.websocket.broadcaster import Broadcaster
    from footlights_transports.websocket.connection import Connection
    from footlights_transports.websocket.stream import WireStream


@frozen
class Visitor:
    """A client whose handshake is valid, and what it asks for."""

    user: User
    names: Mapping[str, str]
    """The names in its path."""
    query: str


@frozen
class Channel:
    """The WebSocket of one client."""

    socket: WebSocketConnection
    stream: WireStream
    tasks: trio.Nursery
    broadcaster: Broadcaster


@frozen
class Accepted:
    """A handshake that the view accepts, before it is answered."""

    connect: Callable[[Channel], Connection]
    headers: Sequence[tuple[bytes, bytes]] = ()
    """For the answer."""
    abandon: Callable[[], None] | None = None
    """Called if the answer cannot be sent."""


@frozen
class Endpoint:
    """A path such as `/observe/{agent}`. `accept` raises `FootlightsError` to refuse a client."""

    path: str
    subprotocol: str
    accept: Callable[[Visitor], Accepted]
    requires_subprotocol: bool = True
    """Whether a client must offer the subprotocol; otherwise it gets it if it does."""

    def names_in(self, path: str) -> dict[str, str] | None:
        """The names in this path; None if it is not the endpoint's."""
        found = re.fullmatch(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.path)), path)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}
