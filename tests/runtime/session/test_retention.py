"""Finished turns are kept with their words for a time, within limits of memory; what is lost is declared."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    Detached,
    Intent,
    IntentType,
    InteractionContext,
    Limits,
    SessionParams,
    TurnParams,
    draft_event,
    laws,
    open_stage,
)
from footlights.events import TurnFinal, TurnInterrupted
from footlights.testing import only, payloads, take_turn
from footlights_actors import Flood, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

    from footlights import InteractionSession, Prompt, Stage, StreamEvent
    from footlights_actors import Line

SIX = [f"This is turn {number}." for number in range(6)]


def script(prompt: Prompt) -> Iterable[Line]:
    if prompt.user.isdigit():
        return [Flood("word ", int(prompt.user))]
    if prompt.user == "A speech.":
        return [Flood("word " * 100, 200)]
    return [Say(prompt.user), Pause(1.0), Say(" That was all.")]


def tavern(limits: Limits | None = None) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(script)), limits=limits)


async def everything_after(session: InteractionSession, after: dict[str, int]) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    while True:
        async with session.subscribe(after) as stream:
            try:
                while not stream.is_empty:
                    events += await stream.receive_batch()
                if stream.is_live:
                    return events
                await stream.receive_batch()
            except Detached:
                after = dict(stream.cursor)


async def settle(session: InteractionSession, said: Iterable[str]) -> list[str]:
    turns: list[str] = []
    for each in said:
        turns.append(session.begin_turn(each))
        await session.finalize(turns[-1]).wait()
    return turns


def words(events: Iterable[StreamEvent]) -> list[str | None]:
    return [None if final.text_forgotten else final.text for final in payloads(events, TurnFinal)]


@pytest.mark.parametrize("pause", [0.0, 60.0, 3_500.0])
async def test_six_turns_and_a_pause_past_the_detachment_lose_no_word(quiet_clock: MockClock, pause: float) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            for said in SIX:
                await session.finalize(session.begin_turn(said)).wait()
                await trio.sleep(pause / len(SIX))
            events = stream.receive_nowait(100)
            with pytest.raises(Detached) if pause else pytest.raises(trio.WouldBlock):
                await stream.receive_batch() if pause else _nothing_waits(stream.is_empty)
        events += await everything_after(session, dict(stream.cursor))
    assert words(events) == [f"{said} That was all." for said in SIX]
    assert laws.check(events) == []


def _nothing_waits(is_empty: bool) -> None:
    assert is_empty
    raise trio.WouldBlock


async def test_a_turn_is_kept_for_its_time_and_dropped_with_the_next_one_that_is_settled(
    quiet_clock: MockClock,
) -> None:
    async with tavern(Limits(replay_time=10.0)) as stage:
        session, other = stage.start(), stage.start()
        await settle(session, SIX[:1])
        await trio.sleep(8.5)
        await settle(other, SIX[:1])
        assert session.statistics().turns_retained == 1
        assert words(await everything_after(session, {})) == [f"{SIX[0]} That was all."]
        await trio.sleep(0.5)
        assert session.statistics().turns_retained == 1, "no timer drops it"
        await settle(other, SIX[:1])
        assert session.statistics().turns_retained == 0
        assert other.statistics().turns_retained == 2
        assert words(await everything_after(session, {"t1-000001": 2})) == [None]


@pytest.mark.parametrize("end", [TurnFinal, TurnInterrupted])
async def test_the_end_of_a_turn_whose_words_are_gone_says_so(
    quiet_clock: MockClock, end: type[TurnFinal | TurnInterrupted]
) -> None:
    async with tavern(Limits(replay_time=0)) as stage:
        session = stage.start()
        turn_id = session.begin_turn(SIX[0])
        if end is TurnInterrupted:
            await trio.sleep(0.5)
            session.cancel(turn_id)
        await session.finalize(turn_id).wait()
        events = await everything_after(session, {turn_id: 1})
    assert only(events, end).text_forgotten
    assert laws.check(events, after={turn_id: 1}) == []


async def test_a_session_drops_its_oldest_turns_past_its_bytes_and_no_others(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_bytes_per_session=60_000)) as stage:
        long, short = stage.start(), stage.start()
        await settle(short, SIX)
        turns = await settle(long, ["1000"] * 6)
        kept = long.statistics()
        assert 2 <= kept.turns_retained < 6
        assert kept.bytes_retained <= kept.replay_bytes_per_session
        assert short.statistics().turns_retained == 6
        after = dict.fromkeys(turns[:1], 0)
        assert words(await everything_after(long, after)) == [
            *[None] * (6 - kept.turns_retained),
            *["word " * 1000] * kept.turns_retained,
        ]
        await settle(long, ["A speech."])  # more than may be kept at all
        assert (long.statistics().turns_retained, long.statistics().bytes_retained) == (0, 0)


async def test_the_bytes_of_all_sessions_are_bounded_also_those_of_closed_ones(quiet_clock: MockClock) -> None:
    limits = Limits(replay_bytes=100_000)
    async with tavern(limits) as stage:
        for _ in range(30):
            session = stage.start()
            await settle(session, ["1000"])
            assert stage.statistics().bytes_retained <= limits.replay_bytes
            await session.close()
        assert stage.statistics().bytes_retained > limits.replay_bytes / 2
        gone = stage.closed_session("s1-000001")
        assert gone.statistics().turns_retained == 0
        assert stage.closed_session(session.session_id).statistics().turns_retained == 1


async def test_a_user_that_floods_takes_no_words_of_others(quiet_clock: MockClock) -> None:
    limits = Limits(replay_bytes=200_000)
    async with tavern(limits) as stage:
        stage.divide(is_divided=True)
        ann = stage.start(SessionParams(session_id="ann:inn"))
        await settle(ann, SIX)
        floods = [stage.start(SessionParams(session_id=f"mallory:{number}")) for number in range(20)]
        for _ in range(3):
            for flood in floods:
                await settle(flood, ["1000"])
        assert ann.statistics().turns_retained == 6
        late = stage.start(SessionParams(session_id="late:inn"))
        await settle(late, SIX)
        assert late.statistics().turns_retained == 6
        assert sum(flood.statistics().bytes_retained for flood in floods) <= limits.replay_bytes / 2


async def test_the_turns_of_users_that_left_are_dropped_when_others_go_on(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_time=10.0)) as stage:
        stage.divide(is_divided=True)
        users = [stage.start(SessionParams(session_id=f"user{number}:inn")) for number in range(5)]
        for user in users:
            await settle(user, SIX[:2])
        await trio.sleep(11)
        await settle(users[2], SIX[:1])
        assert [user.statistics().turns_retained for user in users] == [0, 0, 1, 0, 0]
        for user in users:
            await user.close()
        assert stage.statistics().bytes_retained > 0
    assert stage.statistics().bytes_retained > 0


async def test_dropped_sessions_count_no_more(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_sessions=1)) as stage:
        for _ in range(3):
            session = stage.start()
            await settle(session, SIX[:2])
            await session.close()
            kept = session.statistics().bytes_retained
            assert stage.statistics().bytes_retained == kept > 0


class Restless:
    async def run(self, context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        for number in range(100):
            call = {"tool_call_id": f"c{number}", "tool_name": "rent"}
            context.emit_event(draft_event("tool_call_started", call))
            context.emit_event(
                draft_event("tool_call_result", {**call, "canceled": False, "summary": f"{number}" * 200})
            )


@pytest.mark.parametrize("said", ["0", "10", "3000", "tools"])
async def test_a_kept_turn_counts_for_about_what_it_takes(quiet_clock: MockClock, said: str) -> None:
    cast = standard_cast(ScriptedModel(script), workloads={"restless": Restless()})
    params = TurnParams(workload="restless") if said == "tools" else None
    async with open_stage(cast) as stage:
        session = stage.start()

        async def play(turns: int) -> None:
            for _ in range(turns):
                await session.finalize(session.begin_turn(said, params)).wait()

        await play(3)
        tracemalloc.start()
        try:
            before, counted_before = _allocated(), stage.statistics().bytes_retained
            await play(20)
            took, counted = _allocated() - before, stage.statistics().bytes_retained - counted_before
        finally:
            tracemalloc.stop()
    assert 0.7 * took < counted < 1.4 * took


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def test_a_settled_turn_holds_no_intents(quiet_clock: MockClock) -> None:
    class Stages:
        async def run(self, context: InteractionContext) -> None:
            await trio.lowlevel.checkpoint()
            context.request_commit(Intent(IntentType.DECISION, "rent", {"words": "x" * 10_000}))

    async with open_stage(standard_cast(workloads={"stages": Stages()})) as stage:
        session = stage.start()
        await take_turn(session, "Go.", TurnParams(workload="stages"))
        assert session.statistics().bytes_retained < 10_000
