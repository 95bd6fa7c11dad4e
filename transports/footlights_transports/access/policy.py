"""Who may do what, and how much: one policy for every server.

Whoever has a token sees its own sessions and no others; a foreign one looks as if it did not exist. Without tokens
there is one anonymous user, and only this machine may connect. Nothing here logs or repeats a token.
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
from footlights_transports.errors import RateLimited, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.params import SessionParams

__all__ = ["AccessPolicy", "Pace", "User", "WireLimits", "is_loopback"]

_USER = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_MIN_TOKEN_CHARS = 16
_MAY_BE_ZERO = frozenset({"session_idle_seconds"})


@frozen(kw_only=True)
class WireLimits:
    """What one who connects may ask for. Times are seconds. Raises `RegistrationError` for what makes no sense."""

    max_frame_bytes: int = 262_144
    """One command, or the body of one request."""
    max_connections: int = 4_096
    """Of all users together, to both servers. Of several users, one may have a half at most."""
    max_connections_per_user: int = 4_096
    """Of one user, to both servers."""
    max_handshakes: int = 256
    """Connections that are pending: no handshake, no valid token or, without tokens, no whole request yet."""
    handshake_timeout: float = 10.0
    """How long a connection may take to say it."""
    commands_per_second: float = 200.0
    """What one connection may ask for in the long run."""
    command_burst: int = 400
    """What it may ask for at once, after it was silent."""
    user_commands_per_second: float = 2_000.0
    """What all connections of one user together may ask for in the long run."""
    user_command_burst: int = 4_000
    """What they may ask for at once, after they were silent."""
    bytes_per_second: int = 1_048_576
    """What is read of one WebSocket connection in the long run; each frame counts 1,024 bytes more than it has."""
    byte_burst: int = 4_194_304
    """What is read of it at once, after it was silent."""
    user_bytes_per_second: int = 4_194_304
    """What is read of all WebSocket connections of one user together in the long run, and of bodies of its requests."""
    user_byte_burst: int = 16_777_216
    """What is read of them at once, after they were silent; never less than `max_frame_bytes`."""
    max_sessions_per_user: int = 10_000
    """Open sessions of one user."""
    max_open_turns_per_user: int = 4_096
    """Turns of one user that are not committed yet."""
    max_feeds_per_user: int = 100
    """Chat feeds of one user that are kept at once; one more, and the one not read for longest goes."""
    session_idle_seconds: float = 3_600.0
    """A session that nobody follows, asks for anything or has an open turn in is closed after so long; 0 is never."""
    max_subscriptions_per_connection: int = 256
    """Sessions that one connection follows at once."""
    max_commands_waiting: int = 64
    """`finalize` commands of one connection that have not been answered."""
    keep_alive: float = 15.0
    """After so much silence an event stream is sent something that means nothing."""
    send_timeout: float = 30.0
    """A client of the HTTP server that takes nothing of what it is sent for so long is given up."""

    def __attrs_post_init__(self) -> None:
        for limit in fields(type(self)):
            value = getattr(self, limit.name)
            if limit.name in _MAY_BE_ZERO and not value >= 0:
                raise RegistrationError(f"{limit.name} must be 0 or more.")
            if limit.name not in _MAY_BE_ZERO and not value > 0:
                raise RegistrationError(f"{limit.name} must be more than 0.")


class AccessPolicy:
    """Raises `RegistrationError` for tokens that are too short, used twice, or whose user's name cannot be one."""

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
        # Neither is repeated in what is said of them: they may stand in each other's place.
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
        """How many there are."""
        return len(self._users)

    def is_game_server(self, user: User) -> bool:
        """Whether it is one now: a connection may be older than the settings."""
        return any(each.game_server for each in self._users.values() if each == user)

    @property
    def has_many_users(self) -> bool:
        """Whether what is limited has to be divided."""
        return len(self._users) > 1

    def become(self, other: AccessPolicy) -> frozenset[User]:
        """Go by the tokens, the origins and the limits of another; return the users whose tokens count no more."""
        revoked = frozenset(user for token, user in self._users.items() if token not in other._users)
        self.limits, self._origins, self._users = other.limits, other._origins, other._users
        return revoked

    def check_address(self, host: str) -> None:
        """Raises `RegistrationError` if a server may not listen there."""
        if not self._users and not is_loopback(host):
            raise RegistrationError(
                f"Without tokens anybody who can reach {host} could play: configure tokens, or listen on 127.0.0.1."
            )

    def check_host(self, host: str | None) -> None:
        """Raises `Unauthorized` if, without tokens, a client names another host: DNS rebinding leads pages here."""
        if host is not None and not self._users and not is_loopback(_name_in(host)):
            raise Unauthorized("Without tokens this server answers only to localhost and loopback addresses.")

    def check_origin(self, origin: str | None) -> None:
        """Raises `Unauthorized` for a web page that is not on the list. Programs that are no browsers send none."""
        if origin is not None and origin not in self._origins and "*" not in self._origins:
            raise Unauthorized("Pages from this origin may not connect.")

    def admit(self, authorization: str | None) -> User:
        """The user whose token this is: `Bearer TOKEN`. Raises `Unauthorized`."""
        if not self._users:
            return User()
        scheme, _, token = (authorization or "").partition(" ")
        presented = _fingerprint(token.strip())
        # Every one is compared, so how long it takes says nothing.
        found = [user for known, user in self._users.items() if hmac.compare_digest(known, presented)]
        if scheme.lower() != "bearer":
            raise Unauthorized("That needs a token: Authorization: Bearer TOKEN")
        if not found:
            raise Unauthorized("This token is not known here, or counts no more.")
        return found[0]

    # -- sessions belong to users by their names

    def named_for(self, user: User, params: SessionParams) -> SessionParams:
        """The same wishes, with a name that shows whose session it is."""
        if user.name is None or params.session_id is None:
            return params
        if params.session_id.startswith(f"{user.name}:"):
            return params
        return evolve(params, session_id=f"{user.name}:{params.session_id}")

    def check_owner(self, user: User, session_id: str) -> None:
        """Raises `UnknownSession` for a session that is somebody else's."""
        if user.name is not None and not session_id.startswith(f"{user.name}:"):
            raise UnknownSession("There is no open session with that id.")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
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


class Pace:
    """How many commands somebody may still give: so many a second, and more at once after silence."""

    __slots__ = ("_allowance", "_per_second")

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._allowance = TokenBucket(burst, burst / per_second, now)

    def take(self, now: float) -> None:
        """Raises `RateLimited`."""
        if not self._allowance.take(1, now):
            raise RateLimited(f"No more than {self._per_second:g} commands a second.", self.seconds_until_next(now))

    def seconds_until_next(self, now: float) -> int:
        """In how many whole seconds one more may be given, if none is meanwhile; at least 1."""
        return self._allowance.seconds_until(1, now)


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
