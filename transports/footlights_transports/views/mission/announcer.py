"""Announcer: decides about callouts with the policy, and speaks them with a voice.

Deciding is a plain call, so a text never waits for a voice. A voice that fails costs its callout the voice and nothing
else, and too many failures pause the voice for a while.

Each voice runs in the nursery of the announcer rather than in the task that waits for it, because a voice may resist
cancellation: the waiting task goes on at once, and only the end of the announcer waits for such a voice. The scope of a
voice is shielded. The waiting task cancels it, so shutdown gives a voice exactly the time that it gives its request.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio
from attrs import evolve, frozen

from footlights.failures import contained, report
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import decide, voice_dropped, voice_failed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from footlights_transports.views.mission.pure.payload import Context, MissionEvent, UtilityPayload
    from footlights_transports.views.mission.pure.policy import Decision
    from footlights_transports.views.mission.recordings import Recordings
    from footlights_transports.views.mission.voice import Voice

PLACE_SECONDS = 10.0
"""A callout that has waited for a voice for so long is dropped."""
VOICE_SECONDS = 10.0
"""A voice that takes longer has failed."""
VOICES_AT_ONCE = 2
AUDIO_PATH = "/api/voice/audio"
"""Where recordings are served."""
STUCK_SECONDS = 1.0
"""A voice that has not ended so long after it was cancelled resists cancellation."""

log = logging.getLogger("footlights.mission")


@frozen(kw_only=True)
class Announcement:
    """The outcome for an event."""

    event: MissionEvent
    payload: UtilityPayload
    at_ms: int
    """The time of the decision."""
    policy_seq: int
    """The place of the decision among all decisions and all silent ends of this announcer, from 1 on."""
    voice_failed_ms: int | None = None
    """The time when its voice failed."""
    voice_dropped_ms: int | None = None
    """The time when it was dropped: its voice never started, or was cancelled. That is not a failure of the voice."""
    ended_seq: int | None = None
    """The place of that end in the same order."""
    audio_url: str | None = None
    """Where its owner can fetch its recording, if there is one."""

    @property
    def is_amended(self) -> bool:
        """Whether it was decided to speak, and the voice then stayed silent or left a recording."""
        return self.ended_seq is not None or self.audio_url is not None

    @property
    def voice_failed(self) -> bool:
        return self.voice_failed_ms is not None


class Callout:
    """A decided event, to be passed to `Announcer.speak`, and its latest announcement."""

    def __init__(self, decision: Decision, announcement: Announcement, owner: str | None, *, uses_clock: bool) -> None:
        self.decision = decision
        self.announcement = announcement
        self.owner = owner
        """The user who may fetch its recording."""
        self.uses_clock = uses_clock
        self.decided_at = trio.current_time()
        self.is_spoken = False

    @property
    def is_open(self) -> bool:
        """Whether it is still to be spoken."""
        return self.decision.speak and not self.is_spoken


class Announcer:
    """Decides for all missions that share a voice. Speaking needs `async with`, which holds the running voices.

    `clock_ms` returns milliseconds since the epoch, and never goes back. Without a voice nothing fails.
    """

    def __init__(
        self, clock_ms: Callable[[], int], voice: Voice | None = None, recordings: Recordings | None = None
    ) -> None:
        self.history = History()
        self.changed = trio.Event()
        """Set with the next change of the history, and then replaced."""
        self._clock_ms = clock_ms
        self._voice = voice
        self._recordings = recordings
        self._running = trio.open_nursery()
        self._nursery: trio.Nursery | None = None
        self._has_ended = False
        self._places = trio.CapacityLimiter(VOICES_AT_ONCE)
        self._cancelled: dict[trio.CancelScope, float] = {}
        """The voices that were cancelled and have not ended, and since when. Each keeps its place."""
        self._last_seq = 0

    async def __aenter__(self) -> Announcer:
        self._nursery = await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._has_ended = True  # from now on callouts are dropped rather than spoken
        return await self._running.__aexit__(kind, error, traceback)

    async def announce(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Announcement:
        """Decide about an event, and speak it if that is the decision. Never raises because of the voice.

        `at_ms` replaces the time of the clock, for replays.
        """
        return await self.speak(self.decide(event, context, at_ms))

    def decide(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Callout:
        """Decide about an event. It takes its place in the limits now, so the same event again is a repetition.

        That is so even if its voice fails later.
        """
        now = self._clock_ms() if at_ms is None else at_ms
        decision = decide(event, context, self.history, now)
        self._remember(decision.history)
        announcement = self._announcement(event, decision, now)
        return Callout(decision, announcement, context.user_id, uses_clock=at_ms is None)

    def consider(self, event: MissionEvent, context: Context, at_ms: int | None = None) -> Announcement:
        """The decision about an event as of now, as a dry run: nothing is spoken, and no limit is used up."""
        now = self._clock_ms() if at_ms is None else at_ms
        return self._announcement(event, decide(event, context, self.history, now), now)

    async def speak(self, callout: Callout) -> Announcement:
        """Speak a callout if that is the decision, and return the outcome.

        The callout is dropped if no voice is free in time, if the voice was paused meanwhile, if the announcer ends, or
        if this call is cancelled. Then its place in the limits is free again, and no failure is counted.
        """
        if not callout.is_open:
            await trio.lowlevel.checkpoint()
            return callout.announcement
        try:
            await self._speak(callout)
        finally:
            self.drop(callout)
        return callout.announcement

    def drop(self, callout: Callout) -> None:
        """Give up a callout that was not spoken yet. Does nothing after its end."""
        self._end(callout, is_failure=False)

    async def _speak(self, callout: Callout) -> None:
        scope, ended = trio.CancelScope(shield=True), trio.Event()
        with trio.move_on_at(callout.decided_at + PLACE_SECONDS) as patience:
            await self._places.acquire_on_behalf_of(scope)
        if patience.cancelled_caught:
            if self._is_stuck():
                self._end(callout, is_failure=True)  # so that the breaker opens, and callouts no longer wait
            return
        if self._has_ended or self.history.breaker_wait(self.history.now(self._end_ms(callout))):
            self._places.release_on_behalf_of(scope)
            return
        assert self._nursery is not None, "speaking needs `async with announcer`"
        self._nursery.start_soon(self._run_voice, callout, scope, ended, name="voice")
        try:
            with trio.move_on_after(VOICE_SECONDS):
                await ended.wait()
        finally:
            if not ended.is_set():
                self._cancelled[scope] = trio.current_time()
                scope.cancel(reason="the callout has ended")
        self._end(callout, is_failure=True)

    async def _run_voice(self, callout: Callout, scope: trio.CancelScope, ended: trio.Event) -> None:
        """The supervision boundary of a voice."""
        try:
            with contained(_log_failure), scope:
                sound = None if self._voice is None else await self._voice.speak(callout.announcement.payload)
                if sound is not None and self._recordings is not None:
                    name = await self._recordings.keep(callout.owner, sound)
                    if callout.is_open:  # else it was given up meanwhile
                        callout.announcement = evolve(callout.announcement, audio_url=f"{AUDIO_PATH}/{name}")
                callout.is_spoken = True
        finally:
            self._end(callout, is_failure=True)  # before the place is free, so that the next callout sees the breaker
            self._cancelled.pop(scope, None)
            self._places.release_on_behalf_of(scope)
            ended.set()

    def _is_stuck(self) -> bool:
        """Whether every place is taken by a voice that resists cancellation."""
        long_ago = trio.current_time() - STUCK_SECONDS
        return sum(since <= long_ago for since in self._cancelled.values()) >= VOICES_AT_ONCE

    def _end(self, callout: Callout, *, is_failure: bool) -> None:
        """End a callout silently. Does nothing after its end."""
        if not callout.is_open:
            return
        now = self._end_ms(callout)
        end = voice_failed if is_failure else voice_dropped
        callout.decision = end(callout.decision, self.history, now)
        self._remember(callout.decision.history)
        callout.announcement = evolve(
            callout.announcement,
            payload=callout.decision.payload,
            voice_failed_ms=now if is_failure else None,
            voice_dropped_ms=None if is_failure else now,
            ended_seq=self._next_seq(),
        )

    def _remember(self, history: History) -> None:
        if history is not self.history:
            self.history = history
            self.changed.set()
            self.changed = trio.Event()

    def _announcement(self, event: MissionEvent, decision: Decision, now: int) -> Announcement:
        return Announcement(event=event, payload=decision.payload, at_ms=now, policy_seq=self._next_seq())

    def _next_seq(self) -> int:
        self._last_seq += 1
        return self._last_seq

    def _end_ms(self, callout: Callout) -> int:
        return self._clock_ms() if callout.uses_clock else callout.announcement.at_ms


def _log_failure(error: BaseException) -> None:
    report(log, "a voice failed", error, logging.WARNING)  # without the message, which may quote the callout
