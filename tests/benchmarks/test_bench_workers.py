"""Workers suite: a quick run measures what it says. Tests check no performance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.conftest import QuickRun


@pytest.mark.long  # a server is started with one process, and then with two workers
def test_a_quick_run_measures_worlds_and_workers(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("workers")
    assert run.subjects == {"5 worlds in one process", "8 turns of 100 tokens in 4 worlds"}
    assert {each["name"]: each["aim"]["bound"] for each in run.figures if each["aim"]} == {
        "two workers, times the CPU of one process": 1.15,
        "CPU of a token, that the router adds": 5,
    }
