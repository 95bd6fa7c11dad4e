"""Access policy: tokens, origins, ownership of sessions, and the limits of clients. One for every server.

A user sees its own sessions and no others; a session of another user looks as if it did not exist. Without tokens there
is one anonymous user, and only this machine may connect. Nothing here logs or repeats a token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import evolve, fields, frozen

from footlights.authority.visibility import User
from footlights.errors import RegistrationError, UnknownSession
from footlights.token_bucket import TokenBucket
from footlights_transports.access.origins import is_of_this_machine
from footlights_transports.errors import RateLimited, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.params import SessionParams

__all__ = ["AccessPolicy", "RateLimiter", "User", "WireLimits", "is_loopback"]

_USER = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_MIN_TOKEN_CHARS = 16
_MAY_BE_ZERO = frozenset({"session_idle_seconds"})


@frozen(kw_only=True)
class WireLimits:
    """Limits of clients. Times are in seconds. Raises `RegistrationError` for a value that is out of range."""

    max_frame_bytes: int = 262_144
    """One command, or the body of one request."""
    max_connections: int = 4_096
    """Connections of all users to both servers. If there are several users, one may have at most half of them."""
    max_connections_per_user: int = 4_096
    """Connections of one user to both servers."""
    max_handshakes: int = 256
    """Pending connections: no handshake, no valid token or, without tokens, no whole request yet."""
    handshake_timeout: float = 10.0
    """How long a connection may be pending, and how long a body may take."""
    commands_per_second: float = 200.0
    """Commands of one connection, on average."""
    command_burst: int = 400
    """Commands of one connection at once, after silence."""
    user_commands_per_second: float = 2_000.0
    """Commands of all connections of one user, on average."""
    user_command_burst: int = 4_000
    """Commands of all connections of one user at once, after silence."""
    bytes_per_second: int = 1_048_576
    """Bytes read from one WebSocket connection, on average; each frame counts as 1,024 bytes more than it has."""
    byte_burst: int = 4_194_304
    """Bytes read from one WebSocket connection at once, after silence."""
    user_bytes_per_second: int = 4_194_304
    """Bytes read from all WebSocket connections and HTTP bodies of one user, on average."""
    user_byte_burst: int = 16_777_216
    """Bytes read from them at once, after silence; never less than `max_frame_bytes`."""
    max_sessions_per_user: int = 10_000
    """Open sessions of one user."""
    max_open_turns_per_user: int = 4_096
    """Turns of one user that are not committed."""
    session_idle_seconds: float = 3_600.0
    """A session without subscribers, commands and open turns is closed after this time; 0 means never."""
    max_subscriptions_per_connection: int = 256
    """Sessions that one connection may follow at once."""
    max_commands_waiting: int = 64
    """`finalize` and `close` commands of one connection that have not been answered."""
    keep_alive: float = 15.0
    """After this time without an event, an event stream gets a comment and a WebSocket client a ping."""
    send_timeout: float = 30.0
    """The connection of an HTTP client that reads nothing for this time is closed."""

    def __attrs_post_init__(self) -> None:
        for limit in fields(type(self)):
            value = getattr(self, limit.name)
            if limit.name in _MAY_BE_ZERO and not value >= 0:
                raise RegistrationError(f"{limit.name} must be 0 or more.")
            if limit.name not in _MAY_BE_ZERO and not value > 0:
                raise RegistrationError(f"{limit.name} must be more than 0.")


class AccessPolicy:
    """Raises `RegistrationError` for tokens that are too short or used twice, and for invalid names of users."""

    def __init__(
        self,
        tokens: Mapping[str, str] | None = None,
        *,
        roles: Mapping[str, Mapping[str, bool]] | None = None,
        origins: Iterable[str] = (),
        limits: WireLimits | None = None,
    ) -> None:
        self.limits = limits or WireLimits()
        self._origins = frozenset(origins)
        if "*" in self._origins and not tokens:
            raise RegistrationError(
                "Without tokens any page that a browser on this machine opens could play: configure tokens, or list "
                "the pages."
            )
        self._users = {
            _fingerprint(token): User(name, **(roles or {}).get(name, {})) for name, token in (tokens or {}).items()
        }
        # The messages repeat neither: name and token may have been swapped.
        for name, token in (tokens or {}).items():
            if not _USER.fullmatch(name):
                raise RegistrationError("The name of a user must be 1 to 32 lower-case letters, digits, _ or -.")
            if len(token) < _MIN_TOKEN_CHARS:
                raise RegistrationError(f"A token must have at least {_MIN_TOKEN_CHARS} characters.")
        if len(self._users) != len(tokens or {}):
            raise RegistrationError("Two users have the same token.")

    @property
    def wants_tokens(self) -> bool:
        return bool(self._users)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self._users)

    def is_game_server(self, user: User) -> bool:
        """Whether the user has that role now: a connection may be older than the settings."""
        return any(each.game_server for each in self._users.values() if each == user)

    @property
    def has_many_users(self) -> bool:
        """Whether limits have to be shared."""
        return len(self._users) > 1

    def become(self, other: AccessPolicy) -> frozenset[User]:
        """Take over the tokens, origins and limits of another; return the users whose tokens are revoked by that."""
        revoked = frozenset(user for token, user in self._users.items() if token not in other._users)
        self.limits, self._origins, self._users = other.limits, other._origins, other._users
        return revoked

    def check_address(self, host: str) -> None:
        """Raises `RegistrationError` if a server may not listen at this address."""
        if not self._users and not is_loopback(host):
            raise RegistrationError(
                f"Without tokens anybody who can reach {host} could play: configure tokens, or listen on 127.0.0.1."
            )

    def check_host(self, host: str | None) -> None:
        """Raises `Unauthorized` for a foreign host if there are no tokens: a page may use DNS rebinding."""
        if host is not None and not self._users and not is_loopback(_name_in(host)):
            raise Unauthorized(
                "Without tokens this server answers only to localhost and loopback addresses: use one of them, or "
                "configure tokens (server.tokens_file)."
            )

    def check_origin(self, origin: str | None) -> None:
        """Raises `Unauthorized` for a page of another origin. Programs that are not browsers send no origin.

        Without tokens, pages that this machine serves may connect, as any program on it may.
        """
        if origin is None or origin in self._origins or "*" in self._origins:
            return
        if not self._users and is_of_this_machine(origin):
            return
        if origin == "null":
            raise Unauthorized(
                "A page that was opened as a file has no origin, and may not connect: serve it by HTTP, for example "
                "with python -m http.server."
            )
        raise Unauthorized("Pages from this origin may not connect: list it in server.origins.")

    def admit(self, authorization: str | None) -> User:
        """The user whose token this is: `Bearer TOKEN`. Raises `Unauthorized`."""
        if not self._users:
            return User()
        scheme, _, token = (authorization or "").partition(" ")
        presented = _fingerprint(token.strip())
        # All tokens are compared, so the time that this takes reveals nothing.
        found = [user for known, user in self._users.items() if hmac.compare_digest(known, presented)]
        if scheme.lower() != "bearer":
            raise Unauthorized("That needs a token: Authorization: Bearer TOKEN")
        if not found:
            raise Unauthorized("This token is not known here, or counts no more.")
        return found[0]

    # -- ownership: the name of a session begins with its user's name

    def named_for(self, user: User, params: SessionParams) -> SessionParams:
        """The same parameters, with the user's name in the session's name."""
        if user.name is None or params.session_id is None:
            return params
        if params.session_id.startswith(f"{user.name}:"):
            return params
        return evolve(params, session_id=f"{user.name}:{params.session_id}")

    def check_owner(self, user: User, session_id: str) -> None:
        """Raises `UnknownSession` for a session of another user."""
        if user.name is not None and not session_id.startswith(f"{user.name}:"):
            raise UnknownSession("There is no open session with that id.")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _name_in(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class RateLimiter:
    """Rate limit of commands: a token bucket that raises an error."""

    __slots__ = ("_bucket", "_per_second")

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._bucket = TokenBucket(burst, burst / per_second, now)

    def take(self, now: float) -> None:
        """Raises `RateLimited`."""
        if not self._bucket.take(1, now):
            raise RateLimited(f"No more than {self._per_second:g} commands a second.", self.seconds_until_next(now))

    def seconds_until_next(self, now: float) -> int:
        """Whole seconds until one more command is allowed, if none is given meanwhile; at least 1."""
        return self._bucket.seconds_until(1, now)


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
