"""Admission: the clients of one server process. It counts connections, commands and bytes of users in all its worlds.

The access to each world (`SessionAccess`) shares one admission, so that a user cannot multiply a limit by the worlds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import trio

from footlights.errors import SessionClosed
from footlights.fair_share import FairShare
from footlights.token_bucket import TokenBucket
from footlights_transports.access.policy import AccessPolicy, RateLimiter
from footlights_transports.encodings import Encodings
from footlights_transports.errors import RateLimited
from footlights_transports.server.incidents import Incidents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess


class Admission:
    """Who may connect, and how much each user may do. Its policy is changed in place by a reload."""

    def __init__(self, policy: AccessPolicy | None = None) -> None:
        self.policy = policy or AccessPolicy()
        self.encodings = Encodings()
        self.incidents = Incidents()
        self.accesses: dict[SessionAccess, None] = {}
        """The accesses to the worlds that are open."""
        self.turns_of: Counter[User] = Counter()
        """Turns of each user that are not settled, in all worlds."""
        self.revocation_listeners: list[Callable[[Collection[User]], None]] = []
        """Called with the users whose tokens were revoked, to close their connections."""
        self._connected: Counter[User] = Counter()
        self._rates: dict[User, RateLimiter] = {}
        self._byte_budgets: dict[User, TokenBucket] = {}
        self._is_closing = False
        self._set_shares()

    def renew(self, policy: AccessPolicy) -> frozenset[User]:
        """Use other tokens, origins and limits from now on; return the users whose tokens are revoked by that."""
        revoked = self.policy.become(policy)
        self._rates.clear()
        for budget in self._byte_budgets.values():  # in place, because streams hold them
            budget.resize(*self._byte_rate(), trio.current_time())
        self._set_shares()
        for access in self.accesses:
            access.set_shares()
        for listener in self.revocation_listeners:
            listener(revoked)
        return revoked

    def _set_shares(self) -> None:
        wire = self.policy.limits
        self._share_of_connections = FairShare(
            "connections",
            "max_connections",
            wire.max_connections,
            wire.max_connections_per_user,
            self.policy.has_many_users,
        )

    def close_doors(self) -> None:
        """Refuse new sessions and turns, because the server shuts down. Open turns go on."""
        self._is_closing = True

    @property
    def is_closing(self) -> bool:
        """Whether the server shuts down. Its sessions end with it, and may be resumed after a restart."""
        return self._is_closing

    def check_doors(self) -> None:
        """Raises `SessionClosed` if the server shuts down."""
        if self._is_closing:
            raise SessionClosed("The server is closing. Come back to this session when it is open again.")

    def connect(self, user: User) -> None:
        """Count one more connection of this user to any server. Raises `Busy`."""
        held, taken = self._connected[user], self._connected.total()
        self._share_of_connections.check(held, taken, is_exempt=self.policy.is_game_server(user))
        self._connected[user] += 1

    def disconnect(self, user: User) -> None:
        """Count one connection of this user less."""
        self._connected[user] -= 1

    def take_command(self, user: User) -> None:
        """Count one more command of this user, over any connection. Raises `RateLimited`."""
        now = trio.current_time()
        self._rate(user, now).take(now)

    def check_bytes(self, user: User) -> None:
        """Raises `RateLimited` while this user has sent more bytes than it may."""
        now, budget = trio.current_time(), self.byte_budget(user)
        if budget.seconds_in_debt(now):
            per_second = self.policy.limits.user_bytes_per_second
            raise RateLimited(f"No more than {per_second:,} bytes a second.", budget.seconds_until(0, now))

    def seconds_until_command(self, user: User) -> int:
        """Whole seconds until this user may give one more command, if it gives none meanwhile; at least 1."""
        now = trio.current_time()
        return self._rate(user, now).seconds_until_next(now)

    def byte_budget(self, user: User) -> TokenBucket:
        """The bytes that all connections of this user together may send."""
        if user not in self._byte_budgets:
            self._byte_budgets[user] = TokenBucket(*self._byte_rate(), trio.current_time())
        return self._byte_budgets[user]

    def _byte_rate(self) -> tuple[float, float]:
        limits = self.policy.limits
        burst = max(limits.user_byte_burst, limits.max_frame_bytes)
        return burst, burst / limits.user_bytes_per_second

    def _rate(self, user: User, now: float) -> RateLimiter:
        if user not in self._rates:
            limits = self.policy.limits
            self._rates[user] = RateLimiter(limits.user_commands_per_second, limits.user_command_burst, now)
        return self._rates[user]
