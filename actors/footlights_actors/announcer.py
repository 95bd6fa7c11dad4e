"""The one who decides and speaks callouts: the policy of `footlights.mission`, its history, a clock and a voice.

Deciding is a plain call; only the voice is waited for. A voice that fails costs its callout the voice and nothing else,
and too many failures leave the voice alone for a while.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.failures import describe
from footlights.mission import History, decide, voice_failed
from footlights_actors.voice import NullVoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.mission import Context, Decision, MissionEvent, UtilityPayload
    from footlights_actors.voice import Voice

VOICE_SECONDS = 10.0
"""A voice that takes longer has failed."""
_VOICES_AT_ONCE = 2

log = logging.getLogger("footlights.mission")


@frozen(kw_only=True)
class Announcement:
    """What became of an event."""

    payload: UtilityPayload
    at_ms: int
    """When it was decided."""
    voice_failed: bool = False
    """Whether the voice tried, and failed."""


class Announcer:
    """One for all missions that share a voice. `clock_ms` tells milliseconds since the epoch, and never goes back."""

    def __init__(self, clock_ms: Callable[[], int], voice: Voice | None = None) -> None:
        self.history = History()
        self._clock_ms = clock_ms
        self._voice = voice or NullVoice()
        self._voices = trio.CapacityLimiter(_VOICES_AT_ONCE)

    def now_ms(self) -> int:
        return self._clock_ms()

    async def announce(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Announcement:
        """Decide about an event, and speak it if it may be. Never raises because of the voice.

        `at_ms` is another time to go by than the clock's, for replays.
        """
        now = self.now_ms() if at_ms is None else at_ms
        decision = decide(event, context, self.history, now)
        self.history = decision.history
        if not decision.speak or await self._spoken(decision.payload):
            await trio.lowlevel.checkpoint()
            return Announcement(payload=decision.payload, at_ms=now)
        failed = voice_failed(decision, self.history, self.now_ms() if at_ms is None else at_ms)
        self.history = failed.history
        return Announcement(payload=failed.payload, at_ms=now, voice_failed=True)

    def consider(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Decision:
        """What would become of an event now. Nothing is spoken, and nothing is spent."""
        return decide(event, context, self.history, self.now_ms() if at_ms is None else at_ms)

    async def _spoken(self, payload: UtilityPayload) -> bool:
        """The supervision boundary of a voice: whether it spoke."""
        try:
            async with self._voices:
                with trio.fail_after(VOICE_SECONDS):
                    await self._voice.speak(payload)
        except Exception as error:  # noqa: BLE001 - see above; what it raises may quote what it was to say
            log.warning("a voice failed: %s", describe(error))
            return False
        return True
