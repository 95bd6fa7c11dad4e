"""Memory of an idle session and of an active turn: the allocations of many, divided by their number.

Bytes are those that Python allocates (tracemalloc), after a full collection. A finished session has played as many
turns as it keeps for replay. An active turn has emitted 200 tokens and is still open, with its tasks.
"""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from trio.testing import wait_all_tasks_blocked

from footlights import Limits, MemoryLedger, open_stage
from suites.lib.figures import Aim, Figure
from suites.lib.scripts import TOKENS_PER_TURN, cast_of, said_and_stalled, whole_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import InteractionSession
    from suites.core.suite import CoreScale

IDLE_SESSION = Aim("below", 10 * 1024)
ACTIVE_TURN = Aim("below", 64 * 1024)


async def measure_memory(scale: CoreScale) -> list[Figure]:
    tracemalloc.start()
    try:
        return [*await _weigh_sessions(scale.crowd), *await _weigh_turns(scale.crowd)]
    finally:
        tracemalloc.stop()


async def _weigh_sessions(count: int) -> list[Figure]:
    limits = Limits(replay_turns=4)
    # Commits that a ledger keeps are memory of the ledger, which has a limit of its own.
    ledger = MemoryLedger(max_records=1)
    async with open_stage(cast_of(whole_turn), ledger=ledger, limits=limits) as stage:
        await _play_a_turn([stage.start()])  # what the first turn makes once belongs to no session
        before = _allocated()
        sessions = [stage.start() for _ in range(count)]
        fresh = _allocated()
        for _ in range(limits.replay_turns):
            await _play_a_turn(sessions)
        finished = _allocated()
    subject = f"memory, each of {count:,} idle sessions"
    return [
        Figure(subject, "fresh", (fresh - before) / count, "bytes", IDLE_SESSION),
        Figure(subject, f"with {limits.replay_turns} turns to replay", (finished - before) / count, "bytes"),
    ]


async def _play_a_turn(sessions: Sequence[InteractionSession]) -> None:
    commits = [session.finalize(session.begin_turn("Go on.")) for session in sessions]
    for commit in commits:
        await commit.wait()
    await wait_all_tasks_blocked()


async def _weigh_turns(count: int) -> list[Figure]:
    async with open_stage(cast_of(said_and_stalled)) as stage, AsyncExitStack() as leaving:
        sessions = [stage.start() for _ in range(count)]
        streams = [await leaving.enter_async_context(session.subscribe()) for session in sessions]
        before = _allocated()
        for session in sessions:
            session.begin_turn("Go on.")
        await wait_all_tasks_blocked()
        unread = _allocated()
        for stream in streams:
            await stream.receive_batch()
        read = _allocated()
    subject = f"memory, each of {count:,} active turns"
    return [
        Figure(subject, f"{TOKENS_PER_TURN} tokens taken", (read - before) / count, "bytes", ACTIVE_TURN),
        Figure(subject, f"{TOKENS_PER_TURN} tokens waiting", (unread - before) / count, "bytes"),
    ]


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
