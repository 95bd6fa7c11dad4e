"""Pytest plugin of the test kit. Put `pytest_plugins = ["footlights.testing.plugin"]` into your conftest.

Every test runs under a witness, which checks each stream against the laws (`footlights_witness`). The plugin of the
cancellation kit, `footlights_kit.plugin`, comes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights.testing.witness import Witness, witness

if TYPE_CHECKING:
    from collections.abc import Generator

pytest_plugins = ["footlights_kit.plugin"]


@pytest.fixture(autouse=True)
def footlights_witness() -> Generator[Witness]:
    with witness() as watching:
        yield watching
