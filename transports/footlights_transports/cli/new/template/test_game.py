"""The promises of this game. `pytest` runs them."""

from pathlib import Path

import trio

from footlights import Cast, CommitFinal, CommitOutcome, TurnFinal, open_stage
from footlights.testing import Trial, cancel_everywhere, only, take_turn, witness
from footlights_transports import load_config

GAME = Path(__file__).with_name("game.toml")


def cast() -> Cast:
    return load_config(GAME).cast


def test_a_crossing_moves_the_boat_and_costs_the_fare() -> None:
    async def cross_twice() -> None:
        async with open_stage(cast()) as stage:
            session = stage.start()
            events = await take_turn(session, "Take me to the south bank")
            assert "Watch your step" in only(events, TurnFinal).text
            assert stage.world == {"boat": "south", "purse": 3}
            events = await take_turn(session, "To the south bank!")
            assert only(events, CommitFinal).issues[0].code == "already_there"
            assert stage.world == {"boat": "south", "purse": 3}

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
            assert stage.world == ({"boat": "south", "purse": 3} if crossed else {"boat": "north", "purse": 5})

    with witness():
        cancel_everywhere(cross)
