"""Files that the runtime creates are readable by their owner only, whatever the umask is."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from footlights import open_stage
from footlights.testing import take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@pytest.fixture(autouse=True)
def generous_umask() -> Generator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_ledgers_and_traces_are_created_for_their_owner_alone(tmp_path: Path) -> None:
    cast = standard_cast(ScriptedModel(lambda _: [Say("Good evening.")]))
    async with open_stage(cast, ledger=tmp_path / "inn.ledger", trace=tmp_path) as stage:
        await take_turn(stage.start(), "A room?")
        while_open = modes(tmp_path)
    assert {"inn.ledger", "inn.ledger-wal", "inn.ledger-shm", "inn.ledger.lock"} <= set(while_open)
    assert {**while_open, **modes(tmp_path)} == dict.fromkeys({*while_open, "interaction_trace.jsonl"}, 0o600)


async def test_files_that_exist_keep_the_mode_that_they_were_given(tmp_path: Path) -> None:
    cast = standard_cast(ScriptedModel(lambda _: [Say("Good evening.")]))
    for name in ("inn.ledger", "inn.ledger.lock", "interaction_trace.jsonl"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o640)
    async with open_stage(cast, ledger=tmp_path / "inn.ledger", trace=tmp_path) as stage:
        await take_turn(stage.start(), "A room?")
    assert set(modes(tmp_path).values()) == {0o640}
