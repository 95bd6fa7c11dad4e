"""A ledger of many thousand commits gives the same world again, also from its file alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from footlights.authority import CommitRecord, JsonWorld, SqliteLedger, patch, sealed
from footlights.events import CommitOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from footlights.authority import World

BATCH = 1_000
SESSIONS = 50
CHANGES_EVERY = 10


def _genesis() -> JsonWorld:
    return JsonWorld({f"place-{number}": 0 for number in range(7)})


def _batches(commits: int) -> Iterator[tuple[list[CommitRecord], World]]:
    """Every tenth commit changes the world."""
    world: World = _genesis()
    heads: dict[str, str] = {}
    records: list[CommitRecord] = []
    for number in range(1, commits + 1):
        changes = (patch.replace(f"/place-{number % 7}", number),) if number % CHANGES_EVERY == 0 else ()
        after = world.changed(changes) if changes else world
        record = sealed(
            CommitRecord(
                session_id=f"s1-{number % SESSIONS:06}",
                turn_id=f"t1-{number:06}",
                outcome=CommitOutcome.OK,
                issues=(),
                intents=(),
                verdicts=(),
                changes=changes,
                world_before=world.digest(),
                world_after=after.digest(),
                previous=heads.get(f"s1-{number % SESSIONS:06}"),
            )
        )
        world, heads[record.session_id] = after, record.commit_digest
        records.append(record)
        if len(records) == BATCH:
            yield records, world
            records = []


async def _write(path: Path, commits: int) -> World:
    world: World = _genesis()
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(world)
        for records, world in _batches(commits):
            await ledger.append(records, world)
    return world


@pytest.mark.shows("core-66")
@pytest.mark.parametrize("commits", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_thousands_of_commits_replay_to_the_same_world(commits: int, tmp_path: Path) -> None:
    path = tmp_path / "long.ledger"
    last = trio.run(_write, path, commits)
    command = [sys.executable, "-m", "footlights_transports", "replay", str(path)]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"identical: {last.digest()}" in done.stdout
    assert re.search(rf"{commits:,} commits in [0-9.]+ s, [0-9,]+ a second", done.stdout)
