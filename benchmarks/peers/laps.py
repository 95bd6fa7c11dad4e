"""Laps of a race: the entrants alternate, and the first place rotates.

Because laps alternate, other load on the machine affects all entrants alike. A warm-up that does not count decides how
many turns a lap of an entrant has, so that the laps of all take about as long.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

from attrs import Factory, define, frozen

from peers.entrants import OURS, Entrant, Skipped
from peers.kit import Cancelled, Manner, Played, Weight
from peers.peer_process import PeerFailed, PeerProcess, open_peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

MANNERS: tuple[Manner, ...] = ("yielding", "flooding")


@frozen(kw_only=True)
class Pace:
    laps: int
    lap_seconds: float
    warm_up_turns: int
    cancels_per_lap: int
    open_turns: int
    """Of the lap that weighs them."""


FULL = Pace(laps=9, lap_seconds=0.5, warm_up_turns=10, cancels_per_lap=30, open_turns=50)
QUICK = Pace(laps=3, lap_seconds=0.1, warm_up_turns=2, cancels_per_lap=5, open_turns=10)


@frozen
class TurnsLap:
    turns: int
    played: Played

    @property
    def turns_per_second(self) -> float:
        return self.turns / self.played.seconds

    @property
    def turns_per_cpu_second(self) -> float:
        return self.turns / self.played.cpu_seconds


@define
class Record:
    """All laps of one entrant."""

    entrant: Entrant
    packages: dict[str, str]
    turns: dict[Manner, list[TurnsLap]] = Factory(lambda: {manner: [] for manner in MANNERS})
    cancels: list[Cancelled] = Factory(list[Cancelled])
    weight: Weight | None = None


class _Runner:
    """One entrant in the race."""

    def __init__(self, peer: PeerProcess, entrant: Entrant) -> None:
        self._peer = peer
        self._turns_per_lap: dict[Manner, int] = {}
        self.record = Record(entrant, peer.packages)

    async def warm_up(self, pace: Pace) -> None:
        for manner in MANNERS:
            lap = await self._play(pace.warm_up_turns, manner)
            self._turns_per_lap[manner] = max(1, round(pace.lap_seconds * lap.turns_per_second))
        await self._cancel(pace.cancels_per_lap)

    async def run_turns(self, manner: Manner) -> None:
        self.record.turns[manner].append(await self._play(self._turns_per_lap[manner], manner))

    async def run_cancels(self, pace: Pace) -> None:
        self.record.cancels.append(await self._cancel(pace.cancels_per_lap))

    async def weigh(self, pace: Pace) -> None:
        self.record.weight = Weight(**await self._peer.order(do="memory", count=pace.open_turns))

    async def _play(self, turns: int, manner: Manner) -> TurnsLap:
        return TurnsLap(turns, Played(**await self._peer.order(do="turns", count=turns, manner=manner)))

    async def _cancel(self, turns: int) -> Cancelled:
        return Cancelled(**await self._peer.order(do="cancel", count=turns))


async def run_race(
    entrants: Sequence[Entrant], pace: Pace, say: Callable[[str], None]
) -> tuple[list[Record], list[Skipped]]:
    """Records of the entrants that finished, and the entrants that failed. Raises PeerFailed if Footlights fails."""
    failed: list[Skipped] = []
    async with AsyncExitStack() as leaving:
        runners: list[_Runner] = []
        for entrant in entrants:
            with _may_fail(entrant, failed):
                peer = await leaving.enter_async_context(open_peer(entrant.name, entrant.command))
                runners.append(_Runner(peer, entrant))
        say("warming up")
        runners = await _each(runners, failed, lambda runner: runner.warm_up(pace))
        for lap in range(pace.laps):
            say(f"lap {lap + 1} of {pace.laps}")
            runners = await _each(_rotated(runners), failed, lambda runner: runner.run_turns("yielding"))
            runners = await _each(runners, failed, lambda runner: runner.run_turns("flooding"))
            runners = await _each(runners, failed, lambda runner: runner.run_cancels(pace))
        say("weighing open turns")
        runners = await _each(runners, failed, lambda runner: runner.weigh(pace))
    records = {runner.record.entrant: runner.record for runner in runners}
    return [records[entrant] for entrant in entrants if entrant in records], failed


async def _each(
    runners: Sequence[_Runner], failed: list[Skipped], run: Callable[[_Runner], Awaitable[None]]
) -> list[_Runner]:
    """The runners that are still in the race afterwards."""
    left: list[_Runner] = []
    for runner in runners:
        with _may_fail(runner.record.entrant, failed):
            await run(runner)
            left.append(runner)
    return left


@contextmanager
def _may_fail(entrant: Entrant, failed: list[Skipped]) -> Generator[None, None, None]:
    try:
        yield
    except PeerFailed as error:
        if entrant.name == OURS:
            raise
        failed.append(Skipped(entrant.name, str(error)))


def _rotated(runners: list[_Runner]) -> list[_Runner]:
    return runners[1:] + runners[:1]
