"""Memory blocks that an idle session holds, and a finished turn that is kept for replay.

The blocks of many are divided by their number, so the few blocks that come and go with other work are rounded away.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from trio.testing import wait_all_tasks_blocked

from footlights import MemoryLedger, open_stage
from suites.counts.meter import Count
from suites.counts.workloads import same_time
from suites.lib.scripts import cast_of, whole_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from suites.counts.meter import Meter

_CROWD = 40
_ROUNDS = 3

# Documented for leak hunting; the second name is that of Python 3.12 and earlier.
clear_caches: Callable[[], None] = (
    getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # pyright: ignore[reportPrivateUsage]
)

SESSION = "an idle session"
TURN = "a finished turn that is kept"


async def count_blocks(_meter: Meter) -> dict[str, dict[Count, int]]:
    found: dict[str, list[int]] = {SESSION: [], TURN: []}
    # Commits that a ledger keeps are memory of the ledger, which has a limit of its own.
    ledger = MemoryLedger(max_records=1)
    async with open_stage(cast_of(whole_turn), ledger=ledger, wall_clock=same_time) as stage:
        everyone = [stage.start()]
        await _play(everyone)
        for _ in range(_ROUNDS):
            before = _blocks()
            sessions = [stage.start() for _ in range(_CROWD)]
            fresh = _blocks()
            await _play(sessions)
            everyone += sessions
            played = _blocks()
            found[SESSION].append(round((fresh - before) / _CROWD))
            found[TURN].append(round((played - fresh) / _CROWD))
    # The minimum: another thread of this process may have allocated some meanwhile.
    return {subject: {Count.BLOCKS: min(blocks)} for subject, blocks in found.items()}


async def _play(sessions: list[InteractionSession]) -> None:
    for session in sessions:
        await session.finalize(session.begin_turn("Go on.")).wait()
    await wait_all_tasks_blocked()


def _blocks() -> int:
    # The interpreter's attribute cache keeps references to names that were built for a lookup.
    clear_caches()
    gc.collect()
    return sys.getallocatedblocks()
