"""Owner of a world: a program that opens a stage on a ledger in PostgreSQL, and commits as fast as it can.

It waits until the world is free, and prints a line for each commit that it is told: the outcome and the turn.

    python tests/cluster/owner.py URL LEASE
"""

from __future__ import annotations

import signal
import sys
from math import inf
from typing import TYPE_CHECKING, Any

import trio

from footlights import Busy, CommitUnknown, LedgerFenced, SessionClosed, open_stage
from footlights.authority import accept, every_turn, patch
from footlights.authority.ledger.address import parse_url
from footlights.authority.ledger.postgres.ledger import PostgresLedger
from footlights.authority.ledger.postgres.node import PostgresNode
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from footlights import Cast, Stage
    from footlights.authority import Ruling


def cast() -> Cast:
    def count(view: Any, _: object) -> Ruling:
        return accept(patch.replace("/counter", view["counter"] + 1))

    model = ScriptedModel(lambda _: [Say("One more.")])
    return standard_cast(model, world={"counter": 0}, rules={"count": every_turn(count)})


async def play(stage: Stage) -> None:
    session = stage.resume("ann")
    while True:
        try:
            commit = await session.finalize(session.begin_turn("Count!")).wait()
        except Busy:  # the lease is doubtful
            await trio.sleep(0.02)
        else:
            print(commit.commit_outcome.value, commit.commit_id, flush=True)


async def main(url: str, lease: float) -> None:
    place = parse_url(url)
    ledger = PostgresLedger(place, node=PostgresNode(place, lease=lease), patience=inf)
    with trio.open_signal_receiver(signal.SIGTERM) as signals, trio.CancelScope() as scope:

        async def obey() -> None:
            await anext(aiter(signals))
            scope.cancel()

        try:
            async with trio.open_nursery() as nursery, ledger, open_stage(cast(), ledger=ledger) as stage:
                nursery.start_soon(obey)
                print("open", stage.epoch, flush=True)
                await play(stage)
        except* (LedgerFenced, CommitUnknown, SessionClosed):
            print("fenced -", flush=True)
            scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], float(sys.argv[2]))
