"""Run of a scenario: plays the plan against a system and records what happens.

Turns begin when they are due, each in a task of its own, however many are still waiting for an answer. So a stall of
the system makes every turn late that was due in it. All times count from the plan, not from when a task of the harness
was scheduled.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define, frozen

from footlights.errors import FootlightsError
from footlights_bench.lib.progress import ignore_progress
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.plan import Arrival, number_of_turns, plan
from footlights_bench.scenario.tally import Marks, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from footlights_bench.lib.progress import ShowProgress
    from footlights_bench.scenario.definition import Metric, Scenario
    from footlights_bench.scenario.systems.protocol import Depths, Player, System

_SAMPLES = 60
_PAUSE_PER_SAMPLE = 50  # times the duration of taking it


@frozen(kw_only=True)
class Sample:
    """The state of a run at one moment, in seconds after the start. Numbers of events and turns are totals."""

    at: float
    begun: int
    finished: int
    failed: int
    events: int
    open_turns: int
    depths: Depths | None


@define(eq=False, kw_only=True)
class Observed:
    """Everything that was recorded of a run."""

    tally: Tally
    baseline: Mapping[Metric, Histogram] | None = None
    """Latencies of the turns that were played alone before the load."""
    samples: list[Sample] = Factory(list[Sample])
    lag: Histogram = Factory(Histogram)
    """How late the harness began turns after the warm-up. It is part of their latencies."""
    begun: int = 0
    finished: int = 0
    events: int = 0
    gaps: int = 0
    """Events that stalled clients did not receive, or received joined to others."""
    turned_away: int = 0
    """Stalled clients that the system refused."""
    cuts: int = 0


@define(eq=False)
class _PlayerState:
    """A player, and the marks of the open turns of its session."""

    player: Player
    marks: dict[str, Marks] = Factory(dict[str, Marks])
    lost: str | None = None
    """The error code of its stream, if the stream has ended."""

    def of(self, turn_id: str) -> Marks:
        """The marks of a turn. Its events may come before the reply that names it."""
        return self.marks.setdefault(turn_id, Marks())

    def lose(self, code: str) -> None:
        self.lost = code
        for marks in self.marks.values():
            marks.is_over.set()
            marks.is_settled.set()


async def observe(scenario: Scenario, system: System, show: ShowProgress = ignore_progress) -> Observed:
    """Play the whole scenario. Raises `FootlightsError` if it cannot begin."""
    baseline = await _play_alone(scenario, system, show) if scenario.wants_baseline else None
    tally = Tally(planned=number_of_turns(scenario.load), warm_up=scenario.load.warm_up)
    observed = Observed(tally=tally, baseline=baseline)
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(system.open_player()) for _ in range(scenario.load.sessions)]
        states = [_PlayerState(player) for player in players]
        await _Run(scenario, system, states, observed, show).play(plan(scenario))
    return observed


async def _play_alone(scenario: Scenario, system: System, show: ShowProgress) -> Mapping[Metric, Histogram]:
    """Play turns of one player, one after the other. With cancels in the scenario, every other one is cancelled."""
    observed = Observed(tally=Tally(planned=scenario.baseline_turns, warm_up=0.0))
    async with system.open_player() as player:
        await _Run(scenario, system, [_PlayerState(player)], observed, show).play_one_by_one(scenario.baseline_turns)
    return observed.tally.histograms


class _Run:
    def __init__(
        self, scenario: Scenario, system: System, states: Sequence[_PlayerState], observed: Observed, show: ShowProgress
    ) -> None:
        self._scenario = scenario
        self._system = system
        self._states = states
        self._observed = observed
        self._show = show
        self._start = trio.current_time()
        self._last_due = 0.0
        """When the last turn of the load is due; 0 for turns that are played alone, which wait for no other."""

    async def play(self, arrivals: Iterable[Arrival]) -> None:
        load, trouble = self._scenario.load, self._scenario.trouble
        async with trio.open_nursery() as watching:
            for state in self._states:
                watching.start_soon(self._follow, state, name="player")
            for number in range(trouble.stalled_clients):
                watching.start_soon(self._stall, self._states[number % len(self._states)], name="stalled client")
            self._start = trio.current_time()
            self._last_due = load.warm_up + load.duration
            self._sample()  # before a first burst, which would be in no rate otherwise
            watching.start_soon(self._keep_sampling, self._last_due)
            async with trio.open_nursery() as turns:
                await self._begin_when_due(arrivals, turns)
            self._sample()
            watching.cancel_scope.cancel(reason="all turns are over")

    async def play_one_by_one(self, number: int) -> None:
        trouble = self._scenario.trouble
        async with trio.open_nursery() as watching:
            watching.start_soon(self._follow, self._states[0], name="player")
            for each in range(number):
                self._show("alone", each, number)
                now = self._now()
                cancel_due = now + trouble.cancel_after if trouble.cancel_share and each % 2 else None
                await self._play(Arrival(number=each, player=0, due=now, cancel_due=cancel_due))
            watching.cancel_scope.cancel(reason="all turns are over")

    async def _begin_when_due(self, arrivals: Iterable[Arrival], turns: trio.Nursery) -> None:
        for arrival in arrivals:
            if self._now() < arrival.due:  # no checkpoint between the turns of a burst
                await trio.sleep_until(self._start + arrival.due)
            self._observed.begun += 1
            if arrival.due >= self._scenario.load.warm_up:
                self._observed.lag.record(self._now() - arrival.due)
            turns.start_soon(self._play, arrival, name="turn")
            if arrival.cut_due is not None:
                turns.start_soon(self._cut, arrival.player, arrival.cut_due, name="cut")

    async def _play(self, arrival: Arrival) -> None:
        state = self._states[arrival.player]
        marks, turn_id, failure = Marks(), None, state.lost
        until = max(arrival.due, self._last_due) + self._scenario.load.patience
        try:
            with trio.move_on_at(self._start + until):
                if failure is None:
                    turn_id = await state.player.begin_turn(self._scenario.turn.says)
                    marks = state.of(turn_id)
                    await self._cancel_when_due(arrival, state, turn_id, marks)
                    await marks.is_settled.wait()
                    failure = state.lost
        except FootlightsError as error:
            failure = error.code
        if turn_id is not None:
            del state.marks[turn_id]
        self._observed.tally.add(arrival, marks, failure)
        self._observed.finished += 1

    async def _cancel_when_due(self, arrival: Arrival, state: _PlayerState, turn_id: str, marks: Marks) -> None:
        if arrival.cancel_due is None:
            return
        with trio.move_on_at(self._start + arrival.cancel_due):
            await marks.is_over.wait()
        if not marks.is_over.is_set():
            await state.player.cancel(turn_id)

    async def _cut(self, player: int, due: float) -> None:
        await trio.sleep_until(self._start + due)
        self._observed.cuts += 1
        await self._states[player].player.cut()

    # -- background tasks

    async def _follow(self, state: _PlayerState) -> None:
        try:
            while True:
                batch = await state.player.receive_batch()
                now = self._now()
                self._observed.events += len(batch)
                for event in batch:
                    state.of(event.turn_id).see(event, now)
        except FootlightsError as error:
            state.lose(error.code)

    async def _stall(self, state: _PlayerState) -> None:
        try:
            async with state.player.open_audience() as client:
                while True:
                    await trio.sleep(self._scenario.trouble.stall_seconds)
                    for event in await client.receive_batch():
                        for missed in event.payload.dropped_seq_ranges:
                            self._observed.gaps += missed.end_seq - missed.start_seq + 1
        except FootlightsError:
            self._observed.turned_away += 1

    async def _keep_sampling(self, total: float) -> None:
        while True:
            began = self._now()
            self._sample()
            warming = began < self._scenario.load.warm_up
            self._show("warming up" if warming else "measuring", min(began, total), total)
            # Sampling takes little of the time, and is rare while turns outlast the load.
            await trio.sleep(max(max(total, began) / _SAMPLES, _PAUSE_PER_SAMPLE * (self._now() - began)))

    def _sample(self) -> None:
        seen = self._observed
        seen.samples.append(
            Sample(
                at=self._now(),
                begun=seen.begun,
                finished=seen.finished,
                failed=seen.tally.failed,
                events=seen.events,
                open_turns=seen.begun - seen.finished,
                depths=self._system.depths(),
            )
        )

    def _now(self) -> float:
        return trio.current_time() - self._start
