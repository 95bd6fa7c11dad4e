"""The caller of a session: it follows the session like any subscriber, and calls out what a listener should know.

It never holds up a turn: it reads its own stream, at the pace of the voice. If it is let go because that was too slow,
it comes back and goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import Detached, LedgerUnavailable
from footlights.events import CommitFinal
from footlights.mission.turns import TurnCallouts
from footlights.outbox import DetachReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights import InteractionSession, Ledger, StreamEvent, Subscription
    from footlights.authority import Artifact
    from footlights.mission import Context
    from footlights_actors.announcer import Announcement, Announcer


class Caller:
    """For one session."""

    def __init__(
        self,
        session: InteractionSession,
        announcer: Announcer,
        context: Callable[[], Context],
        tell: Callable[[Announcement], None],
        *,
        ledger: Ledger | None = None,
        mission_id: str | None = None,
    ) -> None:
        """`context` says who listens when something is to be told, `tell` gets everything that was decided.

        With a ledger, what waits for an answer is called out too. Without a name the mission is the session.
        """
        self._session = session
        self._announcer = announcer
        self._context = context
        self._tell = tell
        self._ledger = ledger
        self._callouts = TurnCallouts(mission_id or session.session_id)

    async def run(self) -> None:
        """Call out until the session is closed. Raises what subscribing raises."""
        after: Mapping[str, int] | None = None
        while True:
            async with self._session.subscribe(after) as stream:
                try:
                    await self._follow(stream)
                except Detached as detached:
                    if detached.reason == DetachReason.COMMIT_UNKNOWN:
                        return
                    after = stream.cursor
                else:
                    return

    async def _follow(self, stream: Subscription) -> None:
        while batch := await stream.receive_batch():
            for event in batch:
                for callout in self._callouts.take(event, await self._artifacts(event)):
                    self._tell(await self._announcer.announce(callout, self._context()))

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        """What a commit left behind, as far as the ledger can be read."""
        if self._ledger is None or not isinstance(event.payload, CommitFinal) or not event.payload.artifact_refs:
            return ()
        try:
            record = await self._ledger.find(event.session_id, event.turn_id)
        except LedgerUnavailable:
            return ()
        return () if record is None else record.artifacts
