"""Committer: every turn is judged once, in order, and only durable commits are announced."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import Factory, define

from footlights import (
    BusyRule,
    CommitFinal,
    CommitOutcome,
    CommitUnknown,
    Detached,
    DetachReason,
    EventType,
    Intent,
    IntentType,
    InterruptReason,
    Limits,
    MemoryLedger,
    Stage,
    StreamEvent,
    TurnAccepted,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.authority import (
    Artifact,
    CommitRecord,
    Ruling,
    TurnRequest,
    WorldReadOnly,
    accept,
    digest,
    every_turn,
    patch,
    recompute_digest,
    refuse,
)
from footlights.testing import only, take_turn
from footlights.testing.faults import FlakyLedger
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_actors.committer import MAX_BATCH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trio.testing import MockClock

    from footlights import Cast, InteractionContext, InteractionSession
    from footlights.authority import World

NOTE = TurnParams(workload="note", busy=BusyRule.CONCURRENT)


class KeepingLedger(MemoryLedger):
    """Remembers each batch as it was appended; the first one takes so many seconds."""

    def __init__(self, first_takes: float = 0.0) -> None:
        super().__init__()
        self.batches: list[list[CommitRecord]] = []
        self._takes = first_takes

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        takes, self._takes = self._takes, 0.0
        await trio.sleep(takes)
        await super().append(records, world, requests)
        self.batches.append(list(records))

    @property
    def records(self) -> list[CommitRecord]:
        return [record for batch in self.batches for record in batch]


class Note:
    """Stages what was said; "stall" stages it and never ends."""

    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.TURN_FINALIZE, context.input))
        if context.input == "stall":
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()


def write_down(world: list[str], intents: tuple[Intent, ...]) -> Ruling:
    if any(intent.ref == "forbidden" for intent in intents):
        return refuse("forbidden", "That is not written down.")
    return accept(*(patch.add("/-", intent.ref) for intent in intents))


@define
class Seen:
    """What a subscriber that stays to the end was given, and why it was let go."""

    events: list[StreamEvent] = Factory(list["StreamEvent"])
    detached: str | None = None

    async def watch(self, session: InteractionSession, task_status: trio.TaskStatus[None]) -> None:
        async with session.subscribe() as stream:
            task_status.started()
            try:
                while True:
                    self.events.append(await anext(stream))
            except Detached as detached:
                self.detached = detached.reason


def note_cast() -> Cast:
    return standard_cast(world=[], rules={"write_down": write_down}, workloads={"note": Note()})


async def commits(session: InteractionSession, *said: str) -> list[CommitFinal]:
    handles = [session.finalize(session.begin_turn(each, TurnParams(workload="note"))) for each in said]
    return [await handle.wait() for handle in handles]


def outcomes(decided: list[CommitFinal]) -> list[CommitOutcome]:
    return [commit.commit_outcome for commit in decided]


def begin_many(stage: Stage, count: int) -> list[InteractionSession]:
    sessions = [stage.start() for _ in range(count)]
    for number, session in enumerate(sessions):
        session.begin_turn(f"note {number}", NOTE)
    return sessions


async def begin_behind_a_slow_write(stage: Stage, count: int) -> list[InteractionSession]:
    stage.start().begin_turn("first", NOTE)
    await trio.sleep(0.5)
    return begin_many(stage, count)


# -- order and batches


async def test_turns_of_a_session_are_committed_in_their_order() -> None:
    ledger = KeepingLedger()
    async with open_stage(note_cast(), ledger=ledger) as stage:
        assert outcomes(await commits(stage.start(), "a", "b", "c")) == [CommitOutcome.OK] * 3
        assert stage.world == ["a", "b", "c"]
    assert [record.intents[0].ref for record in ledger.records] == ["a", "b", "c"]


async def test_a_batch_is_what_queued_while_the_last_one_was_written(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger(first_takes=5)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        await begin_behind_a_slow_write(stage, 40)
        await trio.sleep(1)
        assert stage.statistics().commits_waiting == 41
        await trio.sleep(10)
        assert stage.statistics().commits_waiting == 0
    assert [len(batch) for batch in ledger.batches] == [1, 40]


async def test_no_batch_is_larger_than_its_limit(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger(first_takes=5)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        await begin_behind_a_slow_write(stage, MAX_BATCH + 10)
        await trio.sleep(10)
    assert [len(batch) for batch in ledger.batches] == [1, MAX_BATCH, 10]


async def test_a_large_batch_is_announced_while_the_next_one_is_judged(quiet_clock: MockClock) -> None:
    class Watched(KeepingLedger):
        async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
            unsettled.append(stage.statistics().commits_waiting)
            return await super().last_digests(session_ids)

    unsettled: list[int] = []
    async with open_stage(note_cast(), ledger=Watched(first_takes=5)) as stage:
        await begin_behind_a_slow_write(stage, MAX_BATCH + 10)
        await trio.sleep(10)
        assert stage.statistics().commits_waiting == 0
    assert unsettled[:2] == [1, MAX_BATCH + 10]
    assert unsettled[2] > 10


async def test_turns_of_a_batch_see_what_the_earlier_ones_changed(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger(first_takes=5)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        await begin_behind_a_slow_write(stage, 20)
        await trio.sleep(10)
    records = ledger.records
    assert len(records) == 21
    for earlier, later in pairwise(records):
        assert later.world_before == earlier.world_after


async def test_every_turn_is_settled_exactly_once(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger(first_takes=5)
    seen: list[StreamEvent] = []

    async def watch(session: InteractionSession) -> None:
        async with session.subscribe(after={}) as stream:
            seen.extend([event async for event in stream])

    async with trio.open_nursery() as nursery, open_stage(note_cast(), ledger=ledger) as stage:
        for session in begin_many(stage, 30):
            nursery.start_soon(watch, session)
        await trio.sleep(10)
    settled = [event.session_id for event in seen if event.event_type is EventType.COMMIT_FINAL]
    assert len(settled) == len(set(settled)) == 30


@pytest.mark.shows("core-18", "core-42")
async def test_nothing_is_announced_before_it_is_durable(quiet_clock: MockClock) -> None:
    ledger = FlakyLedger(MemoryLedger(), delay=3)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        session = stage.start()
        commit = session.finalize(session.begin_turn("slow", NOTE))
        await trio.sleep(2.9)
        assert commit.commit is None
        assert stage.world == []
        await commit.wait()
        assert trio.current_time() == pytest.approx(3)
        assert stage.world == ["slow"]


# -- the chain


async def test_each_session_has_a_chain_of_its_own(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger(first_takes=5)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        sessions = [stage.start() for _ in range(3)]
        for said in ("a", "b", "c"):
            for session in sessions:
                session.begin_turn(said, NOTE)
        await trio.sleep(10)
    for session in sessions:
        own = [record for record in ledger.records if record.session_id == session.session_id]
        assert [record.previous for record in own] == [None, *(record.commit_digest for record in own[:-1])]
        assert all(record.commit_digest == recompute_digest(record) for record in own)


@pytest.mark.shows("core-20")
async def test_announced_commits_are_those_of_the_ledger() -> None:
    ledger = KeepingLedger()
    async with open_stage(note_cast(), ledger=ledger) as stage:
        (commit,) = await commits(stage.start(), "a")
    (record,) = ledger.records
    assert (commit.commit_digest, commit.commit_id) == (record.commit_digest, record.commit_id)


async def test_the_same_turns_give_the_same_digests() -> None:
    async def digests() -> list[str]:
        async with open_stage(note_cast()) as stage:
            return [commit.commit_digest for commit in await commits(stage.start(), "a", "forbidden", "b")]

    assert await digests() == await digests()


# -- what changes nothing


async def test_what_a_host_does_to_the_world_it_is_shown_changes_nothing() -> None:
    ledger = KeepingLedger()
    async with open_stage(note_cast(), ledger=ledger) as stage:
        session = stage.start()
        await commits(session, "a")
        with pytest.raises(WorldReadOnly):
            stage.world.append("forged")
        assert stage.world == ["a"]
        await commits(session, "b")
        assert stage.world == ["a", "b"]
    assert [record.world_after for record in ledger.records] == [digest(["a"]), digest(["a", "b"])]


async def test_a_refused_turn_leaves_the_world_alone_and_the_next_one_commits() -> None:
    async with open_stage(note_cast()) as stage:
        decided = await commits(stage.start(), "a", "forbidden", "b")
        assert outcomes(decided) == [CommitOutcome.OK, CommitOutcome.FAIL_CLOSED, CommitOutcome.OK]
        assert [issue.code for issue in decided[1].issues] == ["forbidden"]
        assert stage.world == ["a", "b"]


@pytest.mark.shows("core-30")
async def test_an_interrupted_turn_fails_closed_and_never_changes_the_world(quiet_clock: MockClock) -> None:
    ledger = KeepingLedger()
    async with open_stage(note_cast(), ledger=ledger) as stage:
        session = stage.start()
        turn_id = session.begin_turn("stall", NOTE)
        await trio.sleep(1)
        session.cancel(turn_id)
        commit = await session.finalize(turn_id).wait()
        assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED
        assert [issue.code for issue in commit.issues] == ["turn_interrupted"]
        assert stage.world == []
    assert ledger.records[0].intents == ()
    assert ledger.records[0].world_before == ledger.records[0].world_after


async def test_turns_without_intents_commit_too() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))) as stage:
        session = stage.start()
        commit = await session.finalize(session.begin_turn("Hello")).wait()
    assert commit == CommitFinal(commit.commit_digest, CommitOutcome.OK, commit_id=commit.commit_id)


# -- a ledger that cannot write


async def test_a_batch_that_cannot_be_written_fails_closed_as_a_whole(quiet_clock: MockClock) -> None:
    ledger = FlakyLedger(MemoryLedger(), failing_appends={2}, delay=1)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        sessions = await begin_behind_a_slow_write(stage, 3)
        decided = [await session.finalize("t1-000001").wait() for session in sessions]
        assert outcomes(decided) == [CommitOutcome.FAIL_CLOSED] * 3
        assert {issue.code for commit in decided for issue in commit.issues} == {"ledger_unavailable"}
        assert stage.world == ["first"]
    for session in sessions:
        assert await ledger.find(session.session_id, "t1-000001") is None


async def test_when_the_ledger_is_back_the_chain_goes_on_from_the_last_durable_commit() -> None:
    inner = KeepingLedger()
    ledger = FlakyLedger(inner, failing_appends={2, 3})
    async with open_stage(note_cast(), ledger=ledger) as stage:
        decided = await commits(stage.start(), "a", "lost", "lost too", "b")
        assert [commit.commit_outcome.value for commit in decided] == ["ok", "fail_closed", "fail_closed", "ok"]
        assert stage.world == ["a", "b"]
    assert [record.previous for record in inner.records] == [None, decided[0].commit_digest]
    assert inner.records[1].world_before == inner.records[0].world_after


async def test_a_turn_that_was_not_written_says_so_beside_its_own_issues() -> None:
    async with open_stage(note_cast(), ledger=FlakyLedger(MemoryLedger(), failing_appends={1})) as stage:
        (commit,) = await commits(stage.start(), "forbidden")
    assert [issue.code for issue in commit.issues] == ["forbidden", "ledger_unavailable"]


async def test_a_turn_that_was_not_written_leaves_nothing_behind() -> None:
    def deed(world: object, intents: tuple[Intent, ...]) -> Ruling:
        return accept(artifacts=[Artifact("deed", 1)])

    cast = standard_cast(world=[], rules={"deed": deed}, workloads={"note": Note()})
    async with open_stage(cast, ledger=FlakyLedger(MemoryLedger(), failing_appends={1})) as stage:
        lost, kept = await commits(stage.start(), "a", "b")
    assert outcomes([lost, kept]) == [CommitOutcome.FAIL_CLOSED, CommitOutcome.OK]
    assert (lost.artifact_refs, kept.artifact_refs) == ((), (Artifact("deed", 1).ref,))


@pytest.mark.parametrize("error", [SystemExit, RuntimeError])
async def test_a_rule_that_breaks_hurts_only_its_own_turn(error: type[BaseException]) -> None:
    def rude(world: object, intents: tuple[Intent, ...]) -> Ruling:
        if any(intent.ref == "rude" for intent in intents):
            raise error
        return accept()

    cast = standard_cast(world=[], rules={"rude": rude}, workloads={"note": Note()})
    async with open_stage(cast) as stage:
        decided = await commits(stage.start(), "a", "rude", "b")
    assert outcomes(decided) == [CommitOutcome.OK, CommitOutcome.FAIL_CLOSED, CommitOutcome.OK]
    assert [issue.code for issue in decided[1].issues] == ["rule_error"]


# -- shutdown


async def test_the_stage_waits_for_its_last_commits(quiet_clock: MockClock) -> None:
    ledger = FlakyLedger(MemoryLedger(), delay=5)
    async with open_stage(note_cast(), ledger=ledger) as stage:
        session = stage.start()
        commit = session.finalize(session.begin_turn("last", NOTE))
        await trio.sleep(1)
    assert trio.current_time() == pytest.approx(5)
    assert (await commit.wait()).commit_outcome is CommitOutcome.OK


async def test_turns_that_shutdown_interrupts_fail_closed(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Stall()]))) as stage:
        session = stage.start()
        commit = session.finalize(session.begin_turn("Hello"))
        await trio.sleep(1)
    decided = await commit.wait()
    assert decided.commit_outcome is CommitOutcome.FAIL_CLOSED
    assert InterruptReason.SHUTDOWN.value in decided.issues[0].message


async def test_past_the_shutdown_deadline_the_commit_is_unknown(quiet_clock: MockClock) -> None:
    ledger = FlakyLedger(MemoryLedger(), delay=60)
    seen = Seen()
    async with trio.open_nursery() as nursery:
        async with open_stage(note_cast(), ledger=ledger, limits=Limits(shutdown_deadline=4)) as stage:
            session = stage.start()
            await nursery.start(seen.watch, session)
            commit = session.finalize(session.begin_turn("doubtful", NOTE))
            await trio.sleep(1)
        assert trio.current_time() == pytest.approx(5)
        with pytest.raises(CommitUnknown):
            await commit.wait()
    assert seen.detached == DetachReason.COMMIT_UNKNOWN
    assert [event.event_type for event in seen.events] == [EventType.TURN_ACCEPTED, EventType.TURN_FINAL]


class BrokenLedger(MemoryLedger):
    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError("a bug, and no word about what was written")


async def test_a_committer_that_dies_leaves_its_turns_in_doubt_and_says_so(quiet_clock: MockClock) -> None:
    seen = Seen()
    async with trio.open_nursery() as nursery:
        with pytest.RaisesGroup(OSError, flatten_subgroups=True):
            async with open_stage(note_cast(), ledger=BrokenLedger()) as stage:
                session = stage.start()
                await nursery.start(seen.watch, session)
                handle = session.finalize(session.begin_turn("a", NOTE))
                await trio.sleep_forever()
        with pytest.raises(CommitUnknown):
            await handle.wait()
    assert seen.detached == DetachReason.COMMIT_UNKNOWN


async def test_a_queued_turn_is_ended_before_a_committer_that_dies_leaves_everybody_in_doubt(
    quiet_clock: MockClock,
) -> None:
    seen = Seen()
    async with trio.open_nursery() as nursery:
        with pytest.RaisesGroup(OSError, flatten_subgroups=True):
            async with open_stage(note_cast(), ledger=BrokenLedger()) as stage:
                session = stage.start()
                await nursery.start(seen.watch, session)
                session.begin_turn("a", NOTE)
                queued = session.begin_turn("b", TurnParams(workload="note"))
                await trio.sleep_forever()
    assert seen.detached == DetachReason.COMMIT_UNKNOWN
    assert [event.payload for event in seen.events if event.turn_id == queued] == [
        TurnAccepted(turns_ahead=1),
        TurnInterrupted(InterruptReason.SHUTDOWN),
    ]


async def test_a_rule_that_takes_too_long_is_measured_and_fails_the_turn(
    quiet_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    @every_turn
    def ponder(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
        quiet_clock.jump(0.3)
        return accept(patch.replace("/told", 1))

    def cast() -> Cast:
        return standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]), world={"told": 0}, rules={"ponder": ponder})

    async with open_stage(cast(), limits=Limits(rule_budget=0.2)) as stage:
        commit = only(await take_turn(stage.start(), "Well?"), CommitFinal)
        assert [(issue.code, issue.ref) for issue in commit.issues] == [("rule_overran", "ponder")]
        assert stage.world == {"told": 0}
    assert "took 0.300 s" in caplog.text
    async with open_stage(cast(), limits=Limits(rule_budget=0.4)) as stage:
        assert only(await take_turn(stage.start(), "Well?"), CommitFinal).commit_outcome is CommitOutcome.OK
