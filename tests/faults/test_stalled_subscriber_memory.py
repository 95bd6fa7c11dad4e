"""A stalled subscriber uses no more memory than its limits allow, however many events it misses.

`test_faults_subscribers` tests that it slows down no other subscriber, and that others miss nothing.
"""

from __future__ import annotations

import tracemalloc

from footlights import BudgetConfig, Limits, open_stage
from footlights.testing.faults import stalled_subscriber
from footlights_actors import Flood, ScriptedModel, standard_cast

LIMITS = Limits(best_effort_max_events_per_turn=256, max_bytes_per_turn_queue=100_000)
PER_EVENT = 200
"""More bytes than Python needs for one waiting delta."""


async def weigh(tokens: int) -> int:
    """Bytes that lie in the outbox of a subscriber that never reads, after so many tokens."""
    async with open_stage(
        standard_cast(ScriptedModel(lambda prompt: [Flood("word ", tokens)]), budget=BudgetConfig(dialogue_max=tokens)),
        limits=LIMITS,
    ) as stage:
        session = stage.start()
        async with stalled_subscriber(session) as stalled:
            tracemalloc.start()
            await session.finalize(session.begin_turn("Talk.")).wait()
            queues = [tracemalloc.Filter(True, "*/lane.py"), tracemalloc.Filter(True, "*/outbox.py")]
            found = tracemalloc.take_snapshot().filter_traces(queues).statistics("filename")
            tracemalloc.stop()
            assert stalled.statistics().best_effort_waiting == 256
            assert stalled.statistics().best_effort_dropped == tokens - 256
            return sum(each.size for each in found)


async def test_ten_thousand_tokens_behind_cost_no_more_than_the_limits_allow() -> None:
    assert await weigh(10_000) < 256 * PER_EVENT
