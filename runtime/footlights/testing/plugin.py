"""Pytest plugin of the test kit. Put `pytest_plugins = ["footlights.testing.plugin"]` into your conftest.

- Every test runs under a witness, which checks each stream against the laws (`footlights_witness`).
- `quiet_clock` is a virtual clock for pytest-trio that jumps when no task is runnable and no worker thread is busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio.testing

from footlights.testing.witness import Witness, witness
from footlights_kit.quiesce import quiesced_threads

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(autouse=True)
def footlights_witness() -> Generator[Witness]:
    with witness() as watching:
        yield watching


@pytest.fixture
def quiet_clock() -> Generator[trio.testing.MockClock]:
    with quiesced_threads():
        yield trio.testing.MockClock(autojump_threshold=0)
