"""The watchdog of a turn: it ends a turn that has been silent, or has run, for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.events import InterruptReason

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.turn import Turn


@enable_ki_protection
async def watch(turn: Turn, limits: Limits) -> None:
    started = trio.current_time()
    time_is_up = started + limits.turn_timeout
    while True:
        # A turn that waited in the queue has been silent for long, and no fault of its own.
        silent_too_long = max(started, turn.last_activity) + limits.stall_timeout
        now = trio.current_time()
        if now >= time_is_up:
            turn.stop(InterruptReason.TIMEOUT)
            return
        if now >= silent_too_long:
            turn.stop(InterruptReason.STALLED)
            return
        await trio.sleep_until(min(time_is_up, silent_too_long))
