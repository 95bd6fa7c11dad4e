"""Run of a scenario: plays the plan against a system and records what happens.

Turns begin when they are due, each in a task of its own, however many are still waiting for an answer. So a stall of
the system makes every turn late that was due in it. All times count from the plan, not from when a task of the harness
was scheduled.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from math import inf
from typing import TYPE_CHECKING

import trio
import trio.lowlevel
from attrs import Factory, define, frozen

from footlights.errors import FootlightsError
from footlights_bench.lib.progress import ignore_progress
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.parts import Delays, Part, of_probes
from footlights_bench.scenario.plan import Arrival, number_of_turns, plan
from footlights_bench.scenario.self_check import SelfCheck
from footlights_bench.scenario.tally import Marks, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from footlights_bench.lib.progress import ShowProgress
    from footlights_bench.scenario.definition import Scenario
    from footlights_bench.scenario.self_check import Checked
    from footlights_bench.scenario.systems.protocol import Depths, Player, System

_SAMPLES = 60
_PAUSE_PER_SAMPLE = 50  # times the duration of taking it
_PROBE_EVERY = 0.1
_TROUBLES_KEPT = 20
_LONG_PAUSE = 0.1

INTERRUPTED = "it was interrupted"
SERVER_GONE = "the server is gone"
HOPELESS = "a target cannot be met any more"


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
    delays: Delays = Factory(Delays)
    round_trips: list[float] = Factory(list[float])
    """Of the probes."""
    checked: Checked | None = None
    troubles: list[str] = Factory(list[str])
    """What the first errors said, each once."""
    aborted: str | None = None
    """Why the run ended before its plan."""

    @property
    def parts(self) -> Mapping[Part, Histogram]:
        """The parts of the wait of the turns that did not fail."""
        probed = of_probes(self.round_trips) if self.round_trips else {}
        if self.checked is not None and self.checked.shares_loop:
            probed = {Part.LOOP: self.checked.pauses}
        found = {**probed, **self.tally.parts, Part.DELIVERY: self.delays.histogram()}
        return {part: found[part] for part in Part if part in found and found[part].count}

    def note_trouble(self, said: str) -> None:
        if said not in self.troubles and len(self.troubles) < _TROUBLES_KEPT:
            self.troubles.append(said)


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


async def observe(
    scenario: Scenario,
    system: System,
    show: ShowProgress = ignore_progress,
    *,
    stop: trio.Event | None = None,
    fail_fast: bool = False,
    cpu_seconds: Callable[[], float] = time.process_time,
) -> Observed:
    """Play the whole scenario, or until `stop` is set. Raises `FootlightsError` if it cannot begin.

    With `fail_fast` it ends when a target cannot be met any more.
    """
    baseline = await _play_alone(scenario, system, show) if scenario.wants_baseline else None
    tally = Tally(
        planned=number_of_turns(scenario.load),
        warm_up=scenario.load.warm_up,
        duration=scenario.load.duration,
        bounds=bounds_of(scenario, baseline),
    )
    observed = Observed(tally=tally, baseline=baseline)
    check = SelfCheck(cpu_seconds)
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(system.open_player()) for _ in range(scenario.load.sessions)]
        states = [_PlayerState(player) for player in players]
        await _Run(scenario, system, states, observed, show, check).play(plan(scenario), stop, fail_fast=fail_fast)
    observed.checked = check.checked(shares_loop=system.shares_loop)
    return observed


def bounds_of(scenario: Scenario, baseline: Mapping[Metric, Histogram] | None) -> dict[Metric, float]:
    """The least bound of each metric, in seconds."""
    found: dict[Metric, float] = {}
    for target in scenario.targets:
        if isinstance(target.metric, Metric):
            bound = inf if target.at_most_ms is None else target.at_most_ms / 1e3
            if target.at_most_ratio is not None and baseline is not None:
                bound = target.at_most_ratio * baseline[target.metric].percentile(50)
            found[target.metric] = min(bound, found.get(target.metric, inf))
    return found


async def _play_alone(scenario: Scenario, system: System, show: ShowProgress) -> Mapping[Metric, Histogram]:
    """Play turns of one player, one after the other. With cancels in the scenario, every other one is cancelled."""
    observed = Observed(tally=Tally(planned=scenario.baseline_turns, warm_up=0.0))
    async with system.open_player() as player:
        run = _Run(scenario, system, [_PlayerState(player)], observed, show, SelfCheck())
        await run.play_one_by_one(scenario.baseline_turns)
    return observed.tally.histograms


class _Run:
    def __init__(
        self,
        scenario: Scenario,
        system: System,
        states: Sequence[_PlayerState],
        observed: Observed,
        show: ShowProgress,
        check: SelfCheck,
    ) -> None:
        self._scenario = scenario
        self._system = system
        self._states = states
        self._observed = observed
        self._show = show
        self._check = check
        self._beginning = trio.CancelScope()
        self._start = trio.current_time()
        self._last_due = 0.0
        """When the last turn of the load is due; 0 for turns that are played alone, which wait for no other."""

    async def play(self, arrivals: Iterable[Arrival], stop: trio.Event | None, *, fail_fast: bool) -> None:
        load, trouble = self._scenario.load, self._scenario.trouble
        async with trio.open_nursery() as watching:
            for state in self._states:
                watching.start_soon(self._follow, state, name="player")
            for number in range(trouble.stalled_clients):
                watching.start_soon(self._stall, self._states[number % len(self._states)], name="stalled client")
            self._start = trio.current_time()
            self._last_due = load.warm_up + load.duration
            self._sample()  # before a first burst, which would be in no rate otherwise
            watching.start_soon(self._keep_sampling, self._last_due, fail_fast)
            watching.start_soon(self._check.watch)
            watching.start_soon(self._begin_check, load.warm_up)
            watching.start_soon(self._probe)
            async with trio.open_nursery() as turns:
                if stop is not None:
                    watching.start_soon(self._stop_when, stop, turns.cancel_scope)
                with self._beginning:
                    await self._begin_when_due(arrivals, turns)
            self._check.end()
            self._sample()
            watching.cancel_scope.cancel(reason="all turns are over")

    def _abort(self, reason: str) -> None:
        """Begin no more turns."""
        if self._observed.aborted is None and self._now() < self._last_due:
            self._observed.aborted = reason
            self._beginning.cancel(reason=reason)

    async def _stop_when(self, stop: trio.Event, turns: trio.CancelScope) -> None:
        await stop.wait()
        self._observed.aborted = INTERRUPTED
        turns.cancel(reason=INTERRUPTED)

    async def _begin_check(self, warm_up: float) -> None:
        await trio.sleep_until(self._start + warm_up)
        self._check.begin()

    async def _probe(self) -> None:
        """Measure round trips, if the system has a probe. One that fails is the last: the players tell why."""
        try:
            async with self._system.open_probe() as probe:
                while probe is not None:
                    began = trio.current_time()
                    await probe.ping()
                    if self._now() >= self._scenario.load.warm_up:
                        self._observed.round_trips.append(trio.current_time() - began)
                    await trio.sleep_until(began + _PROBE_EVERY)
        except FootlightsError as error:
            self._observed.note_trouble(_told(error))

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
        state, observed, check = self._states[arrival.player], self._observed, self._check
        marks, turn_id, failure = Marks(), None, state.lost
        until = max(arrival.due, self._last_due) + self._scenario.load.patience
        begun_late, paused = self._now() - arrival.due, check.paused
        in_time = self._now() <= until
        try:
            if failure is None and in_time:
                with trio.move_on_at(self._start + until):
                    turn_id = await state.player.begin_turn(arrival.said)
                    marks = state.of(turn_id)
                    await self._cancel_when_due(arrival, state, turn_id, marks)
                    await marks.is_settled.wait()
                await self._wait_out_pauses(marks, until)
                failure = state.lost
        except FootlightsError as error:
            failure = error.code
            observed.note_trouble(_told(error))
        if marks.error is not None:
            observed.note_trouble(marks.error)
        observed.finished += 1
        if turn_id is not None:
            del state.marks[turn_id]
        elif failure is None and not (in_time and check.paused - paused < _LONG_PAUSE):
            check.never_begun += 1  # the harness had no time for it, and not the server
            return
        if (record := observed.tally.add(arrival, marks, failure)) is not None:
            seen = (record.accepted, record.first_token, record.ended, record.committed)
            late = [check.lateness_at(None if each is None else self._start + each) for each in seen]
            check.lateness.record(max(begun_late, *late))

    async def _wait_out_pauses(self, marks: Marks, until: float) -> None:
        """If the harness stood still, the turn gets the time in which it could not be seen."""
        allowed = 0.0
        while not marks.is_settled.is_set():
            await trio.lowlevel.checkpoint()  # so that the watch has noticed a pause that has just ended
            if self._check.paused <= allowed:
                return
            allowed = self._check.paused
            with trio.move_on_at(self._start + until + allowed):
                await marks.is_settled.wait()

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
                    self._observed.delays.note(now, event.mono_ts_ms)
        except FootlightsError as error:
            self._observed.note_trouble(_told(error))
            state.lose(error.code)
            if all(each.lost is not None for each in self._states):
                self._abort(SERVER_GONE)

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

    async def _keep_sampling(self, total: float, fail_fast: bool) -> None:
        while True:
            began = self._now()
            self._sample()
            if fail_fast and self._is_hopeless():
                self._abort(HOPELESS)
            warming = began < self._scenario.load.warm_up
            self._show("warming up" if warming else "measuring", min(began, total), total)
            # Sampling takes little of the time, and is rare while turns outlast the load.
            await trio.sleep(max(max(total, began) / _SAMPLES, _PAUSE_PER_SAMPLE * (self._now() - began)))

    def _is_hopeless(self) -> bool:
        """Whether more turns are over a bound than a target leaves out of all that are planned."""
        tally = self._observed.tally
        return any(
            tally.histograms[target.metric].above(target.at_most_ms / 1e3)
            > tally.planned * (1 - target.percentile / 100)
            for target in self._scenario.targets
            if isinstance(target.metric, Metric) and target.at_most_ms is not None and target.percentile is not None
            if target.metric is not Metric.INTER_TOKEN
        )

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


def _told(error: FootlightsError) -> str:
    return f"{error.code}: {error}"
