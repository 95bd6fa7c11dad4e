"""Benchmarks collect garbage before they measure: what the suite has imported is left out of that."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(autouse=True)
def small_heap() -> Generator[None]:
    gc.freeze()
    yield
    gc.unfreeze()
