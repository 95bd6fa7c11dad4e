"""The world suite runs, and measures what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import JsonWorld
from suites.world.suite import even, odd_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.conftest import QuickRun


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("world")
    worlds = ["1,000 bytes", "100,000 bytes", "wide", "deep", "long"]
    kinds = [(rules, writers) for rules in (1, 5) for writers in (1, 8, 64)]
    races = {f"{each}, {rules} rules, {writers} writers" for each in worlds for rules, writers in kinds}
    assert run.subjects == {*worlds, *races, "all"}
    assert all(figure["value"] > 0 for figure in run.figures)


def test_an_even_world_has_its_size() -> None:
    for size in (10_000, 100_000, 1_000_000):
        assert 0.9 < JsonWorld(even(size).document).root.size / size < 1.4
    assert all(JsonWorld(each.document).root.height == 2 for each in odd_shapes(100, 100))
