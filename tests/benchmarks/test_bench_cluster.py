"""The cluster suite runs, and both ledgers get the same batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.conftest import QuickRun
    from tests.kit.postgres import Server

pytestmark = pytest.mark.cluster


def test_a_quick_run_prints_and_writes_every_figure(postgres: Server, quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("cluster")
    assert run.subjects == {f"commits, {number} to a batch" for number in (1, 64, 256)}
    assert run.aims == {(f"commits, {number} to a batch", "PostgreSQL / file") for number in (64, 256)}
    assert all(figure["value"] > 0 for figure in run.figures)
