"""Target: the server under attack, with its addresses, tokens and process. Only loopback addresses are allowed."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from attrs import asdict, frozen

from footlights.errors import FootlightsError

WEBSOCKET_PATH = "/v1"


class CannotAttack(FootlightsError):
    """The server may not be attacked from here, or cannot be reached."""


@frozen
class Address:
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in a `Host` header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class Target:
    websocket: Address
    http: Address
    token: str | None
    """The token of the attacking user."""
    other_token: str | None
    """The token of another user, the bystander, whom the attack must not affect."""
    pid: int | None = None
    """The server's process, whose memory is watched; None if it is not known."""
    slow_persona: str | None = None
    """A persona whose turns stay open for long; None if there is none."""

    @property
    def has_two_owners(self) -> bool:
        return None not in (self.token, self.other_token) and self.token != self.other_token

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def target_from_json(value: dict[str, object]) -> Target:
    """The inverse of `Target.to_json`, for the processes that attack and watch."""
    plain = dict(value)
    addresses = {name: Address(**plain.pop(name)) for name in ("websocket", "http")}  # type: ignore[arg-type]
    return Target(**addresses, **plain)  # type: ignore[arg-type]


def loopback_address(url: str, *, scheme: str) -> Address:
    """Raises `CannotAttack` unless the URL names a port of this machine by a loopback address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise CannotAttack(f"{url!r} is not a URL.") from None
    if parts.scheme != scheme or host is None or port is None:
        raise CannotAttack(f"{url!r} is not a URL like {scheme}://127.0.0.1:7600.")
    # Names are not resolved: the answer of a resolver must not decide which machine is attacked.
    host = "127.0.0.1" if host == "localhost" else host
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise CannotAttack(f"{host} is not a loopback address. Attack only servers on this machine: 127.0.0.1 or ::1.")
    return Address(host, port)


def aim(
    ws_url: str | None, http_url: str | None, token: str | None, other_token: str | None, pid: int | None
) -> Target | None:
    """The server at these URLs; None without URLs, for which the suite starts its own. Raises `CannotAttack`."""
    if ws_url is None and http_url is None:
        if (token, other_token, pid) != (None, None, None):
            raise CannotAttack("Tokens and --pid are for a server that is named by --ws-url and --http-url.")
        return None
    if ws_url is None or http_url is None:
        raise CannotAttack("A server is named by both --ws-url and --http-url, as it prints them when it starts.")
    websocket, http = loopback_address(ws_url, scheme="ws"), loopback_address(http_url, scheme="http")
    return Target(websocket, http, token, other_token, pid)
