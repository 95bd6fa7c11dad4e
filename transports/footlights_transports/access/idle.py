"""Sessions that nobody uses any more are closed, so that clients which vanished do not keep their places for ever.

A session is in use while somebody follows it, while a turn of it is open, and when it is asked for anything. An
observer, such as a chat feed, is nobody. If it was closed for this, and has a name and not only a number, one may come
back to it with a cursor, as after a restart.
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
"""How often a session is looked at in the time after which it is closed; it may take one look longer."""


class Idleness:
    """Since when each session is known to be out of use."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since: dict[str, float] = {}
        self.owner = trio.Lock()
        """Held by the one task that closes idle sessions."""

    def use(self, session_id: str) -> None:
        """Somebody asks for it now."""
        self._since.pop(session_id, None)

    def is_over(self, session: InteractionSession, now: float) -> bool:
        """Whether it is open and has been out of use for long enough, as far as was looked."""
        if is_in_use(session):
            self.use(session.session_id)
            return False
        # Not since it was last seen in use: it may have been until a moment ago.
        return now - self._since.setdefault(session.session_id, now) >= self._patience

    def forget_all_but(self, session_ids: Collection[str]) -> None:
        """These are the sessions that there still are."""
        self._since = {each: since for each, since in self._since.items() if each in session_ids}


def is_in_use(session: InteractionSession) -> bool:
    """Whether it is followed or has turns to finish. One that is closed needs no closing."""
    now = session.statistics()
    return bool(now.state is not SessionState.OPEN or now.subscribers or any(now.turns_by_state.values()))


async def close_idle_sessions(access: SessionAccess) -> None:
    """Close sessions that were out of use for `session_idle_seconds`, until cancelled.

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
