"""A subscriber that is cut off at any event, any number of times, gets one terminal event and one commit_final of every
turn. Random programs with several subscribers, concurrent turns, cancels, restarts on the same ledger, and a ledger
that is slow or cannot write.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from footlights import (
    BusyRule,
    Detached,
    EventType,
    InterruptReason,
    LedgerUnavailable,
    Limits,
    MemoryLedger,
    TurnInterrupted,
    TurnParams,
    laws,
    open_stage,
)
from footlights.testing import quiesced_threads
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from footlights import Cast, InteractionSession, Prompt, StreamEvent, TurnSummary
    from footlights.authority import CommitRecord, TurnRequest
    from footlights_actors import Line

TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}
Ending: TypeAlias = InterruptReason | None
SIDE_BY_SIDE = TurnParams(busy=BusyRule.CONCURRENT)


class WeakLedger(MemoryLedger):
    """One that takes its time to look, and cannot always write."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.can_write = True
        self.committed: set[str] = set()

    async def append(self, records: Sequence[CommitRecord], world: Any, requests: Sequence[TurnRequest] = ()) -> None:
        if not self.can_write:
            raise LedgerUnavailable("not now")
        await super().append(records, world, requests)
        self.committed.update(record.turn_id for record in records)

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.sleep(self.seconds)
        return await super().find(session_id, turn_id)

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        await trio.sleep(self.seconds)
        return await super().commits_after(session_id, turn_id, limit)


class Follower:
    """One who comes and goes, and remembers what its stream tells it to."""

    def __init__(self) -> None:
        self.got: list[StreamEvent] = []
        self.cursor: dict[str, int] | None = None
        self.terminal_seen: frozenset[str] = frozenset()
        self.owed: set[str] = set()
        """Turns that it must be told the end of."""

    async def follow(self, session: InteractionSession, events: int, seconds: float) -> bool:
        """Take so many events, wait no longer for them than that, and be cut off. Whether all was told."""
        async with session.subscribe(self.cursor, self.terminal_seen) as stream:
            if self.cursor is None:
                self.owed.update(turn_id for turn_id, seq in stream.cursor.items() if seq < 0)
            try:
                with trio.move_on_after(seconds) as waited:
                    for _ in range(events):
                        self.got.append(await anext(stream))
            except Detached:
                return False
            finally:
                self.cursor, self.terminal_seen = dict(stream.cursor), stream.terminal_seen
        return waited.cancelled_caught

    def check(self, ended: Mapping[str, Ending], committed: Collection[str]) -> None:
        assert laws.check(self.got) == []
        each_once = Counter(self.owed | {event.turn_id for event in self.got})
        assert Counter(event.turn_id for event in self.got if event.event_type in TERMINAL) == each_once
        assert Counter(event.turn_id for event in self.got if event.event_type is EventType.COMMIT_FINAL) == each_once
        assert self.terminal_seen == frozenset()
        for event in self.got:
            if event.event_type in TERMINAL:
                lost = event.turn_id not in committed and ending(event) is InterruptReason.RUNTIME_RESTART
                assert lost or ending(event) == ended[event.turn_id], "the end that it had, or that a restart gave it"
        assert max(Counter((event.turn_id, event.seq) for event in self.got).values(), default=1) == 1


def ending(event: StreamEvent) -> Ending:
    """How a terminal event says that its turn ended: why it was interrupted, None if it was not."""
    return event.payload.reason if isinstance(event.payload, TurnInterrupted) else None


def script(prompt: Prompt) -> Iterable[Line]:
    return [Say("a b c"), Pause(float(prompt.user)), Say("d e f")]


def cast() -> Cast:
    return standard_cast(ScriptedModel(script))


async def program(dice: Random) -> None:
    limits = Limits(replay_turns=dice.choice([0, 0, 1, 2, 4]), max_turns_per_subscriber=dice.choice([1, 2, 3, 64]))
    ledger = WeakLedger(dice.choice([0, 0, 0.5, 3.0]))
    followers = [Follower() for _ in range(dice.randint(1, 3))]

    async def come_and_go(follower: Follower, session: InteractionSession) -> None:
        for _ in range(dice.randint(1, 4)):
            await trio.sleep(dice.choice([0, 0, 1, 4, 10]))
            await follower.follow(session, dice.choice([0, 1, 1, 2, 3, 5, 8, 100]), dice.choice([0.01, 1, 5]))

    ended: dict[str, Ending] = {}

    def note(turn: TurnSummary) -> None:
        ended[turn.turn_id] = next((reason for reason in InterruptReason if reason == turn.outcome), None)

    for _ in range(dice.randint(1, 3)):
        async with open_stage(cast(), ledger=ledger, limits=limits, observe=note) as stage:
            session = stage.resume("inn")
            async with trio.open_nursery() as nursery:
                for follower in followers:
                    nursery.start_soon(come_and_go, follower, session)
                for _ in range(dice.randint(2, 9)):
                    ledger.can_write = dice.random() < 0.8
                    turn_id = session.begin_turn(dice.choice(["0.1", "0.1", "3", "12"]), SIDE_BY_SIDE)
                    for follower in followers:
                        if follower.cursor is not None:
                            follower.owed.add(turn_id)
                    await trio.sleep(dice.choice([0, 0.2, 1, 3]))
                    if dice.random() < 0.2:
                        session.cancel(turn_id)
            # All that is open now is interrupted; if the ledger cannot write any more, the next epoch tells of it.
            ledger.can_write = dice.random() < 0.5
        ledger.can_write = True

    ledger.seconds = 0
    async with open_stage(cast(), ledger=ledger, limits=limits) as stage:
        for follower in followers:
            if follower.cursor is None:
                continue
            for _ in range(200):
                if await follower.follow(stage.resume("inn"), 1_000, 1):
                    break
            # Of a turn that was not written nobody can know after a restart, unless the follower had heard of it.
            heard_of = {event.turn_id for event in follower.got}
            follower.owed = {turn_id for turn_id in follower.owed if turn_id in ledger.committed | heard_of}
            follower.check(ended, ledger.committed)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_resuming_subscriber_never_misses_the_end_of_a_turn(seed: int) -> None:
    with quiesced_threads():
        trio.run(program, Random(seed), clock=MockClock(autojump_threshold=0))
