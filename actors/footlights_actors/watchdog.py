"""The watchdog of a turn: it ends a turn that has been silent, or has run, for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.events import InterruptReason
from footlights.lifecycle import TurnState

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.turn import Turn


@enable_ki_protection
async def watch(turn: Turn, limits: Limits) -> None:
    started = trio.current_time()
    time_is_up = started + limits.turn_timeout
    while True:
        now = trio.current_time()
        # A turn that waited, for its place or for its model, has been silent for long and by no fault of its own.
        silent_since = now if turn.waits_in_line else max(started, turn.last_activity)
        is_loading = turn.state in (TurnState.SELECTED, TurnState.LOADING)
        silent_too_long = silent_since + (limits.load_timeout if is_loading else limits.stall_timeout)
        if now >= time_is_up:
            turn.stop(InterruptReason.TIMEOUT)
            return
        if now >= silent_too_long:
            turn.stop(InterruptReason.STALLED)
            return
        await trio.sleep_until(min(time_is_up, silent_too_long, now + limits.stall_timeout))
