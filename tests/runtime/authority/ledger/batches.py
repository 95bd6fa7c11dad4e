"""Batches of commits that a ledger accepts: each commit adds a note to a world that is an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import JsonWorld, JudgeRequest, RuleBook, accept, every_turn, judge, patch

if TYPE_CHECKING:
    from footlights.authority import CommitRecord, World

EMPTY = JsonWorld([])
_NOTES = RuleBook({"note": every_turn(lambda world, intents: accept(patch.add("/-", "noted")))})


def batch(world: World, *turn_ids: str, previous: str | None = None) -> tuple[list[CommitRecord], World]:
    """A commit of the session `s` for each turn, and the world after them."""
    records: list[CommitRecord] = []
    for turn_id in turn_ids:
        judgement = judge(JudgeRequest("s", turn_id, None), world, _NOTES, previous)
        records.append(judgement.record)
        previous, world = judgement.record.commit_digest, judgement.world
    return records, world
