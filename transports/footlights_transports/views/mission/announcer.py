"""The announcer: decides about callouts with the pure policy, a history and a clock, and speaks them with a voice.

Deciding is a plain call, so a text never waits; only the voice is waited for. A voice that fails costs its callout the
voice and nothing else, and too many failures leave the voice alone for a while.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import trio
from attrs import evolve, frozen

from footlights.failures import describe
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import decide, voice_dropped, voice_failed
from footlights_transports.views.mission.voice import NullVoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.views.mission.pure.payload import Context, MissionEvent, UtilityPayload
    from footlights_transports.views.mission.pure.policy import Decision
    from footlights_transports.views.mission.voice import Voice

PLACE_SECONDS = 10.0
"""A callout that could not begin for so long after it was decided is not spoken."""
VOICE_SECONDS = 10.0
"""A voice that takes longer has failed."""
VOICES_AT_ONCE = 2
STUCK_SECONDS = 1.0
"""A voice that has not ended so long after it was cancelled does not let itself be cancelled."""

log = logging.getLogger("footlights.mission")


@frozen(kw_only=True)
class Announcement:
    """What became of an event."""

    event: MissionEvent
    payload: UtilityPayload
    at_ms: int
    """When it was decided."""
    policy_seq: int
    """The place of the decision among all that its announcer decided and all that ended silently, from 1 on."""
    voice_failed_ms: int | None = None
    """When the voice failed that tried to speak it."""
    voice_dropped_ms: int | None = None
    """When it was given up without a try, or cut off. That is no failure of the voice."""
    ended_seq: int | None = None
    """The place of that end in the same order."""

    @property
    def is_amended(self) -> bool:
        """Whether it was to be spoken when it was decided, and then was not."""
        return self.voice_failed_ms is not None or self.voice_dropped_ms is not None

    @property
    def voice_failed(self) -> bool:
        """Whether the voice tried, and failed."""
        return self.voice_failed_ms is not None


class Callout:
    """An event that is decided, and what has become of it so far. Whoever has one hands it to `Announcer.speak`."""

    def __init__(self, decision: Decision, announcement: Announcement, *, goes_by_clock: bool) -> None:
        self.decision = decision
        self.announcement = announcement
        self.goes_by_clock = goes_by_clock
        self.decided_at = trio.current_time()
        self.is_spoken = False

    @property
    def is_open(self) -> bool:
        """Whether it is still to be spoken."""
        return self.decision.speak and not self.is_spoken


class _Utterance:
    """One voice that speaks, in a task of its own, so that it can be left behind."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.left_at = math.inf


class Announcer:
    """One for all missions that share a voice. `clock_ms` tells milliseconds since the epoch, and never goes back."""

    def __init__(self, clock_ms: Callable[[], int], voice: Voice | None = None) -> None:
        self.history = History()
        self._clock_ms = clock_ms
        self._voice = voice or NullVoice()
        self._voices = trio.CapacityLimiter(VOICES_AT_ONCE)
        self._left_behind: set[_Utterance] = set()
        """Voices that should have ended. Each keeps its place until it does."""
        self._last_seq = 0

    def now_ms(self) -> int:
        return self._clock_ms()

    async def announce(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Announcement:
        """Decide about an event, and speak it if it may be. Never raises because of the voice.

        `at_ms` is another time to go by than the clock's, for replays.
        """
        return await self.speak(self.decide(event, context, at_ms))

    def decide(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Callout:
        """Decide about an event. What it takes from the limits is taken now, so that a twin of it is a repetition.

        That holds even if its voice fails later: the twin was silent while it was tried.
        """
        now = self.now_ms() if at_ms is None else at_ms
        decision = decide(event, context, self.history, now)
        self.history = decision.history
        return Callout(decision, self._announcement(event, decision, now), goes_by_clock=at_ms is None)

    def consider(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Announcement:
        """What would become of an event now. Nothing is spoken, and nothing is spent."""
        now = self.now_ms() if at_ms is None else at_ms
        return self._announcement(event, decide(event, context, self.history, now), now)

    async def speak(self, callout: Callout) -> Announcement:
        """Speak what was decided, if it may be spoken, and return what became of it.

        It is dropped if it cannot begin soon, if the voice was left alone meanwhile, or if this is cancelled: then what
        it took is given back, and no failure is counted.
        """
        if not callout.decision.speak:
            await trio.lowlevel.checkpoint()
            return callout.announcement
        try:
            utterance = await self._begun(callout)
            if utterance is not None:
                await self._ended(callout, utterance)
        except trio.Cancelled:
            self.drop(callout)
            raise
        return callout.announcement

    def drop(self, callout: Callout) -> None:
        """Give up what is not spoken yet. Changes nothing about what has ended."""
        if callout.is_open:
            now = self._end_ms(callout)
            self._end(callout, voice_dropped(callout.decision, self.history, now))
            callout.announcement = evolve(callout.announcement, voice_dropped_ms=now, ended_seq=self._next_seq())

    async def _begun(self, callout: Callout) -> _Utterance | None:
        """The voice as it speaks; None if there was no place for it, or it must be left alone."""
        utterance = _Utterance()
        with trio.move_on_at(callout.decided_at + PLACE_SECONDS) as patience:
            await self._voices.acquire_on_behalf_of(utterance)
        if patience.cancelled_caught:
            if self._is_stuck():
                self._fail(callout)  # or everybody would wait for voices that never end
            else:
                self.drop(callout)
            return None
        if self.history.breaker_wait(self.history.now(self._end_ms(callout))):
            self._voices.release_on_behalf_of(utterance)
            self.drop(callout)
            return None
        # No nursery of ours: it would have to wait for a voice that cannot be cancelled.
        trio.lowlevel.spawn_system_task(self._utter, utterance, callout, name="voice")
        return utterance

    async def _ended(self, callout: Callout, utterance: _Utterance) -> None:
        """Wait for a voice, but not for one that does not end in time."""
        try:
            with trio.move_on_after(VOICE_SECONDS):
                await utterance.ended.wait()
        finally:
            if not utterance.ended.is_set():
                utterance.left_at = trio.current_time()
                self._left_behind.add(utterance)
                utterance.scope.cancel(reason="nobody waits for this voice any more")
        self._fail(callout)

    async def _utter(self, utterance: _Utterance, callout: Callout) -> None:
        """The supervision boundary of a voice."""
        try:
            with utterance.scope:
                await self._voice.speak(callout.announcement.payload)
                callout.is_spoken = True
        except BaseException as error:  # noqa: BLE001 - see above; a system task that raises ends the program
            # Not its message: that may quote what it was to say.
            log.warning("a voice failed: %s", describe(error))
        finally:
            self._fail(callout)  # before the place is free, so that the next one knows
            self._left_behind.discard(utterance)
            self._voices.release_on_behalf_of(utterance)
            utterance.ended.set()

    def _is_stuck(self) -> bool:
        """Whether every place is taken by a voice that was cancelled and goes on."""
        long_ago = trio.current_time() - STUCK_SECONDS
        return sum(each.left_at <= long_ago for each in self._left_behind) >= VOICES_AT_ONCE

    def _fail(self, callout: Callout) -> None:
        """Count a failure. Changes nothing about what has ended."""
        if callout.is_open:
            now = self._end_ms(callout)
            self._end(callout, voice_failed(callout.decision, self.history, now))
            callout.announcement = evolve(callout.announcement, voice_failed_ms=now, ended_seq=self._next_seq())

    def _end(self, callout: Callout, decision: Decision) -> None:
        self.history = decision.history
        callout.decision = decision
        callout.announcement = evolve(callout.announcement, payload=decision.payload)

    def _announcement(self, event: MissionEvent, decision: Decision, now: int) -> Announcement:
        return Announcement(event=event, payload=decision.payload, at_ms=now, policy_seq=self._next_seq())

    def _next_seq(self) -> int:
        self._last_seq += 1
        return self._last_seq

    def _end_ms(self, callout: Callout) -> int:
        return self.now_ms() if callout.goes_by_clock else callout.announcement.at_ms
