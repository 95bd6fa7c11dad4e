"""Address of a server, with the credentials and the timeouts of connections to it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wsproto.events import Request

from footlights.errors import InvalidCommand
from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    import ssl

_PORTS = {"ws": 80, "wss": 443}


class Address:
    """Raises `InvalidCommand` for an impossible URL, token or timeout. Neither it nor `repr` shows URL or token."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        dial_timeout: float = 10.0,
        silence: float = 30.0,
    ) -> None:
        try:
            parts = urlsplit(url)
            self.host, port = parts.hostname or "", parts.port
            self.host.encode("idna")
        except ValueError:
            raise _bad_url("its host or its port cannot be read") from None
        if parts.scheme not in _PORTS:
            raise _bad_url("it begins with ws:// or wss://")
        if not self.host or not self.host.isprintable() or " " in self.host:
            raise _bad_url("it has no host")
        if port == 0:
            raise _bad_url("no server listens on port 0")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise _bad_url("a name, a password, a query or a fragment have no place in it")
        if not (parts.path.isascii() and parts.path.isprintable()) or " " in parts.path:
            raise _bad_url("its path is printable ASCII without spaces")
        if token is not None and not (token.isascii() and token.isprintable() and token):
            raise InvalidCommand("A token is one or more printable ASCII characters.")
        if not (dial_timeout > 0 and silence > 0):
            raise InvalidCommand("dial_timeout and silence are more than 0 seconds.")
        self.port = port or _PORTS[parts.scheme]
        self.is_secure = parts.scheme == "wss"
        self.tls = tls
        self.dial_timeout = dial_timeout
        self.silence = silence
        self._netloc = parts.netloc
        self._path = parts.path.rstrip("/") or "/v1"
        self._token = token

    def request(self, *, in_batches: bool) -> Request:
        """The WebSocket upgrade."""
        return Request(
            host=self._netloc,
            target=f"{self._path}?batch=1" if in_batches else self._path,
            subprotocols=[SUBPROTOCOL],
            extra_headers=[] if self._token is None else [(b"authorization", f"Bearer {self._token}".encode())],
        )


def _bad_url(why: str) -> InvalidCommand:
    return InvalidCommand(f"The address of a server reads ws://HOST:PORT or wss://HOST:PORT: {why}.")
