"""Worlds of a host's own that break the rules: each fails a turn closed, and the stage goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights import CommitFinal, Intent, IntentType, TurnParams, open_stage
from footlights.authority import accept, digest, patch
from footlights.testing import only, take_turn
from footlights_actors import standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights import InteractionContext, InteractionSession
    from footlights.authority import PatchOp, Ruling


class Purse:
    """A world of one number, which behaves."""

    def __init__(self, coins: int = 0) -> None:
        self.coins = coins

    def view(self) -> Purse:
        return self

    def changed(self, changes: tuple[PatchOp, ...]) -> Purse:
        return type(self)(self.coins + len(changes))

    def digest(self) -> str:
        return digest({"coins": self.coins})


class ChangesInPlace(Purse):
    def changed(self, changes: tuple[PatchOp, ...]) -> Purse:
        self.coins += len(changes)
        return self


class ChangesInPlaceAndCopies(Purse):
    def changed(self, changes: tuple[PatchOp, ...]) -> Purse:
        self.coins += len(changes)
        return Purse(self.coins)


class CannotBeDigestedOnceChanged(Purse):
    def digest(self) -> str:
        if self.coins:
            raise SystemExit
        return super().digest()


class HasNoDigestOnceChanged(Purse):
    def digest(self) -> str:
        return "lava" if self.coins else super().digest()


def pay(world: Purse, intents: tuple[Intent, ...]) -> Ruling:
    return accept(*(patch.add("/coins", 1) for _ in intents))


class Paying:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, "a coin"))


async def paid(session: InteractionSession) -> CommitFinal:
    return only(await take_turn(session, "Pay.", TurnParams(workload="pay")), CommitFinal)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize(
    "make_world",
    [ChangesInPlace, ChangesInPlaceAndCopies, CannotBeDigestedOnceChanged, HasNoDigestOnceChanged],
    ids=lambda each: each.__name__,
)
async def test_a_world_that_breaks_the_rules_fails_its_turn_and_the_stage_goes_on(
    make_world: Callable[[], Purse], durable: bool, tmp_path: Path
) -> None:
    cast = standard_cast(world=make_world(), rules={"pay": pay}, workloads={"pay": Paying()})
    async with open_stage(cast, ledger=tmp_path / "inn.ledger" if durable else None) as stage:
        for session in (stage.start(), stage.start()):
            commit = await paid(session)
            assert [issue.code for issue in commit.issues] == ["world_error"]


async def test_a_rule_that_changes_the_world_it_sees_fails_its_turn() -> None:
    def steal(world: Purse, intents: tuple[Intent, ...]) -> Ruling:
        world.coins += 100
        return accept()

    cast = standard_cast(world=Purse(), rules={"steal": steal}, workloads={"pay": Paying()})
    async with open_stage(cast) as stage:
        commit = await paid(stage.start())
        assert [issue.code for issue in commit.issues] == ["world_error"]


async def test_a_world_that_breaks_later_fails_every_turn_from_then_on() -> None:
    class Breaking(Purse):
        digests_left = 6

        def digest(self) -> str:
            Breaking.digests_left -= 1
            if Breaking.digests_left < 0:
                raise ValueError("it held what somebody said")
            return super().digest()

    cast = standard_cast(world=Breaking(), rules={"pay": pay}, workloads={"pay": Paying()})
    async with open_stage(cast) as stage:
        session = stage.start()
        commits = [await paid(session) for _ in range(3)]
    assert [[issue.code for issue in commit.issues] for commit in commits][-2:] == [["world_error"]] * 2
    assert "somebody" not in str(commits[-1].issues)


async def test_a_world_that_behaves_is_not_blamed() -> None:
    cast = standard_cast(world=Purse(), rules={"pay": pay}, workloads={"pay": Paying()})
    async with open_stage(cast) as stage:
        session = stage.start()
        assert [(await paid(session)).issues for _ in range(3)] == [()] * 3
        assert stage.world.coins == 3
