"""A turn that is begun once: the same request id never begins a second turn, and loses none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    BusyRule,
    CommitOutcome,
    InterruptReason,
    InvalidCommand,
    LedgerUnavailable,
    Limits,
    MemoryLedger,
    Mode,
    SessionClosed,
    SessionParams,
    SideEffects,
    Tool,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.models.sampling import Sampling
from footlights.modes import ExecutionPolicy, decide
from footlights.session.begin_once import LEDGER_PATIENCE, MAX_REMEMBERED
from footlights.testing import only
from footlights.testing.faults import FlakyLedger
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from footlights_kit.explore import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from trio.testing import MockClock

    from footlights import Cast, InteractionSession, Prompt, ToolContext
    from footlights.events import JsonValue
    from footlights_kit.trial import Trial

FORGETFUL = Limits(replay_turns=0)


def cast(pace: float = 0.01) -> Cast:
    return standard_cast(ScriptedModel(lambda _: [Say("Good evening.")], pace=pace))


class CountingLedger(MemoryLedger):
    """It counts its reads, and waits before each if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.gate: trio.Event | None = None

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        self.reads += 1
        found = await super().find_request(session_id, request_id)
        if self.gate is not None:
            await self.gate.wait()
        return found


async def once(session: InteractionSession, said: str = "A room?", request_id: str = "r1", **how: Any) -> str:
    return await session.begin_turn_once(said, request_id=request_id, **how)


# -- the same id, the same turn


async def test_the_same_id_gives_the_same_turn_while_it_is_open_and_while_it_is_retained(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        turn_id = await once(session)
        assert await once(session) == turn_id
        await session.finalize(turn_id).wait()
        assert await once(session) == turn_id
        assert session.begin_turn("Another?") == "t1-000002"


@pytest.mark.parametrize("name", [None, "inn"])
async def test_the_same_id_gives_the_same_turn_when_only_the_ledger_has_it(
    quiet_clock: MockClock, name: str | None
) -> None:
    async with open_stage(cast(), limits=FORGETFUL) as stage:
        session = stage.start(SessionParams(session_id=name))
        turn_id = await once(session)
        await session.finalize(turn_id).wait()
        assert session.statistics().turns_retained == 0
        assert await once(session) == turn_id
        assert await once(session, "The id alone decides now.") == turn_id
        assert await once(session, request_id="r2") == "t1-000002"


async def test_the_same_id_gives_the_same_turn_after_a_restart_and_in_a_session_that_was_closed(tmp_path: Path) -> None:
    path, inn = tmp_path / "inn.ledger", SessionParams(session_id="inn")
    async with open_stage(cast(0), ledger=path) as stage:
        session = stage.start(inn)
        turn_id = await once(session)
        await session.finalize(turn_id).wait()
        await session.close()
        session = stage.start(inn)
        assert await once(session) == turn_id
    async with open_stage(cast(0), ledger=path) as stage:
        session = stage.resume("inn")
        assert await once(session) == turn_id
        assert (await session.finalize(turn_id).wait()).commit_outcome is CommitOutcome.OK
        assert await once(session, request_id="r2") == "t2-000001"


async def test_ids_belong_to_their_session(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        one, other = stage.start(), stage.start()
        await once(one)
        await once(one, request_id="r2")
        assert await once(other) == "t1-000001"
        assert await once(one, request_id="r2") == "t1-000002"


async def test_a_turn_with_a_tool_that_a_restart_cut_short_is_found_and_its_tool_is_not_run_again(
    tmp_path: Path,
) -> None:
    path, ran, runs = tmp_path / "inn.ledger", list[str](), trio.Event()

    async def pay(_: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        ran.append(context.turn_id)
        runs.set()
        return await trio.sleep_forever()

    def script(prompt: Prompt) -> list[Say | Call]:
        return [Say("Paid.")] if prompt.exchanges else [Call("pay")]

    def payers() -> Cast:
        tool = Tool(name="pay", run=pay, side_effects=SideEffects.IMMEDIATE)
        return standard_cast(ScriptedModel(script), tools=[tool])

    async with SqliteLedger(path) as durable:
        ledger = FlakyLedger(durable, failing_appends=[1])  # as if the process had ended before
        async with open_stage(payers(), ledger=ledger) as stage:
            turn_id = await once(stage.start())
            await runs.wait()
    async with open_stage(payers(), ledger=path) as stage:
        session = stage.resume("s1-000001")
        assert await once(session) == turn_id
        async with session.subscribe(after={turn_id: -1}) as stream:
            events = [event async for event in stream.until_commit(turn_id)]
    assert only(events, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
    assert ran == [turn_id]


# -- what a repeated id does not do


async def test_a_repeated_id_interrupts_nothing_and_is_not_refused_by_any_limit(quiet_clock: MockClock) -> None:
    for busy in BusyRule:
        async with open_stage(cast(), limits=Limits(max_queued_turns=0, max_concurrent_turns=1)) as stage:
            session, params = stage.start(), TurnParams(busy=busy)
            turn_id = await once(session, params=params)
            for _ in range(3):
                assert await once(session, params=params) == turn_id
            assert stage.open_turns == 1
            assert (await session.finalize(turn_id).wait()).commit_outcome is CommitOutcome.OK


async def test_admit_is_asked_before_a_new_turn_only_and_its_refusal_does_not_use_up_the_id(
    quiet_clock: MockClock,
) -> None:
    asked: list[str] = []

    def refuse() -> None:
        asked.append("refuse")
        raise Busy("Not now.")

    async with open_stage(cast()) as stage:
        session = stage.start()
        with pytest.raises(Busy, match=r"Not now\."):
            await once(session, admit=refuse)
        assert stage.open_turns == 0
        turn_id = await once(session, admit=lambda: asked.append("admit"))
        assert await once(session, admit=refuse) == turn_id == "t1-000001"
    assert asked == ["refuse", "admit"]


async def test_a_new_id_is_answered_without_reading_the_ledger_where_that_can_find_nothing(
    quiet_clock: MockClock,
) -> None:
    ledger = CountingLedger()
    async with open_stage(cast(0), ledger=ledger, limits=FORGETFUL) as stage:
        session = stage.start()
        for number in range(MAX_REMEMBERED + 1):
            await session.finalize(await once(session, request_id=f"r{number}")).wait()
        assert ledger.reads == 0
        assert await once(session, request_id="r0") == "t1-000001"
        await once(session, request_id="new")
        assert ledger.reads == 2, "a session with more ids than it remembers asks about every one"


# -- refusals


@pytest.mark.parametrize("request_id", ["", "r" * 129, "a\nb", "a\0b", "\ud800", "\u2028", 5, None, b"r", Mode.CHAT])
async def test_a_malformed_id_is_refused(request_id: Any) -> None:
    async with open_stage(cast()) as stage:
        with pytest.raises(InvalidCommand, match="1 to 128 printable characters"):
            await once(stage.start(), request_id=request_id)
        assert stage.open_turns == 0


@pytest.mark.parametrize("request_id", ["r" * 128, "\U0001f36f" * 128, "a b", "'); DROP TABLE requests", "\u00e9"])
async def test_any_printable_text_is_an_id(quiet_clock: MockClock, request_id: str) -> None:
    async with open_stage(cast(), limits=FORGETFUL) as stage:
        session = stage.start()
        turn_id = await once(session, request_id=request_id)
        await session.finalize(turn_id).wait()
        assert await once(session, request_id=request_id) == turn_id


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        {"said": "A bath?"},
        {"params": TurnParams(sampling=Sampling(temperature=0))},
        {"params": TurnParams(mode=Mode.CHAT)},
    ],
)
async def test_the_same_id_with_another_input_or_other_parameters_is_refused_while_the_turn_is_retained(
    quiet_clock: MockClock, other: dict[str, Any], is_settled: bool
) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        turn_id = await once(session)
        if is_settled:
            await session.finalize(turn_id).wait()
        with pytest.raises(InvalidCommand, match="another input"):
            await once(session, **other)
        assert await once(session) == turn_id


async def test_another_decision_about_the_mode_is_the_same_request(quiet_clock: MockClock) -> None:
    chat, execution = (decide(words, ExecutionPolicy.AUTO) for words in ("Hello", "Simulate a cohort of 50 players"))
    assert chat.mode is not execution.mode
    async with open_stage(cast()) as stage:
        session = stage.start()
        turn_id = await once(session, decision=chat)
        assert await once(session, decision=execution) == turn_id
        assert await once(session) == turn_id


async def test_a_refused_turn_does_not_use_up_its_id(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        session = stage.start()
        with pytest.raises(InvalidCommand, match="persona"):
            await once(session, params=TurnParams(persona="nobody"))
        busy = session.begin_turn("Hello?")
        with pytest.raises(Busy):
            await once(session, params=TurnParams(busy=BusyRule.REJECT))
        await session.finalize(busy).wait()
        assert await once(session) == "t1-000002"


class BlindLedger(MemoryLedger):
    async def find_request(self, session_id: str, request_id: str) -> str | None:
        await trio.lowlevel.checkpoint()
        raise LedgerUnavailable("It cannot be read.")


async def test_no_turn_begins_while_the_ledger_cannot_be_read(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), ledger=BlindLedger()) as stage:
        named, numbered = stage.start(SessionParams(session_id="inn")), stage.start()
        with pytest.raises(Busy, match="ledger cannot be read"):
            await once(named)
        assert stage.open_turns == 0
        assert await once(numbered) == "t1-000001", "no ledger can have it"


async def test_a_ledger_that_does_not_answer_delays_a_caller_for_a_second_at_most(quiet_clock: MockClock) -> None:
    ledger = CountingLedger()
    ledger.gate = trio.Event()
    async with open_stage(cast(), ledger=ledger) as stage:
        began = trio.current_time()
        with pytest.raises(Busy, match="ledger cannot be read"):
            await once(stage.start(SessionParams(session_id="inn")))
        assert trio.current_time() - began == LEDGER_PATIENCE
        assert stage.open_turns == 0


async def test_a_session_that_closes_during_the_search_begins_nothing(quiet_clock: MockClock) -> None:
    ledger, errors = CountingLedger(), list[Exception]()
    ledger.gate = trio.Event()

    async def begin(session: InteractionSession) -> None:
        with pytest.raises(SessionClosed) as caught:
            await once(session)
        errors.append(caught.value)

    async with open_stage(cast(), ledger=ledger) as stage, trio.open_nursery() as nursery:
        session = stage.start(SessionParams(session_id="inn"))
        nursery.start_soon(begin, session)
        await trio.testing.wait_all_tasks_blocked()
        await session.close()
        ledger.gate.set()
    assert len(errors) == 1


async def test_a_turn_that_the_ledger_could_not_write_may_begin_again_once_it_is_dropped(
    quiet_clock: MockClock,
) -> None:
    ledger = FlakyLedger(MemoryLedger(), failing_appends=[1])
    async with open_stage(cast(), ledger=ledger, limits=FORGETFUL) as stage:
        session = stage.start()
        failed = await once(session)
        assert (await session.finalize(failed).wait()).commit_outcome is CommitOutcome.FAIL_CLOSED
        again = await once(session)
        assert again != failed
        assert (await session.finalize(again).wait()).commit_outcome is CommitOutcome.OK
        assert await once(session) == again


# -- many at once, and cancelled


async def test_a_turn_that_is_begun_and_dropped_during_a_search_is_found(quiet_clock: MockClock) -> None:
    ledger, found = CountingLedger(), list[str]()
    ledger.gate = trio.Event()

    async def begin(session: InteractionSession) -> None:
        found.append(await once(session))

    async with open_stage(cast(), ledger=ledger, limits=FORGETFUL) as stage:
        session = stage.start(SessionParams(session_id="inn"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin, session)
            await trio.testing.wait_all_tasks_blocked()
            slow, ledger.gate = ledger.gate, None
            turn_id = await once(session)
            await session.finalize(turn_id).wait()
            slow.set()
        assert found == [turn_id]
        assert ledger.reads == 3


def _explore(make_cast: Callable[[], Cast], limits: Limits) -> None:
    async def scenario(trial: Trial) -> None:
        ledger = CountingLedger()
        answers: list[str] = []
        scopes = [trio.CancelScope() for _ in range(3)]

        async def begin(session: InteractionSession, scope: trio.CancelScope) -> None:
            with scope:
                answers.append(await once(session))

        async with open_stage(make_cast(), ledger=ledger, limits=limits, wall_clock=trio.current_time) as stage:
            session = stage.start(SessionParams(session_id="inn"))
            async with trio.open_nursery() as nursery:
                trial.aim(scopes[0].cancel, scopes[1].cancel)
                for scope in scopes:
                    nursery.start_soon(begin, session, scope)
            trial.disarm()
            answers.append(await once(session))
            await session.finalize(answers[0]).wait()
            answers.append(await once(session))
            assert set(answers) == {"t1-000001"}
            assert len(await ledger.latest("inn", 9)) == 1

    assert cancel_everywhere(scenario, orders=4, pairs=60).points > 10


@pytest.mark.parametrize("limits", [Limits(), FORGETFUL], ids=["retained", "forgotten"])
def test_one_id_begins_one_turn_whichever_of_its_calls_are_cancelled(limits: Limits) -> None:
    _explore(lambda: cast(0), limits)
