"""Run of a scenario against a fake server with known latencies and a virtual clock."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import evolve

from footlights.errors import Busy, SessionClosed
from footlights.events import (
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    Issue,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights_bench.lib.machine import this_machine
from footlights_bench.scenario import run as scenario_run
from footlights_bench.scenario.definition import (
    Arrivals,
    Load,
    Metric,
    Said,
    Scenario,
    SystemKind,
    Target,
    Trouble,
    TurnShape,
)
from footlights_bench.scenario.files import find_scenario, read_scenario, shipped
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.parts import Part
from footlights_bench.scenario.plan import number_of_turns, plan
from footlights_bench.scenario.result import result_of
from footlights_bench.scenario.run import HOPELESS, INTERRUPTED, SERVER_GONE, observe
from footlights_bench.scenario.systems.protocol import Depths

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from trio.testing import MockClock

    from footlights_bench.lib.progress import ShowProgress


class FakePlayer:
    """Its turns take as long as the server defines. While the server stalls, it answers nothing."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._send, self._receive = trio.open_memory_channel[StreamEvent](10_000)
        self._cancels: dict[str, trio.CancelScope] = {}

    async def begin_turn(self, said: str) -> str:
        if not self._server.forgets:
            self._server.begun_in.append(self._server.passes.count)
        await self._server.wait_out_stall()
        number = self._server.turns
        self._server.turns += 1
        if number in self._server.refuses:
            raise Busy("Not now.")
        turn_id = f"t{number}"
        self._cancels[turn_id] = trio.CancelScope()
        self._server.nursery.start_soon(self._play, turn_id, self._server.seconds(number))
        return turn_id

    async def cancel(self, turn_id: str) -> None:
        await self._server.wait_out_stall()
        if turn_id in self._cancels and turn_id not in self._server.deaf_to:
            self._cancels[turn_id].cancel()

    async def receive_batch(self) -> Sequence[StreamEvent]:
        event = await self._receive.receive()
        if event.turn_id in self._server.ends_after:
            raise SessionClosed("Gone.")
        return [event]

    async def cut(self) -> None:
        await trio.lowlevel.checkpoint()
        self._server.cuts += 1

    @asynccontextmanager
    async def open_audience(self) -> AsyncGenerator[FakeAudience]:
        if self._server.is_full:
            raise Busy("Not now.")
        yield FakeAudience()

    async def _play(self, turn_id: str, seconds: float) -> None:
        self._say(turn_id, EventType.TURN_ACCEPTED, TurnAccepted())
        with self._cancels[turn_id]:
            await trio.sleep(seconds / 2)
            self._say(turn_id, EventType.TOKEN_DELTA, TokenDelta("x", 0))
            await trio.sleep(seconds / 2)
        if self._cancels[turn_id].cancelled_caught:
            self._say(turn_id, EventType.TURN_INTERRUPTED, TurnInterrupted(InterruptReason.CANCELED))
        elif reason := self._server.interrupts.get(turn_id):
            self._say(turn_id, EventType.TURN_INTERRUPTED, TurnInterrupted(reason))
        else:
            self._say(turn_id, EventType.TURN_FINAL, TurnFinal("x"))
        await trio.sleep(self._server.commit_seconds)
        issues = self._server.issues.get(turn_id, ())
        outcome = CommitOutcome.FAIL_CLOSED if issues else CommitOutcome.OK
        self._say(turn_id, EventType.COMMIT_FINAL, CommitFinal("d", outcome, issues))
        if self._server.forgets:
            del self._cancels[turn_id]

    def _say(self, turn_id: str, kind: EventType, payload: Payload) -> None:
        self._send.send_nowait(StreamEvent(SCHEMA_V, "s", turn_id, 0, int(1e3 * trio.current_time()), kind, payload))


class FakeAudience:
    async def receive_batch(self) -> Sequence[StreamEvent]:
        await trio.lowlevel.checkpoint()
        payload = TokenDelta("x", 0, dropped_seq_ranges=(SeqRange(1, 4),))
        return [StreamEvent(SCHEMA_V, "s", "t", 0, 0, EventType.TOKEN_DELTA, payload)]

    async def cut(self) -> None:
        raise AssertionError("The run never cuts a stalled client.")


class Passes(trio.abc.Instrument):
    """Counts the iterations of the event loop."""

    count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += 1


class FakeServer:
    name = "a fake"
    shares_loop = False

    def __init__(self, nursery: trio.Nursery, seconds: Callable[[int], float] = lambda number: 0.1) -> None:
        self.nursery = nursery
        self.seconds = seconds
        self.commit_seconds = 0.0
        self.turns = 0
        self.cuts = 0
        self.is_full = False
        self.answers_probes = False
        self.pings = 0
        self.forgets = False
        """Whether it forgets turns that are over."""
        self.passes = Passes()
        self.begun_in: list[int] = []
        self.refuses: set[int] = set()
        self.ends_after: set[str] = set()
        self.deaf_to: set[str] = set()
        self.interrupts: dict[str, InterruptReason] = {}
        self.issues: dict[str, tuple[Issue, ...]] = {}
        self.stall: tuple[float, float] = (0.0, 0.0)
        self._born = trio.current_time()

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[FakePlayer]:
        yield FakePlayer(self)

    def depths(self) -> Depths | None:
        return Depths(1, 2, 3)

    def open_probe(self) -> AbstractAsyncContextManager[FakeServer | None]:
        return nullcontext(self if self.answers_probes else None)

    async def ping(self) -> None:
        await trio.sleep(0.004 if self.pings % 10 else 0.002)
        self.pings += 1

    async def wait_out_stall(self) -> None:
        await trio.lowlevel.checkpoint()
        begin, end = self.stall
        if begin <= trio.current_time() - self._born < end:
            await trio.sleep_until(self._born + end)


SCENARIO = Scenario(
    name="test",
    load=Load(sessions=4, turns_per_second=10.0, arrivals=Arrivals.CONSTANT, duration=10.0, warm_up=2.0),
    turn=TurnShape(),
    trouble=Trouble(),
    targets=(),
)


@pytest.fixture
async def server(nursery: trio.Nursery) -> FakeServer:
    return FakeServer(nursery)


def of_load(**changes: Any) -> Scenario:
    return evolve(SCENARIO, load=evolve(SCENARIO.load, **changes))


def near(seconds: float) -> object:
    return pytest.approx(seconds, rel=2e-3)


async def test_a_known_distribution_is_measured(server: FakeServer, quiet_clock: MockClock) -> None:
    # The first 20 are for the warm-up; of the others 1 of 10 takes 2 seconds.
    server.seconds = lambda number: 9.0 if number < 20 else 2.0 if number % 10 == 0 else 0.2
    server.commit_seconds = 0.5
    observed = await observe(SCENARIO, server)
    assert (observed.tally.turns, observed.tally.in_warm_up, observed.tally.failed) == (100, 20, 0)
    latencies = observed.tally.histograms
    assert latencies[Metric.ACCEPT].percentile(100) == 0
    assert latencies[Metric.FIRST_TOKEN].percentile(50) == near(0.1)
    assert latencies[Metric.FINAL].percentile(90) == near(0.2)
    assert latencies[Metric.FINAL].percentile(90.1) == near(2.0)
    assert latencies[Metric.COMMIT].percentile(100) == near(2.5)
    assert latencies[Metric.CANCEL].count == 0


async def test_a_stall_counts_against_every_turn_that_was_due_in_it(server: FakeServer, quiet_clock: MockClock) -> None:
    server.stall = (5.0, 10.0)
    latencies = (await observe(SCENARIO, server)).tally.histograms[Metric.ACCEPT]
    # Due at 5.0, 5.1 ... 9.9: the first waits for 5 seconds, the last for a tenth of one. That is half of all turns.
    assert latencies.count == 100
    assert latencies.percentile(50) == 0
    assert latencies.percentile(51) == near(0.1)
    assert latencies.percentile(75) == near(2.5)
    assert latencies.percentile(100) == near(5.0)


async def test_the_lag_of_the_harness_is_recorded_and_part_of_the_latencies(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    server.seconds = lambda number: 0.0

    def hold_up_the_loop(doing: str, done: float, total: float) -> None:
        if 6.0 <= done < 6.1:
            quiet_clock.jump(2.0)

    observed = await observe(SCENARIO, server, hold_up_the_loop)
    latencies = observed.tally.histograms[Metric.ACCEPT]
    assert observed.lag.percentile(100) == latencies.percentile(100)
    assert 1.8 < observed.lag.percentile(100) <= 2.01
    assert observed.lag.percentile(50) == latencies.percentile(50) == 0


async def test_the_lag_of_the_warm_up_is_left_out(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 0.0

    def hold_up_the_loop(doing: str, done: float, total: float) -> None:
        if 0.5 <= done < 0.7:
            quiet_clock.jump(1.0)

    observed = await observe(SCENARIO, server, hold_up_the_loop)
    assert observed.lag.count == observed.tally.turns == 100
    assert observed.lag.percentile(100) == observed.tally.histograms[Metric.ACCEPT].percentile(100) == 0


async def test_a_closed_loop_would_hide_the_stall(server: FakeServer, quiet_clock: MockClock) -> None:
    server.stall = (5.0, 10.0)
    server.seconds = lambda number: 0.0
    closed_loop = Histogram()
    async with server.open_player() as player:
        for _ in range(70):
            asked = trio.current_time()
            await player.begin_turn("Go on.")
            closed_loop.record(trio.current_time() - asked)
            await trio.sleep(0.125)
    assert closed_loop.percentile(98) == 0
    assert closed_loop.percentile(100) == near(5.0)


async def test_a_cancel_counts_from_when_it_was_due(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 3.0
    server.stall = (4.0, 5.0)
    scenario = evolve(SCENARIO, trouble=Trouble(cancel_share=1.0, cancel_after=0.5))
    observed = await observe(scenario, server)
    latencies = observed.tally.histograms
    assert observed.tally.outcomes == {"canceled": 100}
    # Turns that were due within the stall, and cancels that were: the cancel of one due at 4.0 was due at 4.5.
    assert latencies[Metric.CANCEL].percentile(85) == 0
    assert latencies[Metric.CANCEL].percentile(100) == near(1.0)
    assert latencies[Metric.FINAL].count == latencies[Metric.COMMIT].count == 0


async def test_a_cancel_after_the_end_of_a_turn_does_not_count(server: FakeServer, quiet_clock: MockClock) -> None:
    scenario = evolve(SCENARIO, trouble=Trouble(cancel_share=1.0, cancel_after=0.5))
    observed = await observe(scenario, server)
    assert observed.tally.outcomes == {"final": 100}
    assert observed.tally.histograms[Metric.CANCEL].count == 0


async def test_an_ignored_cancel_counts_until_the_turn_ends_by_itself(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    server.seconds = lambda number: 3.0
    server.deaf_to = {f"t{number}" for number in range(20, 120, 10)}
    scenario = evolve(SCENARIO, trouble=Trouble(cancel_share=1.0, cancel_after=0.5))
    observed = await observe(scenario, server)
    latencies = observed.tally.histograms
    assert observed.tally.outcomes == {"canceled": 90, "final": 10}
    assert latencies[Metric.CANCEL].count == 100
    assert latencies[Metric.CANCEL].percentile(90) == 0
    assert latencies[Metric.CANCEL].percentile(91) == near(2.5)
    assert latencies[Metric.FINAL].count == 0


async def test_cancels_of_slow_turns_do_not_improve_the_latencies(server: FakeServer, quiet_clock: MockClock) -> None:
    # Half of them are over before their player would cancel.
    server.seconds = lambda number: 3.0 if number % 2 else 0.2
    impatient = evolve(SCENARIO, trouble=Trouble(cancel_share=0.9, cancel_after=0.5))
    patient = {arrival.number for arrival in plan(impatient) if arrival.cancel_due is None and arrival.due >= 2.0}
    slow = sum(number % 2 for number in patient)
    latencies = (await observe(impatient, server)).tally.histograms
    assert latencies[Metric.ACCEPT].count == 100
    assert 0 < slow < len(patient)
    for metric, seconds in ((Metric.FIRST_TOKEN, 1.5), (Metric.FINAL, 3.0), (Metric.COMMIT, 3.0)):
        assert latencies[metric].count == len(patient)
        assert sum(number for latency, number in latencies[metric] if latency == near(seconds)) == slow


async def test_failed_turns_are_slower_than_any_other(server: FakeServer, quiet_clock: MockClock) -> None:
    server.refuses = set(range(20, 25))
    server.interrupts = {f"t{number}": InterruptReason.MODEL_ERROR for number in range(25, 30)}
    tally = (await observe(SCENARIO, server)).tally
    assert tally.outcomes == {"busy": 5, "model_error": 5, "final": 90}
    assert tally.failed == 10
    for metric in (Metric.FINAL, Metric.COMMIT):
        assert tally.histograms[metric].percentile(90) == near(0.1)
        assert tally.histograms[metric].percentile(91) == float("inf")
    assert tally.histograms[Metric.ACCEPT].failed == 5
    assert [record.outcome for record in tally.shown if record.is_failed] == ["busy"] * 5 + ["model_error"] * 5


async def test_a_turn_that_fails_before_its_cancel_is_a_failed_cancel(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    server.refuses = set(range(20, 25))
    server.interrupts = {f"t{number}": InterruptReason.MODEL_ERROR for number in range(25, 30)}
    scenario = evolve(SCENARIO, trouble=Trouble(cancel_share=1.0, cancel_after=5.0))
    assert (await observe(scenario, server)).tally.histograms[Metric.CANCEL].failed == 10


async def test_a_turn_that_another_client_cancels_has_failed(server: FakeServer, quiet_clock: MockClock) -> None:
    server.interrupts = {"t30": InterruptReason.CANCELED}
    assert (await observe(SCENARIO, server)).tally.outcomes == {"final": 99, "canceled_elsewhere": 1}


@pytest.mark.parametrize("name", shipped())
async def test_failing_turns_miss_a_target_of_every_included_scenario(
    name: str, server: FakeServer, quiet_clock: MockClock
) -> None:
    # They are accepted, say something, and stop at once when they are told to; the others never get to their end.
    server.seconds = lambda number: 2.0
    server.interrupts = {f"t{number}": InterruptReason.MODEL_ERROR for number in range(10_000)}
    scenario = read_scenario(find_scenario(name))
    short = evolve(scenario, load=evolve(scenario.load, duration=5.0, warm_up=0.0))
    observed = await observe(short, server)
    result = result_of(short, SystemKind.STAGE, server.name, [("now", observed)], this_machine(), quick=False)
    assert result.missed


async def test_an_unwritten_commit_is_a_failure_and_a_refused_one_is_not(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    server.issues = {
        "t30": (Issue("no_such_room", "There is none."), Issue("ledger_unavailable", "It could not write.")),
        "t31": (Issue("no_such_room", "There is none."),),
    }
    tally = (await observe(SCENARIO, server)).tally
    assert tally.outcomes == {"final": 99, "ledger_unavailable": 1}
    assert tally.histograms[Metric.COMMIT].failed == 1


async def test_a_turn_that_outlasts_the_patience_has_failed(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 1_000.0 if number == 50 else 0.1
    observed = await observe(of_load(patience=5.0), server)
    assert observed.tally.outcomes == {"final": 99, "unfinished": 1}
    assert trio.current_time() - server._born == near(12.0 + 5.0)


async def test_turns_of_a_player_whose_stream_ended_have_failed(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 5.0
    server.ends_after = {"t40"}
    observed = await observe(of_load(sessions=1), server)
    # It is lost at 4.0, when the fortieth is accepted; those from the warm-up are no matter.
    assert observed.tally.outcomes == {"session_closed": 21}
    assert observed.aborted == SERVER_GONE
    assert observed.troubles == ["session_closed: Gone."]


async def test_open_turns_and_queues_are_sampled_over_time(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 0.05
    samples = (await observe(SCENARIO, server)).samples
    assert samples[0].at == 0
    assert samples[-1].at == near(11.95)
    assert [sample.at for sample in samples] == sorted(sample.at for sample in samples)
    assert (samples[-1].begun, samples[-1].finished, samples[-1].open_turns) == (120, 120, 0)
    assert max(sample.open_turns for sample in samples) == 1
    assert samples[-1].events == 120 * 4
    assert samples[0].depths == Depths(1, 2, 3)


async def test_a_burst_at_the_start_is_between_two_samples(server: FakeServer, quiet_clock: MockClock) -> None:
    samples = (await observe(of_load(arrivals=Arrivals.BURSTS, burst=10), server)).samples
    assert (samples[0].begun, samples[1].begun) == (0, 10)


async def test_a_short_load_with_long_turns_has_few_samples(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 100.0
    samples = (await observe(of_load(duration=0.1, warm_up=0.0, patience=200.0), server)).samples
    assert samples[-1].at == near(100.0)
    assert len(samples) < 600


async def test_a_long_run_takes_no_more_memory_than_a_short_one(server: FakeServer, quiet_clock: MockClock) -> None:
    trouble = Trouble(cancel_share=0.2, cancel_after=0.05, cut_share=0.1, stalled_clients=2)
    # Trio forgets deadlines that are no more when there are a thousand.
    ours = [tracemalloc.Filter(True, f"{Path(scenario_run.__file__).parent}/*")]

    async def held_halfway(duration: float) -> int:
        held: list[int] = []

        def weigh(doing: str, done: float, total: float) -> None:
            if done > total / 2 and not held:
                gc.collect()
                held.append(sum(each.size for each in tracemalloc.take_snapshot().filter_traces(ours).traces))

        long = of_load(arrivals=Arrivals.BURSTS, burst=25, turns_per_second=100.0, duration=duration, warm_up=0.0)
        tracemalloc.start()
        observed = await observe(evolve(long, trouble=trouble), server, weigh)
        tracemalloc.stop()
        assert observed.tally.turns == 100 * duration
        return held[0]

    server.forgets = True
    await held_halfway(1.0)  # what is made once
    # Six hundred turns more. If each was planned beforehand, or kept, it would take a hundred bytes and more.
    assert await held_halfway(7.0) < await held_halfway(1.0) + 40_000


async def test_cuts_and_stalled_clients_are_counted(server: FakeServer, quiet_clock: MockClock) -> None:
    trouble = Trouble(cut_share=1.0, cut_after=0.0, stalled_clients=5, stall_seconds=3.5)
    observed = await observe(evolve(SCENARIO, trouble=trouble), server)
    assert observed.cuts == server.cuts == 120
    assert observed.gaps == 5 * 3 * 4
    assert observed.turned_away == 0


async def test_refused_stalled_clients_are_counted(server: FakeServer, quiet_clock: MockClock) -> None:
    server.is_full = True
    observed = await observe(evolve(SCENARIO, trouble=Trouble(stalled_clients=3)), server)
    assert (observed.turned_away, observed.tally.failed) == (3, 0)


async def test_a_burst_is_begun_at_once(server: FakeServer, quiet_clock: MockClock) -> None:
    trio.lowlevel.add_instrument(server.passes)
    await observe(of_load(arrivals=Arrivals.BURSTS, burst=40), server)
    first, second = server.begun_in[:40], server.begun_in[40:80]
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] < second[0]


async def test_a_baseline_is_played_alone_and_before(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 1.0 if number < 6 else 0.5
    target = Target(name="slow", metric=Metric.FINAL, percentile=50, at_most_ratio=2.0)
    trouble = Trouble(cancel_share=0.5, cancel_after=0.25)
    scenario = evolve(SCENARIO, targets=[target], baseline_turns=6, trouble=trouble)
    told: list[str] = []
    observed = await observe(scenario, server, lambda doing, done, total: told.append(doing))
    assert observed.baseline is not None
    assert (observed.baseline[Metric.FINAL].count, observed.baseline[Metric.CANCEL].count) == (3, 3)
    assert observed.baseline[Metric.FINAL].percentile(50) == near(1.0)
    assert list(dict.fromkeys(told)) == ["alone", "warming up", "measuring"]
    # Without cancels, none of them is.
    await observe(evolve(scenario, trouble=Trouble()), server)


async def test_a_hanging_baseline_turn_is_given_up_after_the_patience(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    server.seconds = lambda number: 1_000.0
    target = Target(name="slow", metric=Metric.FINAL, percentile=50, at_most_ratio=2.0)
    began_at: dict[str, float] = {}

    def note(doing: str, done: float, total: float) -> None:
        began_at.setdefault(doing, trio.current_time())

    await observe(evolve(of_load(patience=5.0), targets=[target], baseline_turns=3), server, note)
    assert began_at["warming up"] - began_at["alone"] == near(3 * 5.0)


# -- the plan


@pytest.mark.parametrize("arrivals", Arrivals)
def test_the_same_seed_gives_the_same_plan(arrivals: Arrivals) -> None:
    scenario = evolve(of_load(arrivals=arrivals, burst=5), trouble=Trouble(cancel_share=0.5, cut_share=0.5))
    assert list(plan(scenario)) == list(plan(scenario))
    dues = [arrival.due for arrival in plan(scenario)]
    assert number_of_turns(scenario.load) == len(dues)
    assert dues == sorted(dues)
    assert dues[0] >= 0
    assert dues[-1] < 12.0
    assert 60 <= len(dues) <= 180
    assert 0 < sum(arrival.cancel_due is not None for arrival in plan(scenario)) < len(dues)


def test_another_seed_gives_another_plan() -> None:
    random = of_load(arrivals=Arrivals.POISSON)
    assert list(plan(random)) != list(plan(evolve(random, load=evolve(random.load, seed=2))))


def test_a_burst_is_due_at_once() -> None:
    dues = [arrival.due for arrival in plan(of_load(arrivals=Arrivals.BURSTS, burst=40))]
    assert dues == [0.0] * 40 + [4.0] * 40 + [8.0] * 40


def test_players_begin_turns_one_after_the_other() -> None:
    assert [arrival.player for arrival in plan(SCENARIO)][:6] == [0, 1, 2, 3, 0, 1]


# -- what the harness says about itself


def stopping(clock: MockClock, seconds: float) -> ShowProgress:
    """Stops the whole process once, in the middle of a run."""
    stops = [6.0]

    def show(phase: str, done: float, total: float) -> None:
        if stops and done >= stops[0]:
            stops.clear()
            clock.jump(seconds)

    return show


async def test_a_harness_that_stood_still_says_so_and_blames_nobody(server: FakeServer, quiet_clock: MockClock) -> None:
    stand_still = stopping(quiet_clock, 2.0)

    seen = await observe(evolve(SCENARIO, load=evolve(SCENARIO.load, patience=1.0)), server, stand_still)
    assert seen.tally.failed == 0
    assert seen.checked is not None
    assert seen.checked.pauses.percentile(100) == pytest.approx(2.0, rel=0.02)
    assert seen.checked.lateness.percentile(90) > 0.5
    assert seen.checked.lateness.percentile(50) < 0.01


async def test_a_turn_that_was_never_begun_is_no_failure(server: FakeServer, quiet_clock: MockClock) -> None:
    stand_still = stopping(quiet_clock, 60.0)
    seen = await observe(of_load(patience=5.0), server, stand_still)
    assert seen.checked is not None
    assert seen.checked.never_begun > 50
    assert seen.tally.failed == 0


async def test_the_processor_time_of_the_harness_is_a_share_of_the_measurement(
    server: FakeServer, quiet_clock: MockClock
) -> None:
    seen = await observe(SCENARIO, server, cpu_seconds=lambda: 0.5 * trio.current_time())
    assert seen.checked is not None
    assert seen.checked.cpu == pytest.approx(0.5)


# -- parts, tokens and shares


async def test_the_parts_of_a_turn_add_up_to_its_time(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds, server.commit_seconds = lambda number: 0.2, 0.05
    server.answers_probes = True
    parts = (await observe(SCENARIO, server)).parts
    assert parts[Part.QUEUE].percentile(50) == near(0.1)  # until its first token: it selects no model
    assert parts[Part.SPEECH].percentile(50) == near(0.1)
    assert parts[Part.COMMIT].percentile(50) == near(0.05)
    assert parts[Part.NETWORK].percentile(50) == near(0.002)
    assert parts[Part.LOOP].percentile(50) == near(0.002)
    assert parts[Part.DELIVERY].percentile(99) < 0.002
    assert Part.TOOL not in parts


async def test_goodput_is_counted_over_the_run(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 0.1 if number < 70 else 1.0  # the first 20 are the warm-up
    soon = Target(name="soon", metric=Metric.FINAL, percentile=50, at_most_ms=500)
    tally = (await observe(evolve(SCENARIO, targets=[soon]), server)).tally
    assert tally.due == [10] * 10
    assert tally.good == [10] * 5 + [0] * 5


def test_a_ramp_changes_the_rate_evenly() -> None:
    load = of_load(turns_per_second=10.0, ramp_to=30.0, duration=10.0, warm_up=2.0).load
    dues = [each.due for each in plan(evolve(SCENARIO, load=load))]
    per_second = [sum(second <= due < second + 1 for due in dues) for second in range(12)]
    assert per_second[:2] == [10, 10]
    assert per_second[2] == pytest.approx(11, abs=1)
    assert per_second[11] == pytest.approx(29, abs=1)
    assert len(dues) == pytest.approx(20 + 200, abs=1)


def test_what_is_said_is_chosen_by_weight() -> None:
    turn = TurnShape(says=(Said("rare"), Said("often", 9.0)))
    said = [each.said for each in plan(evolve(of_load(duration=1_000.0), turn=turn))]
    assert 0.08 < said.count("rare") / len(said) < 0.12


# -- the end before the plan


async def test_a_hopeless_run_ends_early_if_it_is_asked_to(server: FakeServer, quiet_clock: MockClock) -> None:
    server.seconds = lambda number: 1.0
    soon = evolve(SCENARIO, targets=[Target(name="soon", metric=Metric.FINAL, percentile=90, at_most_ms=500)])
    assert (await observe(soon, server)).aborted is None
    seen = await observe(soon, server, fail_fast=True)
    assert seen.aborted == HOPELESS
    assert 10 < seen.tally.turns < 50


async def test_a_run_that_is_stopped_has_what_it_measured_so_far(server: FakeServer, quiet_clock: MockClock) -> None:
    stop = trio.Event()

    def soon(phase: str, done: float, total: float) -> None:
        if done > 7.0:
            stop.set()

    seen = await observe(SCENARIO, server, soon, stop=stop)
    assert seen.aborted == INTERRUPTED
    assert 45 < seen.tally.turns < 55
    assert seen.tally.failed == 0
