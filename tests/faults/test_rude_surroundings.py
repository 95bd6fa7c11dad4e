"""Faults of hosts, tools, models and workloads: none affects another turn or session."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights import (
    Busy,
    BusyRule,
    CommitFinal,
    Detached,
    EventType,
    Intent,
    InteractionContext,
    InvalidEvent,
    Limits,
    MemoryLedger,
    SessionClosed,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolContext,
    ToolError,
    TurnInterrupted,
    TurnParams,
    UnknownTurn,
    draft_event,
    open_stage,
)
from footlights.authority.rules import Ruling, every_turn, refuse
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import FlakyLedger, deaf_tool, slow_tool
from footlights_actors import Call, Line, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from trio.testing import MockClock

    from footlights import Prompt
    from footlights.authority import CommitRecord, TurnRequest, World
    from footlights.events import JsonValue

pytestmark = pytest.mark.usefixtures("interruptible")


def asking(*calls: Call) -> ScriptedModel:
    def script(prompt: Prompt) -> Sequence[Line]:
        return calls if not prompt.exchanges else [Say("Done.")]

    return ScriptedModel(script)


# -- tools


async def test_a_tool_of_a_round_that_fails_is_not_begun_behind_its_turns_back(quiet_clock: MockClock) -> None:
    ran: list[str] = []

    async def bomb(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        ran.append("bomb")
        return None

    cast = standard_cast(asking(Call("bomb"), Call("bomb")), tools=[Tool(name="bomb", run=bomb)])
    ledger = FlakyLedger(MemoryLedger(), delay=0.1)
    async with open_stage(cast, ledger=ledger, limits=Limits(max_turn_events=4)) as stage:
        events = await take_turn(stage.start(), "Go on.")
        await trio.sleep(1)
        result = payloads(events, ToolCallResult)[0]
        assert (result.canceled, result.side_effects_may_have_occurred) == (True, False)
    assert ran == []


async def test_an_error_that_cannot_be_printed_is_an_error_all_the_same() -> None:
    class Mute(ToolError):
        def __str__(self) -> str:
            raise ValueError

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        raise Mute

    async with open_stage(standard_cast(asking(Call("mute")), tools=[Tool(name="mute", run=run)])) as stage:
        events = await take_turn(stage.start(), "Go on.")
    result = payloads(events, ToolCallResult)[0]
    assert result.error is not None
    assert events[-2].event_type is EventType.TURN_FINAL


async def test_a_ledger_that_breaks_while_a_tool_is_recorded_affects_no_other() -> None:
    class Forgetful(MemoryLedger):
        async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
            raise OSError("no space left")

    async with open_stage(
        standard_cast(asking(Call("slow")), tools=[slow_tool(0, "slow")]), ledger=Forgetful()
    ) as stage:
        session = stage.start()
        assert (await take_turn(session, "Go on."))[-2].event_type is EventType.TURN_FINAL
        assert (await take_turn(session, "Go on."))[-2].event_type is EventType.TURN_FINAL


async def test_a_tool_request_that_names_no_tool_is_the_models_fault() -> None:
    async with open_stage(standard_cast(asking(Call(["rent"])))) as stage:  # type: ignore[arg-type]  # that is the point
        events = await take_turn(stage.start(), "Go on.")
    assert only(events, TurnInterrupted).reason == "model_error"


# -- workloads


async def test_workloads_that_ignore_their_cancel_are_counted_until_they_are_gone(quiet_clock: MockClock) -> None:
    class Deaf:
        async def run(self, context: InteractionContext) -> None:
            with trio.CancelScope(shield=True):
                await trio.sleep(10)

    limits = Limits(max_open_turns=3)
    async with open_stage(standard_cast(workloads={"deaf": Deaf()}), limits=limits) as stage:
        session = stage.start()
        for _ in range(3):
            session.begin_turn("Hello?", TurnParams(workload="deaf", busy=BusyRule.INTERRUPT))
            await trio.sleep(0.1)
        assert stage.statistics().open_turns == 1
        with pytest.raises(Busy):
            session.begin_turn("Hello?", TurnParams(workload="deaf", busy=BusyRule.INTERRUPT))
        await trio.sleep(20)
        session.begin_turn("Hello?", TurnParams(workload="deaf"))


READY: dict[str, object] = {"model_id": "m", "warm_state": "cold", "load_ms": 5}
LOADING: dict[str, object] = {"model_id": "m", "cold_start": True}


@pytest.mark.parametrize(
    "story",
    [
        [("model_ready", READY)],
        [("model_loading", LOADING), ("model_ready", {**READY, "model_id": "other"})],
        [("model_loading", {**LOADING, "model_id": "other"})],
        [("model_ready", {**READY, "warm_state": "hot"})],
        [("model_loading", LOADING), ("model_ready", {**READY, "warm_state": "hot", "load_ms": 0})],
        [("model_loading", {**LOADING, "progress": 0.5}), ("model_loading", {**LOADING, "progress": 0.4})],
    ],
)
async def test_a_workload_cannot_contradict_itself_about_its_model(story: list[tuple[str, dict[str, object]]]) -> None:
    class Liar:
        async def run(self, context: InteractionContext) -> None:
            context.emit_event(draft_event("model_selected", {"model_id": "m", "reason": "whim"}))
            *before, (last_type, last) = story
            for event_type, payload in before:
                context.emit_event(draft_event(event_type, payload))
            with pytest.raises(InvalidEvent):
                context.emit_event(draft_event(last_type, last))

    async with open_stage(standard_cast(workloads={"liar": Liar()})) as stage:
        await take_turn(stage.start(), "Go on.", TurnParams(workload="liar"))


@pytest.mark.parametrize("issue", [(5, "x"), ("", "x"), ("code", None)])
async def test_an_issue_that_says_nothing_is_an_error_of_its_rule(issue: tuple[str, str]) -> None:
    def rule(world: object, intents: tuple[Intent, ...]) -> Ruling:
        return refuse(*issue)

    cast = standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]), rules={"rule": every_turn(rule)})
    async with open_stage(cast) as stage:
        events = await take_turn(stage.start(), "Go on.")
    assert [each.code for each in only(events, CommitFinal).issues] == ["rule_error"]


# -- subscribers


async def test_who_comes_back_is_not_told_what_ended_before_it_first_came(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
        session = stage.start()
        for _ in range(2):
            await session.finalize(session.begin_turn("Long ago.")).wait()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Now.")
            await anext(stream)
        async with session.subscribe(after=stream.cursor) as stream:
            events = [event async for event in stream.until_commit(turn_id)]
    assert {event.turn_id for event in events} == {turn_id}


async def test_until_commit_of_a_turn_that_is_settled_ends_at_once(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Now.")
        await session.finalize(turn_id).wait()
        async with session.subscribe() as stream:
            assert [event async for event in stream.until_commit(turn_id)] == []
            with pytest.raises(UnknownTurn):
                stream.until_commit("t1-000099")


async def test_a_commit_in_doubt_does_not_hide_the_ones_that_are_certain(quiet_clock: MockClock) -> None:
    class SecondHangs(MemoryLedger):
        async def append(
            self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()
        ) -> None:
            if self._records:
                await trio.sleep_forever()
            await super().append(records, world, requests)

    cast = standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))
    async with open_stage(cast, ledger=SecondHangs(), limits=Limits(shutdown_deadline=1)) as stage:
        session = stage.start()
        stream = await session.subscribe().__aenter__()
        first = session.begin_turn("One.")
        session.begin_turn("Two.")
        await session.finalize(first).wait()
    seen: list[StreamEvent] = []
    while not stream.outbox.is_empty:
        seen += await stream.receive_batch()
    with pytest.raises(Detached):
        await anext(stream)
    assert [event.turn_id for event in seen if event.event_type is EventType.COMMIT_FINAL] == [first]


# -- the host


def test_ctrl_c_while_the_stage_closes_leaves_unwrapped_and_keeps_the_hosts_error() -> None:
    class Interrupting(MemoryLedger):
        async def append(
            self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()
        ) -> None:
            signal.raise_signal(signal.SIGINT)
            await trio.sleep(1)
            await super().append(records, world, requests)

    commits: list[bool] = []

    async def host() -> None:
        cast = standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")], pace=1))
        async with open_stage(cast, ledger=Interrupting()) as stage:
            session = stage.start()
            handle = session.finalize(session.begin_turn("One."))
            commits.append(False)
            await trio.lowlevel.checkpoint()
            try:
                raise ZeroDivisionError
            finally:
                commits[0] = handle.commit is not None

    with pytest.raises(KeyboardInterrupt) as caught:
        trio.run(host, clock=trio.testing.MockClock(autojump_threshold=0))
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert commits == [False]


async def test_a_cancel_safe_tool_of_a_round_that_fails_is_cancelled(quiet_clock: MockClock) -> None:
    ended: list[float] = []

    async def wait(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.sleep(5)
        ended.append(trio.current_time())
        return None

    tool = evolve(Tool(name="wait", run=wait), cancel_safe=True, side_effects=SideEffects.MARKED)
    cast = standard_cast(asking(Call("wait"), Call("wait")), tools=[tool])
    async with open_stage(cast, limits=Limits(max_turn_events=4)) as stage:
        await take_turn(stage.start(), "Go on.")
        await trio.sleep(10)
    assert ended == []


async def test_a_stage_that_fails_while_it_closes_does_not_hide_the_hosts_error(quiet_clock: MockClock) -> None:
    class Broken(MemoryLedger):
        async def append(
            self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()
        ) -> None:
            await trio.sleep(1)
            raise OSError("a bug")

    async def host() -> None:
        async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")])), ledger=Broken()) as stage:
            session = stage.start()
            session.begin_turn("One.")
            raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as caught:
        await host()
    assert caught.value.subgroup(ZeroDivisionError) is not None
    assert caught.value.subgroup(OSError) is not None


async def test_a_stage_that_comes_down_takes_no_more_turns(quiet_clock: MockClock) -> None:
    class Exits:
        async def run(self, context: InteractionContext) -> None:
            await trio.sleep(0.1)
            raise KeyboardInterrupt

    refused: list[bool] = []
    tools = [Tool(name="deaf", run=deaf_tool(1).run)]
    cast = standard_cast(asking(Call("deaf")), tools=tools, workloads={"exits": Exits()})

    async def host() -> None:
        async with open_stage(cast) as stage:
            session, other = stage.start(), stage.start()
            session.begin_turn("Wait.")
            other.begin_turn("Leave.", TurnParams(workload="exits"))
            try:
                await trio.sleep_forever()
            finally:
                with pytest.raises(SessionClosed):
                    session.begin_turn("One more?")
                refused.append(True)

    with pytest.raises(BaseExceptionGroup):
        await host()
    assert refused == [True]
