"""Caller: follows a session as an observer, and calls out its turns.

It never delays a turn. Texts are passed on as they are decided; a second task speaks the callouts one after another.
A caller that is detached because it was slow subscribes again where it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError
from footlights.stream.follow import follow
from footlights_transports.views.mission.pure.turns import TurnCallouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession, StreamEvent
    from footlights_transports.views.mission.announcer import Announcement, Announcer, Callout
    from footlights_transports.views.mission.pure.payload import Context

MAX_WAITING_CALLOUTS = 64
"""Callouts of one session that wait to be spoken. Each is dropped after a few seconds anyway."""


class Caller:
    """The callouts of one session."""

    def __init__(
        self,
        session: InteractionSession,
        announcer: Announcer,
        context: Callable[[], Context],
        tell: Callable[[Announcement], None],
        *,
        is_told: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`context` returns the listener at the time of a callout; `tell` gets each announcement before it is spoken.

        `tell` gets an announcement again if its voice then stays silent.
        Events whose id `is_told` are left out.
        """
        self._session = session
        self._announcer = announcer
        self._context = context
        self._tell = tell
        self._is_told = is_told
        self._callouts = TurnCallouts(session.session_id)

    async def run(self) -> None:
        """Call out turns until the session is closed and all callouts have ended. Raises what subscribing raises."""
        decided, to_speak = trio.open_memory_channel["Callout"](MAX_WAITING_CALLOUTS)
        refusal: FootlightsError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._speak, to_speak)
            with decided:
                try:
                    async with follow(self._session, observer=True) as stream:
                        while batch := await stream.receive_batch():
                            for event in batch:
                                self._call_out(event, decided)
                except FootlightsError as error:  # carried around the nursery, which would wrap it in a group
                    refusal = error
        if refusal is not None:
            raise refusal

    def _call_out(self, event: StreamEvent, decided: trio.MemorySendChannel[Callout]) -> None:
        for mission_event in self._callouts.take(event):
            if self._is_told(mission_event.event_id):
                continue
            callout = self._announcer.decide(mission_event, self._context())
            self._tell(callout.announcement)
            if callout.is_open:
                try:
                    decided.send_nowait(callout)
                except trio.WouldBlock:
                    self._drop(callout)

    async def _speak(self, to_speak: trio.MemoryReceiveChannel[Callout]) -> None:
        with to_speak:
            try:
                async for callout in to_speak:
                    try:
                        await self._announcer.speak(callout)
                    finally:
                        if callout.announcement.is_amended:
                            self._tell(callout.announcement)
            finally:
                with suppress(trio.WouldBlock, trio.EndOfChannel):
                    while True:
                        self._drop(to_speak.receive_nowait())

    def _drop(self, callout: Callout) -> None:
        self._announcer.drop(callout)
        self._tell(callout.announcement)
