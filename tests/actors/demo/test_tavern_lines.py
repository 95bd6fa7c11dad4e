"""Lines that players typed, each in a turn of its own with its commit: no wrong purchase, and the right one where due.

The lines and what may be bought with them were written from the menu alone, without sight of the script.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from footlights import CommitOutcome, open_stage
from footlights.authority import pending_approvals
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.understanding import understand
from footlights_actors.demo.tavern.wishes import Order
from footlights_actors.demo.tavern.world import opening_hour

FILES = sorted(Path(__file__).parent.glob("tavern_lines*.jsonl"))
LINES = [json.loads(line) for file in FILES for line in file.read_text().splitlines()]


def price_of(rooms: list[str], dishes: dict[str, int]) -> int:
    world = opening_hour()
    rent = sum(world["rooms"][room]["price"] for room in rooms)
    return rent + sum(world["menu"][dish] * count for dish, count in dishes.items())


@pytest.mark.parametrize("labelled", LINES, ids=[each["line"][:40] for each in LINES])
async def test_what_is_bought_is_what_the_line_asked_for(labelled: dict[str, Any]) -> None:
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as stage:
        session = stage.start()
        commit = await session.finalize(session.begin_turn(labelled["line"])).wait()
        world = stage.world
    due = labelled["buys"]
    rented = [key for key, room in world["rooms"].items() if room["guest"] == "the traveller"]
    assert rented == due["rooms"]
    assert 20 - world["purse"] == price_of(due["rooms"], due["dishes"])
    assert "lantern" not in world
    assert bool(pending_approvals(world)) is due["lantern"]
    if not labelled["nothing_bought"]:
        assert commit.commit_outcome is CommitOutcome.OK
        dishes = {act.dish: act.count for act in understand(labelled["line"]).acts if isinstance(act, Order)}
        assert dishes == due["dishes"]
