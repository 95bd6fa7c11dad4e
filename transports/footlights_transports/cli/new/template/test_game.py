"""The promises of this game. `pytest` runs them."""

from pathlib import Path
from typing import Any

import trio

from footlights import Cast, CommitFinal, CommitOutcome, TurnFinal, open_stage
from footlights.testing import Trial, cancel_everywhere, only, take_turn, witness
from footlights_transports import load_config

GAME = Path(__file__).with_name("game.toml")


def cast() -> Cast:
    return load_config(GAME).cast


def boat_and_purse(world: Any) -> tuple[str, int]:
    """What these tests are about: the world may hold more."""
    return world["boat"], world["purse"]


def test_a_crossing_moves_the_boat_and_costs_the_fare() -> None:
    async def cross_twice() -> None:
        async with open_stage(cast()) as stage:
            session = stage.start()
            events = await take_turn(session, "Take me to the south bank")
            assert "Watch your step" in only(events, TurnFinal).text
            assert boat_and_purse(stage.world) == ("south", 3)
            events = await take_turn(session, "To the south bank!")
            assert only(events, CommitFinal).issues[0].code == "already_there"
            assert boat_and_purse(stage.world) == ("south", 3)

    with witness():  # every stream is checked against the laws
        trio.run(cross_twice)


def test_a_cancel_at_any_moment_moves_the_boat_and_takes_the_fare_or_does_neither() -> None:
    async def cross(trial: Trial) -> None:
        async with open_stage(cast()) as stage:
            session = stage.start()
            trial.aim(session.cancel)
            commit = only(await take_turn(session, "Take me to the south bank"), CommitFinal)
            trial.disarm()
            crossed = commit.commit_outcome is CommitOutcome.OK
            assert boat_and_purse(stage.world) == (("south", 3) if crossed else ("north", 5))

    with witness():
        cancel_everywhere(cross)
