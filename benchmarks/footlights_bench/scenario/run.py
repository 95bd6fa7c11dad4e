"""Plays a scenario against a system, and watches.

Turns begin when they are due, each in a task of its own, however many are still waiting for an answer: what is late
because the system stalled is late in the figures, too. All times count from the plan, none from when a task of the
harness happened to run.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import Factory, define, frozen

from footlights.errors import FootlightsError
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.plan import Arrival, number_of_turns, plan
from footlights_bench.scenario.tally import Marks, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from footlights_bench.scenario.system import Depths, Player, System
    from footlights_bench.scenario.terms import Metric, Scenario

_SAMPLES = 60
_RARELY = 50


class Show(Protocol):
    """Tells somebody who waits how far a run is."""

    def __call__(self, doing: str, done: float, total: float) -> None: ...


def show_nothing(doing: str, done: float, total: float) -> None:
    """For those who do not wait."""


@frozen(kw_only=True)
class Sample:
    """How things stood at one moment, in seconds after the start. The numbers of what happened are since the start."""

    at: float
    begun: int
    finished: int
    failed: int
    events: int
    open_turns: int
    depths: Depths | None


@frozen(kw_only=True)
class Observed:
    """All that was seen of a run."""

    tally: Tally
    samples: Sequence[Sample]
    lag: Histogram
    """How late the harness itself was to begin turns, after the warm-up. It is part of their latencies."""
    baseline: Mapping[Metric, Histogram] | None
    """Of turns that were played alone, before."""
    gaps: int
    """Events that stalled clients did not get, or got joined to others."""
    turned_away: int
    """Stalled clients that were not let in, or not let back in."""
    cuts: int


@define
class _Counts:
    begun: int = 0
    finished: int = 0
    failed: int = 0
    events: int = 0
    gaps: int = 0
    turned_away: int = 0
    cuts: int = 0


@define(eq=False)
class _Seat:
    """A player, and what is known of the turns of its session."""

    player: Player
    marks: dict[str, Marks] = Factory(dict[str, Marks])
    lost: str | None = None
    """Why nothing is heard any more."""

    def of(self, turn_id: str) -> Marks:
        """Events may come before the answer that says which turn they belong to."""
        return self.marks.setdefault(turn_id, Marks())

    def lose(self, code: str) -> None:
        self.lost = code
        for marks in self.marks.values():
            marks.is_over.set()
            marks.is_settled.set()


async def observe(scenario: Scenario, system: System, show: Show = show_nothing) -> Observed:
    """Play the whole scenario. Raises `FootlightsError` if it cannot begin."""
    baseline = await _play_alone(scenario, system, show) if scenario.wants_baseline else None
    tally = Tally(planned=number_of_turns(scenario.load), warm_up=scenario.load.warm_up)
    async with AsyncExitStack() as stack:
        seats = [_Seat(await stack.enter_async_context(system.open_player())) for _ in range(scenario.load.sessions)]
        house = _House(scenario, system, seats, tally, show)
        await house.play(plan(scenario))
    counts = house.counts
    return Observed(
        tally=tally,
        samples=house.samples,
        lag=house.lag,
        baseline=baseline,
        gaps=counts.gaps,
        turned_away=counts.turned_away,
        cuts=counts.cuts,
    )


async def _play_alone(scenario: Scenario, system: System, show: Show) -> Mapping[Metric, Histogram]:
    """Turns of one player, each after the one before, every other one canceled if any are."""
    tally = Tally(planned=scenario.baseline_turns, warm_up=0.0)
    async with system.open_player() as player:
        house = _House(scenario, system, [_Seat(player)], tally, show)
        await house.play_one_by_one(scenario.baseline_turns)
    return tally.histograms


class _House:
    def __init__(self, scenario: Scenario, system: System, seats: Sequence[_Seat], tally: Tally, show: Show) -> None:
        self._scenario = scenario
        self._system = system
        self._seats = seats
        self._tally = tally
        self._show = show
        self._start = trio.current_time()
        self._last_due = 0.0
        """When the last turn of the load is due. A turn that is played alone waits for no other."""
        self.counts = _Counts()
        self.lag = Histogram()
        self.samples: list[Sample] = []

    async def play(self, arrivals: Iterable[Arrival]) -> None:
        load, trouble = self._scenario.load, self._scenario.trouble
        async with trio.open_nursery() as watching:
            for seat in self._seats:
                watching.start_soon(self._follow, seat, name="player")
            for number in range(trouble.stalled_clients):
                watching.start_soon(self._stall, self._seats[number % len(self._seats)], name="stalled client")
            self._start = trio.current_time()
            self._last_due = load.warm_up + load.duration
            self._note_sample()  # before a first burst, which no rate would show otherwise
            watching.start_soon(self._sample, self._last_due)
            async with trio.open_nursery() as turns:
                await self._begin_when_due(arrivals, turns)
            self._note_sample()
            watching.cancel_scope.cancel(reason="all turns are over")

    async def play_one_by_one(self, number: int) -> None:
        trouble = self._scenario.trouble
        async with trio.open_nursery() as watching:
            watching.start_soon(self._follow, self._seats[0], name="player")
            for each in range(number):
                self._show("alone", each, number)
                now = self._now()
                cancel_due = now + trouble.cancel_after if trouble.cancel_share and each % 2 else None
                await self._play(Arrival(number=each, player=0, due=now, cancel_due=cancel_due))
            watching.cancel_scope.cancel(reason="all turns are over")

    async def _begin_when_due(self, arrivals: Iterable[Arrival], turns: trio.Nursery) -> None:
        for arrival in arrivals:
            if self._now() < arrival.due:  # a burst is begun at once, not one by one as the loop comes round
                await trio.sleep_until(self._start + arrival.due)
            self.counts.begun += 1
            if arrival.due >= self._scenario.load.warm_up:
                self.lag.record(self._now() - arrival.due)
            turns.start_soon(self._play, arrival, name="turn")
            if arrival.cut_due is not None:
                turns.start_soon(self._cut, arrival, name="cut")

    async def _play(self, arrival: Arrival) -> None:
        seat = self._seats[arrival.player]
        marks, turn_id, failure = Marks(), None, seat.lost
        until = max(arrival.due, self._last_due) + self._scenario.load.patience
        try:
            with trio.move_on_at(self._start + until):
                if failure is None:
                    turn_id = await seat.player.begin_turn(self._scenario.turn.says)
                    marks = seat.of(turn_id)
                    await self._cancel_when_due(arrival, seat, turn_id, marks)
                    await marks.is_settled.wait()
                    failure = seat.lost
        except FootlightsError as error:
            failure = error.code
        if turn_id is not None:
            del seat.marks[turn_id]
        self._tally.add(arrival, marks, failure)
        self.counts.finished += 1
        self.counts.failed = self._tally.failed

    async def _cancel_when_due(self, arrival: Arrival, seat: _Seat, turn_id: str, marks: Marks) -> None:
        if arrival.cancel_due is None:
            return
        with trio.move_on_at(self._start + arrival.cancel_due):
            await marks.is_over.wait()
        if not marks.is_over.is_set():
            await seat.player.cancel(turn_id)

    async def _cut(self, arrival: Arrival) -> None:
        assert arrival.cut_due is not None
        await trio.sleep_until(self._start + arrival.cut_due)
        self.counts.cuts += 1
        await self._seats[arrival.player].player.cut()

    # -- those who watch

    async def _follow(self, seat: _Seat) -> None:
        try:
            while True:
                batch = await seat.player.receive_batch()
                now = self._now()
                self.counts.events += len(batch)
                for event in batch:
                    seat.of(event.turn_id).see(event, now)
        except FootlightsError as error:
            seat.lose(error.code)

    async def _stall(self, seat: _Seat) -> None:
        try:
            async with seat.player.open_audience() as client:
                while True:
                    await trio.sleep(self._scenario.trouble.stall_seconds)
                    for event in await client.receive_batch():
                        for missed in event.payload.dropped_seq_ranges:
                            self.counts.gaps += missed.end_seq - missed.start_seq + 1
        except FootlightsError:
            self.counts.turned_away += 1

    async def _sample(self, total: float) -> None:
        while True:
            began = self._now()
            self._note_sample()
            warming = began < self._scenario.load.warm_up
            self._show("warming up" if warming else "measuring", min(began, total), total)
            # To look takes time: no more than a little of it. Turns that outlast the load by far are looked at rarely.
            await trio.sleep(max(max(total, began) / _SAMPLES, _RARELY * (self._now() - began)))

    def _note_sample(self) -> None:
        counts = self.counts
        self.samples.append(
            Sample(
                at=self._now(),
                begun=counts.begun,
                finished=counts.finished,
                failed=counts.failed,
                events=counts.events,
                open_turns=counts.begun - counts.finished,
                depths=self._system.depths(),
            )
        )

    def _now(self) -> float:
        return trio.current_time() - self._start
