"""Growth suite: turns, pauses and tenths are counted correctly. Tests check no performance."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from footlights import Limits, MemoryLedger, open_stage
from footlights_bench.lib.machine import resident_bytes
from suites.growth.cost import time_turns
from suites.growth.crowd import AT_A_TIME, SHORT, TURNS_KEPT, Crowd, short_turn
from suites.growth.long_run import Tenth, figures_of, run_long
from suites.growth.pauses import recorded, stream
from suites.lib.scripts import cast_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import TurnSummary
    from tests.benchmarks.conftest import QuickRun

STREAMING = "garbage collection, 10 sessions streaming"
COST = "processor time of a turn, 20 tokens, 10 at a time, commits"
LONG_RUN = "1,000 turns in one stage, the last tenth / the first"
AIMS = {
    (STREAMING, "longest pause, as serve does it"),
    (f"{STREAMING}, 20 more open", "longest pause, as serve does it"),
    (f"{COST} in memory", "30 / 10"),
    (f"{COST} in SQLite", "30 / 10"),
    (LONG_RUN, "processor time of a turn, in turns of a fresh stage"),
    (LONG_RUN, "allocated blocks"),
    *({(LONG_RUN, "resident memory")} if resident_bytes() is not None else ()),
}


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("growth")
    assert run.aims == AIMS
    assert "1,000 of 1,000 turns" in run.err
    assert gc.get_freeze_count() == 0


async def test_a_crowd_plays_the_given_number_of_turns_at_most_ten_at_once() -> None:
    settled: list[TurnSummary] = []
    most = 0

    def note(summary: TurnSummary) -> None:
        nonlocal most
        settled.append(summary)
        most = max(most, stage.open_turns)

    async with open_stage(cast_of(short_turn), ledger=MemoryLedger(), observe=note) as stage:
        crowd = Crowd([stage.start() for _ in range(15)])
        await crowd.play(40)
        assert len(settled) == 40
        assert {each.output_tokens for each in settled} == {SHORT}
        assert 1 < most < AT_A_TIME


async def test_a_filled_crowd_keeps_as_many_turns_as_the_limit_allows() -> None:
    limits = Limits(replay_turns=2)
    async with open_stage(cast_of(short_turn), limits=limits) as stage:
        crowd = Crowd([stage.start() for _ in range(12)])
        await crowd.fill(limits)
        assert {session.statistics().turns_retained for session in crowd.sessions} == {2}


@pytest.mark.parametrize("durable", [False, True])
async def test_every_size_has_a_time_for_every_lap(durable: bool) -> None:
    costs = await time_turns((10, 12), laps=3, turns=10, durable=durable)
    assert [(cost.sessions, len(cost.seconds)) for cost in costs] == [(10, 3), (12, 3)]
    assert all(each > 0 for cost in costs for each in cost.seconds)


async def test_a_long_run_is_noted_at_every_tenth() -> None:
    tenths = await run_long(100)
    assert len(tenths) == 10
    assert all(each.seconds_per_turn > 0 and each.blocks > 0 for each in tenths)


def test_without_resident_memory_its_figure_is_left_out() -> None:
    assert resident_bytes("no-such-process") is None
    tenths = [Tenth(0.001, 1.0, 100, None), Tenth(0.002, 1.5, 110, None)]
    ratios = {figure.name: round(figure.value, 3) for figure in figures_of(20, tenths)}
    assert ratios == {
        "processor time of a turn, in turns of a fresh stage": 1.5,
        "processor time of a turn": 2.0,
        "allocated blocks": 1.1,
    }


def test_every_collection_is_recorded_with_its_generation() -> None:
    with recorded() as pauses:
        for generation in (0, 1, 2, 1):
            gc.collect(generation)
    gc.collect()
    assert [pause.generation for pause in pauses if pause.generation] == [1, 2, 1]
    assert all(pause.clock > 0 for pause in pauses)


async def test_sessions_stream_for_the_given_time(quiet_clock: object) -> None:
    before = 2 * TURNS_KEPT
    # A turn takes about three seconds, and never more than six.
    assert before + 3 <= await stream(streaming=3, silent=2, seconds=10.0)
    assert await stream(streaming=3, silent=2, seconds=0.0) == before
