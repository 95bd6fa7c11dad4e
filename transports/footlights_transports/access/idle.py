"""Idle sessions: closed after a time, so that clients which vanished do not use up the limits.

A session is in use while it has a subscriber or an open turn, and when a command names it. Observers, such as a chat
feed, do not count. An idle session that has a name, and not only a number, may be resumed with a cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import SessionState

if TYPE_CHECKING:
    from collections.abc import Collection

    from footlights import InteractionSession
    from footlights_transports.access.session_access import SessionAccess

_LOOKS = 10
"""Checks of each session in the time after which it is closed. Closing may be one check late."""


class Idleness:
    """The time since when each session is known to be idle."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since: dict[str, float] = {}
        self.owner = trio.Lock()
        """Held by the one task that closes idle sessions."""

    def use(self, session_id: str) -> None:
        """A command names the session now."""
        self._since.pop(session_id, None)

    def is_over(self, session: InteractionSession, now: float) -> bool:
        """Whether the session is open and was idle for long enough, as far as the checks know."""
        if is_in_use(session):
            self.use(session.session_id)
            return False
        # From this check on, and not from the last one: the session may have been in use until a moment ago.
        return now - self._since.setdefault(session.session_id, now) >= self._patience

    def forget_all_but(self, session_ids: Collection[str]) -> None:
        """Forget sessions that do not exist any more."""
        self._since = {each: since for each, since in self._since.items() if each in session_ids}


def is_in_use(session: InteractionSession) -> bool:
    """Whether the session has subscribers or open turns, or is closed, which needs no closing."""
    now = session.statistics()
    return bool(now.state is not SessionState.OPEN or now.subscribers or any(now.turns_by_state.values()))


async def close_idle_sessions(access: SessionAccess) -> None:
    """Close sessions that were idle for `session_idle_seconds`, until cancelled.

    Each server in front of an access calls this. One call does the work; if it ends, another takes over.
    """
    patience = access.policy.limits.session_idle_seconds
    if patience == 0:
        await trio.sleep_forever()
    async with access.idleness.owner:
        while True:
            await trio.sleep(patience / _LOOKS)
            await _look(access)


async def _look(access: SessionAccess) -> None:
    sessions = access.open_sessions()
    access.idleness.forget_all_but({each.session_id for _, each in sessions})
    for user, session in sessions:
        await trio.lowlevel.checkpoint()  # there may be very many
        if access.idleness.is_over(session, trio.current_time()):
            await access.let_rest(user, session)
