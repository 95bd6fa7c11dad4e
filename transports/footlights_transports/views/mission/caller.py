"""The caller of a session: it follows the session like any subscriber, and calls out what a listener should know.

It never holds up a turn, and no voice holds up a text: texts are told as they are decided, and a task of its own
speaks them, one after another. If it is let go because it was too slow, it comes back and goes on where it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from footlights.errors import Detached, FootlightsError, LedgerUnavailable
from footlights.events import CommitFinal
from footlights.stream.outbox import DetachReason
from footlights_transports.views.mission.pure.turns import TurnCallouts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights import InteractionSession, Ledger, StreamEvent, Subscription
    from footlights.authority import Artifact
    from footlights_transports.views.mission.announcer import Announcement, Announcer, Callout
    from footlights_transports.views.mission.pure.payload import Context


MAX_WAITING_CALLOUTS = 64
"""Callouts of one session that are decided and not spoken yet. Each is dropped after a few seconds anyway."""


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
        is_told: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`context` says who listens when something is to be told, `tell` gets everything that was decided.

        It gets it before it is spoken, and again if the voice then was silent. With a ledger, what waits for an answer
        is called out too. Without a name the mission is the session. An event whose id `is_told` is not told again.
        """
        self._session = session
        self._announcer = announcer
        self._context = context
        self._tell = tell
        self._ledger = ledger
        self._is_told = is_told
        self._callouts = TurnCallouts(mission_id or session.session_id)

    async def run(self) -> None:
        """Call out until the session is closed and everything is spoken. Raises what subscribing raises."""
        decided, to_speak = trio.open_memory_channel["Callout"](MAX_WAITING_CALLOUTS)
        refusal: FootlightsError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._speak, to_speak)
            with decided:
                try:
                    await self._call_out(decided)
                except FootlightsError as error:  # not through the nursery, which would wrap it in a group
                    refusal = error
        if refusal is not None:
            raise refusal

    async def _call_out(self, decided: trio.MemorySendChannel[Callout]) -> None:
        after: Mapping[str, int] | None = None
        ended: Collection[str] = ()
        while True:
            async with self._session.subscribe(after, ended, observer=True) as stream:
                try:
                    await self._follow(stream, decided)
                except Detached as detached:
                    if detached.reason == DetachReason.COMMIT_UNKNOWN:
                        return
                    after, ended = stream.cursor, stream.terminal_seen
                else:
                    return

    async def _follow(self, stream: Subscription, decided: trio.MemorySendChannel[Callout]) -> None:
        while batch := await stream.receive_batch():
            for event in batch:
                for mission_event in self._callouts.take(event, await self._artifacts(event)):
                    if not self._is_told(mission_event.event_id):
                        callout = self._announcer.decide(mission_event, self._context())
                        self._tell(callout.announcement)
                        if callout.decision.speak:
                            self._hand_over(callout, decided)

    def _hand_over(self, callout: Callout, decided: trio.MemorySendChannel[Callout]) -> None:
        """To the task that speaks. A callout for which there is no place is dropped, and its text stays told."""
        try:
            decided.send_nowait(callout)
        except trio.WouldBlock:
            self._announcer.drop(callout)
            self._tell(callout.announcement)

    async def _speak(self, to_speak: trio.MemoryReceiveChannel[Callout]) -> None:
        with to_speak:
            try:
                async for callout in to_speak:
                    await self._spoken(callout)
            finally:
                self._give_up(to_speak)

    async def _spoken(self, callout: Callout) -> None:
        told = callout.announcement
        try:
            await self._announcer.speak(callout)
        finally:
            if callout.announcement is not told:
                self._tell(callout.announcement)

    def _give_up(self, to_speak: trio.MemoryReceiveChannel[Callout]) -> None:
        """Give back what was taken for callouts that will not be spoken."""
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                callout = to_speak.receive_nowait()
                self._announcer.drop(callout)
                self._tell(callout.announcement)

    async def _artifacts(self, event: StreamEvent) -> tuple[Artifact, ...]:
        """What a commit left behind, as far as the ledger can be read."""
        if self._ledger is None or not isinstance(event.payload, CommitFinal) or not event.payload.artifact_refs:
            return ()
        try:
            record = await self._ledger.find(event.session_id, event.turn_id)
        except LedgerUnavailable:
            return ()
        return () if record is None else record.artifacts
