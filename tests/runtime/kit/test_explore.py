"""`cancel_everywhere`: the faults that it finds, and its reports."""

from __future__ import annotations

import random
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit.explore import cancel_everywhere
from footlights_kit.explorer import spread
from footlights_kit.points import RunLimits
from footlights_kit.trial import Case, perform
from footlights_kit.verdicts import Diverged, ExplorationFailed

if TYPE_CHECKING:
    from footlights_kit.trial import Trial


HERE = "tests/runtime/kit/test_explore.py"


class Pool:
    """A resource that must come back, whatever happens to the one who took it."""

    def __init__(self) -> None:
        self.taken = 0

    async def take(self) -> None:
        await trio.lowlevel.checkpoint()
        self.taken += 1

    def give_back(self) -> None:
        self.taken -= 1

    def must_be_whole(self) -> None:
        if self.taken:
            raise AssertionError("not given back")


async def late_try(trial: Trial) -> None:
    pool = Pool()
    with trio.CancelScope() as scope:
        trial.aim(scope.cancel)
        await pool.take()
        await trio.lowlevel.checkpoint()  # the bug: not yet in the try
        try:
            await trio.sleep(1)
        finally:
            pool.give_back()
    trial.disarm()
    pool.must_be_whole()


def line_of(text: str) -> int:
    """The first line of this file that contains the text."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


BUG, CHECK = line_of("# the bug"), line_of('AssertionError("not given')


async def early_try(trial: Trial) -> None:
    pool = Pool()
    with trio.CancelScope() as scope:
        trial.aim(scope.cancel)
        await pool.take()
        try:
            await trio.lowlevel.checkpoint()
            await trio.sleep(1)
        finally:
            pool.give_back()
    trial.disarm()
    pool.must_be_whole()


def test_a_bug_at_one_single_point_is_found() -> None:
    failing: list[int] = []
    for point in range(5):
        try:
            cancel_everywhere(late_try, replay=f"order=0 points={point}")
        except Diverged:
            break
        except ExplorationFailed:
            failing.append(point)
    assert failing == [1]

    with pytest.raises(ExplorationFailed, match="not given back") as failed:
        cancel_everywhere(late_try)
    assert failed.value.replay == "order=0 points=1"


def test_without_the_bug_every_point_and_pair_is_run() -> None:
    explored = cancel_everywhere(early_try, orders=2, pairs=4)
    assert explored.orders == 2
    assert explored.points == 2 * 4  # two checkpoints, falling asleep is idle, and waking up
    assert 0 < explored.pairs <= 2 * 4
    assert explored.runs == 2 + explored.points + explored.pairs


def test_the_message_names_the_point_the_error_and_the_line_that_replays_it() -> None:
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(late_try)
    assert str(failed.value).splitlines() == [
        "canceled at point 1 (main step 3 at t=0): AssertionError: not given back",
        f"  main at {HERE}:{BUG} in late_try: await trio.lowlevel.checkpoint()  # the bug: not yet in the try",
        f'  AssertionError at {HERE}:{CHECK} in must_be_whole: raise AssertionError("not given back")',
        'To replay: cancel_everywhere(late_try, replay="order=0 points=1")',
    ]
    assert isinstance(failed.value.__cause__, AssertionError)


def test_a_replay_runs_that_case_alone_and_fails_the_same_way() -> None:
    runs = 0

    async def counted(trial: Trial) -> None:
        nonlocal runs
        runs += 1
        await late_try(trial)

    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(counted)
    runs = 0
    with pytest.raises(ExplorationFailed) as again:
        cancel_everywhere(counted, replay=failed.value.replay)
    assert runs == 2  # the second one notes where the tasks are
    assert str(again.value) == str(failed.value)
    assert repr(again.value.__cause__) == repr(failed.value.__cause__)


def test_a_replay_of_a_good_case_says_so() -> None:
    one = cancel_everywhere(early_try, replay="order=1 points=2")
    assert (one.points, one.pairs, one.triples, one.runs) == (1, 0, 0, 1)
    two = cancel_everywhere(early_try, replay="order=1 points=1,2")
    assert (two.points, two.pairs, two.triples, two.runs) == (0, 1, 0, 1)


@pytest.mark.parametrize("text", ["", "points=3", "order=x", "order=0 points=", "order=0 points=1,"])
def test_a_replay_that_is_no_case_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a case"):
        cancel_everywhere(early_try, replay=text)


def test_a_replay_of_a_point_that_is_never_reached_is_no_success() -> None:
    with pytest.raises(Diverged, match="only 4 points"):
        cancel_everywhere(early_try, replay="order=0 points=99")


class Stopping:
    """Stops once; the planted bug: a second stop during the cleanup interrupts the cleanup."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.cleanup = trio.CancelScope(shield=True)
        self.clean = False

    def stop(self) -> None:
        if self.scope.cancel_called:
            self.cleanup.cancel()
        self.scope.cancel()

    async def run(self) -> None:
        with self.scope:
            try:
                await trio.sleep(1)
            finally:
                with self.cleanup:
                    await trio.sleep(1)
                    self.clean = True


async def stopped_twice(trial: Trial) -> None:
    it = Stopping()
    trial.aim(it.stop)
    await it.run()
    trial.disarm()
    assert it.clean, "cleanup was interrupted"


def test_a_bug_that_needs_two_cancels_is_found_by_pairs_alone() -> None:
    assert cancel_everywhere(stopped_twice, pairs=0).pairs == 0
    with pytest.raises(ExplorationFailed, match="cleanup was interrupted") as failed:
        cancel_everywhere(stopped_twice)
    _, _, points = failed.value.replay.partition("points=")
    assert len(points.split(",")) == 2
    with pytest.raises(ExplorationFailed, match="cleanup was interrupted"):
        cancel_everywhere(stopped_twice, replay=failed.value.replay)


def test_the_second_cancel_may_be_another_one() -> None:
    called: list[str] = []

    async def scenario(trial: Trial) -> None:
        trial.aim(lambda: called.append("first"), lambda: called.append("second"))
        await trio.sleep(1)
        assert trial.injected == 2
        assert [point.index for point in trial.canceled_at] == [0, 1]

    cancel_everywhere(scenario, replay="order=0 points=0,1")
    assert called == ["first", "second"]


def test_a_bug_in_one_order_of_the_tasks_is_found_by_trying_orders() -> None:
    winners: list[str] = []

    async def race() -> str:
        arrived: list[str] = []

        async def runner(name: str) -> None:
            await trio.lowlevel.checkpoint()
            arrived.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner, "hare", name="hare")
            nursery.start_soon(runner, "tortoise", name="tortoise")
        return arrived[0]

    async def watched(trial: Trial) -> None:
        trial.aim(lambda: None)
        winners.append(await race())

    async def biased(trial: Trial) -> None:
        trial.aim(lambda: None)
        assert await race() == winners[0], "the other one won"

    cancel_everywhere(watched, orders=1, pairs=0)
    assert len(set(winners)) == 1
    cancel_everywhere(biased, orders=1)
    with pytest.raises(ExplorationFailed, match="the other one won") as failed:
        cancel_everywhere(biased, orders=10)
    assert not failed.value.replay.startswith("order=0")


def test_a_plain_scenario_is_canceled_as_a_whole_from_before_its_first_line() -> None:
    reached: list[int] = []

    async def scenario() -> None:
        far = 0
        try:
            await trio.lowlevel.checkpoint()
            far = 1
            await trio.sleep(1)
            far = 2
        finally:
            reached.append(far)

    explored = cancel_everywhere(scenario, orders=1)
    assert reached == [2, 0, 0, 1, 1]  # baseline; before the start, in the checkpoint, asleep, about to wake
    assert (explored.points, explored.pairs, explored.runs) == (4, 0, 5)
    assert str(explored) == "4 of 4 points, 0 pairs, 1 orders, 5 runs"


def test_a_plain_scenario_may_raise_nothing_but_its_cancel() -> None:
    async def scenario() -> None:
        async def child() -> None:
            try:
                await trio.sleep(1)
            except trio.Cancelled:
                raise KeyError("lost in cleanup") from None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    with pytest.raises(ExplorationFailed, match="KeyError: 'lost in cleanup'") as failed:
        cancel_everywhere(scenario)
    assert isinstance(failed.value.__cause__, ExceptionGroup)


def test_every_idle_moment_is_a_point() -> None:
    labels: list[str] = []

    async def scenario(trial: Trial) -> None:
        trial.aim(lambda: None)
        await trio.sleep(0.25)
        await trio.sleep(0.5)
        labels.extend(point.label for point in trial.canceled_at)

    cancel_everywhere(scenario, orders=1, pairs=0)
    assert labels == ["idle at t=0", "main step 2 at t=0.25", "idle at t=0.25", "main step 3 at t=0.75"]


def test_a_long_rest_is_one_point() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            # A thread that trio does not know: until it writes, the loop looks at its sockets again and again.
            writer = threading.Timer(0.01, theirs.send, [b"x"])
            writer.start()
            await trio.lowlevel.wait_readable(ours)
            writer.join()

    run = perform(scenario, Case(0), RunLimits(max_points=100))
    assert run.error is None
    assert list(map(str, run.trace)) == ["main step 2 at t=0", "idle at t=0", "main step 3 at t=0"]


def test_points_are_counted_only_between_aim_and_disarm() -> None:
    async def scenario(trial: Trial) -> None:
        await trio.sleep(1)
        trial.aim(lambda: None)
        await trio.lowlevel.checkpoint()
        trial.disarm()
        await trio.sleep(1)

    assert cancel_everywhere(scenario, orders=1).points == 1


def test_a_scenario_that_never_aims_is_no_success() -> None:
    async def scenario(trial: Trial) -> None:
        await trio.sleep(1)

    with pytest.raises(ExplorationFailed, match="no points"):
        cancel_everywhere(scenario)


def test_a_scenario_that_fails_without_any_cancel_says_so() -> None:
    async def scenario() -> None:
        await trio.sleep(1)
        raise LookupError("always")

    with pytest.raises(ExplorationFailed, match="without a cancel: LookupError: always") as failed:
        cancel_everywhere(scenario)
    assert failed.value.replay == "order=0"


def test_state_kept_between_runs_is_a_divergence() -> None:
    runs = 0

    async def scenario() -> None:
        nonlocal runs
        runs += 1
        for _ in range(3 if runs > 2 else 4):
            await trio.lowlevel.checkpoint()
        await trio.sleep(1)

    with pytest.raises(Diverged, match=r"came to 'main step 6 at t=0', this one to 'idle at t=0'"):
        cancel_everywhere(scenario)


def test_randomness_is_a_divergence() -> None:
    chance = random.Random(7)

    async def scenario() -> None:
        await trio.sleep(chance.random())
        await trio.sleep(1)

    with pytest.raises(Diverged, match="not replayed"):
        cancel_everywhere(scenario)


def test_a_divergence_between_two_cancels_is_noticed() -> None:
    struck_twice = 0

    async def scenario(trial: Trial) -> None:
        nonlocal struck_twice
        fickle: list[int] = []
        trial.aim(lambda: fickle.append(1))
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        if fickle:
            struck_twice += 1
            await trio.sleep(struck_twice)
        await trio.sleep(1)

    with pytest.raises(Diverged) as diverged:
        cancel_everywhere(scenario, orders=1)
    assert "," in diverged.value.replay


def test_an_error_of_the_cancel_itself_is_the_failure() -> None:
    async def scenario(trial: Trial) -> None:
        def broken() -> None:
            raise ZeroDivisionError("the cancel is broken")

        trial.aim(broken)
        await trio.sleep(1)

    with pytest.raises(ExplorationFailed, match="the cancel is broken") as failed:
        cancel_everywhere(scenario)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_an_error_of_the_cancel_is_not_hidden_by_a_scenario_that_swallows_everything() -> None:
    async def scenario(trial: Trial) -> None:
        def broken() -> None:
            raise ZeroDivisionError("the cancel is broken")

        trial.aim(broken)
        with trio.CancelScope(shield=True):
            await trio.sleep(1)

    with pytest.raises(ExplorationFailed, match="the cancel is broken"):
        cancel_everywhere(scenario)


def test_a_keyboard_interrupt_is_no_verdict_and_names_its_case() -> None:
    async def scenario() -> None:
        async with trio.open_nursery():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match='To replay: cancel_everywhere\\(scenario, replay="order=0"\\)'):
        cancel_everywhere(scenario)


async def test_it_refuses_to_be_called_inside_a_run() -> None:
    with pytest.raises(RuntimeError, match="plain function"):
        cancel_everywhere(early_try)


@pytest.mark.parametrize("tails", [[3, 2, 1, 0], [0, 5, 0], [40] * 40, []])
@pytest.mark.parametrize("limit", [0, 1, 4, 100, 10_000])
def test_pairs_are_distinct_real_and_as_many_as_allowed(tails: list[int], limit: int) -> None:
    pairs = list(spread(tails, limit))
    assert len(set(pairs)) == len(pairs) == min(limit, sum(tails))
    assert all(0 <= offset < tails[first] for first, offset in pairs)


def test_pairs_are_spread_over_the_whole_run() -> None:
    firsts = [first for first, _ in spread([10] * 100, 100)]
    assert firsts == list(range(100))
