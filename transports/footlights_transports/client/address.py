"""Where a server is, how to get in, and how long to wait for it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import Factory, field, frozen
from wsproto.events import Request

from footlights.errors import InvalidCommand
from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    import ssl

_PORTS = {"ws": 80, "wss": 443}


@frozen
class _Place:
    """What an address says."""

    host: str
    port: int
    is_secure: bool
    asked_for: str
    """The server's name as it is told to the server."""
    path: str


@frozen(kw_only=True)
class Address:
    """Where a server is, and how to get in. Raises `InvalidCommand` for what can be no address, token or time."""

    url: str
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    dial_timeout: float = 10.0
    """Seconds that a connection may take to be made."""
    silence: float = 30.0
    """After so many seconds without a sign of life the server is asked for one, and after as many again given up."""
    place: _Place = field(init=False, repr=False, default=Factory(lambda self: _read(self.url), takes_self=True))

    def __attrs_post_init__(self) -> None:
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token):
            raise InvalidCommand("A token is one or more printable ASCII characters.")
        if not (self.dial_timeout > 0 and self.silence > 0):
            raise InvalidCommand("dial_timeout and silence are more than 0 seconds.")

    def request(self, *, in_batches: bool) -> Request:
        return Request(
            host=self.place.asked_for,
            target=f"{self.place.path}?batch=1" if in_batches else self.place.path,
            subprotocols=[SUBPROTOCOL],
            extra_headers=[] if self.token is None else [(b"authorization", f"Bearer {self.token}".encode())],
        )


def _read(url: str) -> _Place:
    """Raises `InvalidCommand`, which does not repeat the address: there may be a secret in it."""
    try:
        parts = urlsplit(url)
        host, port, known = parts.hostname or "", parts.port, _PORTS.get(parts.scheme)
        host.encode("idna")
    except ValueError:
        raise _no_address("its host or its port cannot be read") from None
    if known is None:
        raise _no_address("it begins with ws:// or wss://")
    if not host or not host.isprintable() or " " in host:
        raise _no_address("it has no host")
    if port == 0:
        raise _no_address("nobody listens on port 0")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise _no_address("a name, a password, a query or a fragment have no place in it")
    if not (parts.path.isascii() and parts.path.isprintable()) or " " in parts.path:
        raise _no_address("its path is printable ASCII without spaces")
    path = parts.path.rstrip("/") or "/v1"
    return _Place(host, port or known, parts.scheme == "wss", parts.netloc, path)


def _no_address(why: str) -> InvalidCommand:
    return InvalidCommand(f"The address of a server reads ws://HOST:PORT or wss://HOST:PORT: {why}.")
