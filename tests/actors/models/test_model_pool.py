"""Model pool: loads are shared, a model in use is not unloaded, and every waiting user is served."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    EventType,
    InterruptReason,
    InvalidCommand,
    Limits,
    ModelChoice,
    ModelError,
    ModelLoading,
    ModelReady,
    ModelSelected,
    ModelTraits,
    RegistrationError,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.testing import cancel_everywhere, only, payloads, take_turn
from footlights.testing.faults import failing_load, slow_tool
from footlights_actors import Call, Pause, Say, ScriptedModel, Stall, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio.testing import MockClock

    from footlights import InteractionSession, ModelQuery, Prompt, Stage, StreamEvent
    from footlights.testing import Trial
    from footlights_actors import Line

COLD = WarmState.COLD


class Watched(ScriptedModel):
    """Keeps a diary of what was asked of it."""

    def __init__(self, model_id: str, memory_bytes: int = 0, *, seconds: float = 1, slots: int | None = None) -> None:
        traits = ModelTraits(memory_bytes=memory_bytes, slots=slots)
        super().__init__(self._script, model_id=model_id, warm_state=COLD, load_seconds=seconds, traits=traits)
        self.diary: list[str] = []

    def _script(self, prompt: Prompt) -> list[Line]:
        return [Say(self.model_id), Pause(1)]

    async def load(self, report: Callable[[float], None]) -> None:
        self.diary.append("load")
        try:
            await super().load(report)
        except trio.Cancelled:
            self.diary.append("abandoned")
            raise

    async def unload(self) -> None:
        self.diary.append("unload")
        await super().unload()


def use(model_id: str) -> TurnParams:
    return TurnParams(model=model_id)


@asynccontextmanager
async def stage_of(*models: ScriptedModel, memory: int | None = None) -> AsyncGenerator[Stage, None]:
    async with open_stage(standard_cast(*models, model_memory_bytes=memory)) as stage:
        yield stage


async def take_turns(*turns: tuple[InteractionSession, str]) -> list[list[StreamEvent]]:
    """One turn in each session, all at once, with that model."""
    taken: list[list[StreamEvent]] = [[] for _ in turns]

    async def take(index: int, session: InteractionSession, model_id: str) -> None:
        taken[index] = await take_turn(session, "Hello?", use(model_id))

    async with trio.open_nursery() as nursery:
        for index, (session, model_id) in enumerate(turns):
            nursery.start_soon(take, index, session, model_id)
    return taken


def status(stage: Stage, model_id: str) -> tuple[WarmState, bool, int, int, int]:
    (it,) = [each for each in stage.models if each.model_id == model_id]
    return it.warm_state, it.loading, it.turns, it.rounds_running, it.rounds_waiting


# -- loads


async def test_a_load_is_shared_by_all_who_wait_for_it(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        taken = await take_turns(*((stage.start(), "a") for _ in range(3)))
    assert model.diary == ["load", "unload"]
    assert [only(events, ModelReady).load_ms for events in taken] == [1000, 1000, 1000]


async def test_who_comes_later_hears_how_far_it_is_and_waits_for_the_rest(quiet_clock: MockClock) -> None:
    model = Watched("a", seconds=10)
    async with stage_of(model) as stage:
        early, late = stage.start(), stage.start()
        early.begin_turn("Hello?")
        await trio.sleep(5.5)
        events = await take_turn(late, "Hello?")
    assert only(events, ModelReady) == ModelReady("a", COLD, 4500)
    assert [each.progress for each in payloads(events, ModelLoading)][:2] == [None, 0.5]
    assert model.diary == ["load", "unload"]


async def test_a_load_outlives_the_turn_that_began_it_if_another_waits(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        first, second = stage.start(), stage.start()
        first.begin_turn("Hello?")
        await trio.sleep(0.5)
        turn_id = second.begin_turn("Hello?")
        await trio.sleep(0.1)
        first.cancel()
        await second.finalize(turn_id).wait()
    assert model.diary == ["load", "unload"]


async def test_a_load_without_a_waiter_is_abandoned(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Hello?")
        await trio.sleep(0.5)
        assert status(stage, "a") == (COLD, True, 1, 0, 0)
        session.cancel()
        await session.finalize(turn_id).wait()
        await trio.testing.wait_all_tasks_blocked()
        assert model.diary == ["load", "abandoned"]
        assert status(stage, "a") == (COLD, False, 0, 0, 0)
        assert only(await take_turn(session, "Hello?"), ModelReady).load_ms == 1000


async def test_who_comes_while_a_load_is_being_abandoned_waits_it_out_and_loads_again(quiet_clock: MockClock) -> None:
    class Reluctant(Watched):
        async def load(self, report: Callable[[float], None]) -> None:
            self.diary.append("load")
            try:
                await trio.sleep(1)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(5)
            self.cool(WarmState.HOT)

    model = Reluctant("a")
    async with stage_of(model) as stage:
        session = stage.start()
        session.begin_turn("Hello?")
        await trio.sleep(0.5)
        session.cancel()
        events = await take_turn(session, "Hello?")
    assert model.diary == ["load", "load", "unload"]
    assert only(events, ModelReady).load_ms == 11_000


async def test_a_prewarm_while_a_load_is_being_abandoned_is_not_lost(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        session = stage.start()
        session.begin_turn("Hello?")
        await trio.sleep(0.5)
        session.cancel()
        await trio.lowlevel.checkpoint()
        stage.prewarm("a")
        await trio.sleep(2)
        assert status(stage, "a")[0] is WarmState.HOT


async def test_a_load_that_leaves_the_model_cold_has_failed(quiet_clock: MockClock) -> None:
    class Cold(Watched):
        async def load(self, report: Callable[[float], None]) -> None:
            report(1.0)

    async with stage_of(Cold("a")) as stage:
        events = await take_turn(stage.start(), "Hello?")
    assert only(events, TurnInterrupted) == failed(
        InterruptReason.MODEL_ERROR, "model_error", "model_load_failed", "The model was loaded, and is not hot."
    )
    assert payloads(events, ModelReady) == []


async def test_a_model_that_dies_while_a_turn_waits_for_it_is_loaded_again(quiet_clock: MockClock) -> None:
    model = Watched("a", slots=1)
    async with stage_of(model) as stage:
        first, second = stage.start(), stage.start()
        first.begin_turn("Hello?")
        await trio.sleep(1.5)
        turn_id = second.begin_turn("Hello?")
        await trio.sleep(0.1)
        model.cool(COLD)
        async with second.subscribe() as stream:
            events = [event async for event in stream.until_commit(turn_id)]
    assert only(events, ModelReady) == ModelReady("a", COLD, 1000)
    assert only(events, TurnFinal).text == "a"


async def test_a_load_that_fails_fails_for_all_who_wait_and_is_tried_again(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Hello.")], warm_state=COLD, load_seconds=1, load_error=ModelError("No."))
    async with stage_of(model) as stage:
        sessions = [stage.start(), stage.start()]
        for events in await take_turns(*((session, "scripted") for session in sessions)):
            assert only(events, TurnInterrupted) == failed(
                InterruptReason.MODEL_ERROR, "model_error", "model_load_failed"
            )
        assert status(stage, "scripted") == (COLD, False, 0, 0, 0)
        assert only(await take_turn(sessions[0], "Again?"), TurnInterrupted).reason is InterruptReason.MODEL_ERROR


async def test_a_model_may_be_warmed_before_anybody_wants_it(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        stage.prewarm("a")
        stage.prewarm("a")
        await trio.sleep(2)
        stage.prewarm("a")
        events = await take_turn(stage.start(), "Hello?")
        with pytest.raises(InvalidCommand, match="no model 'b'"):
            stage.prewarm("b")
    assert only(events, ModelReady) == ModelReady("a", WarmState.HOT, 0)
    assert model.diary == ["load", "unload"]


async def test_a_turn_that_leaves_does_not_stop_a_prewarm(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        session = stage.start()
        stage.prewarm("a")
        session.begin_turn("Hello?")
        await trio.sleep(0.5)
        session.cancel()
        await trio.sleep(1)
        assert status(stage, "a") == (WarmState.HOT, False, 0, 0, 0)


async def test_a_prewarm_that_fails_affects_no_turn(quiet_clock: MockClock) -> None:
    broken = failing_load(ScriptedModel(lambda _: [Say("Hello.")], model_id="broken", warm_state=COLD))
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hello.")]), broken)) as stage:
        stage.prewarm("broken")
        await trio.testing.wait_all_tasks_blocked()
        assert only(await take_turn(stage.start(), "Hello?"), TurnFinal).text == "Hello."


async def test_a_stage_that_closes_abandons_its_loads(quiet_clock: MockClock) -> None:
    model = Watched("a")
    async with stage_of(model) as stage:
        stage.prewarm("a")
        await trio.sleep(0.5)
    assert model.diary == ["load", "abandoned"]


# -- memory


async def test_the_model_that_was_used_longest_ago_makes_room(quiet_clock: MockClock) -> None:
    a, b, c = (Watched(name, 100) for name in "abc")
    async with stage_of(a, b, c, memory=200) as stage:
        session = stage.start()
        for name in "abac":
            await take_turn(session, "Hello?", use(name))
        assert [each.warm_state for each in stage.models] == [WarmState.HOT, WarmState.WARM, WarmState.HOT]
        events = await take_turn(session, "Hello?", use("b"))
    assert only(events, ModelReady) == ModelReady("b", WarmState.WARM, 1000)
    assert a.diary == ["load", "unload"]


async def test_a_model_in_use_is_never_taken_away(quiet_clock: MockClock) -> None:
    a, b = Watched("a", 100), Watched("b", 100)
    async with stage_of(a, b, memory=150) as stage:
        first, second = stage.start(), stage.start()
        turn_id = first.begin_turn("Hello?", use("a"))
        await trio.sleep(0.5)
        events = await take_turn(second, "Hello?", use("b"))
        assert (await first.finalize(turn_id).wait()).commit_outcome == "ok"
    # It waits for the rest of the turn with a, 1.5 seconds, and then loads for one.
    assert only(events, ModelReady).load_ms == 2500
    assert a.diary == ["load", "unload"]


async def test_models_that_take_nothing_never_make_room(quiet_clock: MockClock) -> None:
    free, a, b = Watched("free"), Watched("a", 100), Watched("b", 100)
    async with stage_of(free, a, b, memory=100) as stage:
        session = stage.start()
        for name in ("free", "a", "b"):
            await take_turn(session, "Hello?", use(name))
        assert free.diary == ["load"]


def test_a_model_that_can_never_fit_is_refused_at_once() -> None:
    with pytest.raises(RegistrationError, match="a takes 101 bytes"):
        standard_cast(Watched("a", 101), model_memory_bytes=100)


async def test_a_model_that_cannot_be_unloaded_stays_and_the_next_gets_an_error(quiet_clock: MockClock) -> None:
    class Stuck(Watched):
        async def unload(self) -> None:
            raise OSError

    async with stage_of(Stuck("a", 100), Watched("b", 100), memory=100) as stage:
        session = stage.start()
        await take_turn(session, "Hello?", use("a"))
        events = await take_turn(session, "Hello?", use("b"))
        assert only(events, TurnInterrupted) == failed(
            InterruptReason.MODEL_ERROR,
            "model_error",
            "model_load_failed",
            "There is no memory for the model, and no other model can be unloaded.",
        )
        assert only(await take_turn(session, "Hello?", use("a")), TurnFinal).text == "a"


async def test_a_model_that_is_leaving_is_not_hot_any_more(quiet_clock: MockClock) -> None:
    class Slow(Watched):
        async def unload(self) -> None:
            await trio.sleep(5)
            await super().unload()

    a = Slow("a", 100)
    async with stage_of(a, Watched("b", 100), memory=100) as stage:
        session, other = stage.start(), stage.start()
        await take_turn(session, "Hello?", use("a"))
        session.begin_turn("Hello?", use("b"))
        await trio.sleep(1)
        assert status(stage, "a")[0] is WarmState.WARM
        events = await take_turn(other, "Hello?", use("a"))
    # 4 seconds until it is gone, then b loads and speaks and goes, then it is loaded again.
    assert only(events, ModelReady).warm_state is WarmState.WARM
    assert a.diary == ["load", "unload", "load", "unload"]


async def test_a_model_that_waits_for_room_delays_no_other(quiet_clock: MockClock) -> None:
    a, b, c, free = Watched("a", 60), Watched("b", 60), Watched("c", 10), Watched("free")
    async with stage_of(a, b, c, free, memory=100) as stage:
        first, second, third, fourth = (stage.start() for _ in range(4))
        await take_turn(first, "Hello?", use("a"))
        first.begin_turn("Hello?", use("a"))
        await trio.sleep(0.1)
        second.begin_turn("Hello?", use("b"))
        await trio.sleep(0.1)
        taken = await take_turns((third, "c"), (fourth, "free"))
    assert [only(events, ModelReady).load_ms for events in taken] == [1000, 1000]


async def test_two_that_wait_for_a_model_that_is_stuck_are_both_told(quiet_clock: MockClock) -> None:
    class Stuck(Watched):
        async def unload(self) -> None:
            raise OSError

    async with stage_of(Stuck("a", 100), Watched("b", 100), Watched("c", 100), memory=100) as stage:
        session = stage.start()
        await take_turn(session, "Hello?", use("a"))
        stage.prewarm("b")
        stage.prewarm("c")
        await trio.sleep(1)
        assert not any(each.loading for each in stage.models)


async def test_a_model_that_was_stuck_may_leave_after_it_was_used_again(quiet_clock: MockClock) -> None:
    class OnceStuck(Watched):
        async def unload(self) -> None:
            self.diary.append("unload")
            if self.diary.count("unload") == 1:
                raise OSError
            await ScriptedModel.unload(self)

    async with stage_of(OnceStuck("a", 100), Watched("b", 100), memory=100) as stage:
        session = stage.start()
        for name in "aba":
            await take_turn(session, "Hello?", use(name))
        assert only(await take_turn(session, "Hello?", use("b")), TurnFinal).text == "b"


async def test_one_that_was_just_prewarmed_is_not_the_first_to_leave(quiet_clock: MockClock) -> None:
    a, b, c = (Watched(name, 100) for name in "abc")
    async with stage_of(a, b, c, memory=200) as stage:
        session = stage.start()
        await take_turn(session, "Hello?", use("a"))
        stage.prewarm("b")
        await trio.sleep(2)
        await take_turn(session, "Hello?", use("c"))
        assert [each.warm_state for each in stage.models] == [WarmState.WARM, WarmState.HOT, WarmState.HOT]


# -- slots


async def test_a_model_generates_no_more_rounds_at_once_than_it_has_slots(quiet_clock: MockClock) -> None:
    model = Watched("a", slots=2)
    async with stage_of(model) as stage:
        sessions = [stage.start() for _ in range(5)]
        turn_ids = [session.begin_turn("Hello?") for session in sessions]
        await trio.sleep(1.5)
        assert status(stage, "a") == (WarmState.HOT, False, 5, 2, 3)
        for session, turn_id in zip(sessions, turn_ids, strict=True):
            await session.finalize(turn_id).wait()
        assert trio.current_time() == pytest.approx(1 + 3)
        assert status(stage, "a") == (WarmState.HOT, False, 0, 0, 0)


async def test_a_turn_says_that_its_model_is_ready_when_it_has_a_slot(quiet_clock: MockClock) -> None:
    model = Watched("a", slots=1, seconds=0)
    async with stage_of(model) as stage:
        stage.start().begin_turn("Hello?")
        await trio.sleep(0.25)
        events = await take_turn(stage.start(), "Hello?")
    at = {event.event_type: event.mono_ts_ms for event in events}
    assert (at[EventType.MODEL_SELECTED], at[EventType.MODEL_READY]) == (250, 1000)
    assert only(events, ModelReady) == ModelReady("a", WarmState.HOT, 0)


async def test_to_wait_in_line_is_not_to_be_stalled(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Pause(20), Say("Next.")], traits=ModelTraits(slots=1))
    async with open_stage(standard_cast(model), limits=Limits(stall_timeout=30, turn_timeout=1000)) as stage:
        taken = await take_turns(*((stage.start(), "scripted") for _ in range(5)))
    assert [only(events, TurnFinal).text for events in taken] == ["Next."] * 5


async def test_a_turn_gives_its_slot_away_while_its_tools_run(quiet_clock: MockClock) -> None:
    def script(prompt: Prompt) -> list[Line]:
        if prompt.user == "Quick.":
            return [Say("Quick.")]
        return [Say("Done.")] if prompt.exchanges else [Call("slow")]

    model = ScriptedModel(script, traits=ModelTraits(slots=1))
    async with open_stage(standard_cast(model, tools=[slow_tool(5)])) as stage:
        slow, quick = stage.start(), stage.start()
        turn_id = slow.begin_turn("Slow.")
        await trio.sleep(1)
        await take_turn(quick, "Quick.")
        assert trio.current_time() == pytest.approx(1)
        await slow.finalize(turn_id).wait()


async def test_a_cancelled_turn_gives_its_slot_back(quiet_clock: MockClock) -> None:
    model = ScriptedModel(
        lambda prompt: [Stall()] if prompt.user == "Stall." else [Say("Hello.")], traits=ModelTraits(slots=1)
    )
    async with open_stage(standard_cast(model)) as stage:
        stalled, waiting, next_one = stage.start(), stage.start(), stage.start()
        stalled.begin_turn("Stall.")
        waiting.begin_turn("Hello?")
        await trio.sleep(1)
        waiting.cancel()
        stalled.cancel()
        assert only(await take_turn(next_one, "Hello?"), TurnFinal).text == "Hello."
        assert status(stage, "scripted") == (WarmState.HOT, False, 0, 0, 0)


# -- choosing, and switching in the middle of a session


async def test_a_rule_may_choose_by_what_is_hot(quiet_clock: MockClock) -> None:
    def prefer_hot(query: ModelQuery) -> ModelChoice:
        for each in query.models:
            if each.warm_state is WarmState.HOT:
                return ModelChoice(each.model_id, "hot already")
        return ModelChoice(query.models[-1].model_id, "nothing is hot")

    async with open_stage(standard_cast(Watched("a"), Watched("b"), choose_model=prefer_hot)) as stage:
        session = stage.start()
        chosen = [only(await take_turn(session, "Hello?"), ModelSelected) for _ in range(2)]
    assert chosen == [ModelSelected("b", "nothing is hot"), ModelSelected("b", "hot already")]


async def test_a_session_may_switch_its_model_from_turn_to_turn(quiet_clock: MockClock) -> None:
    async with stage_of(Watched("a"), Watched("b")) as stage:
        session = stage.start()
        taken = [await take_turn(session, "Hello?", use(name)) for name in "abab"]
    assert [only(events, TurnFinal).text for events in taken] == list("abab")
    assert [only(events, ModelReady).warm_state for events in taken] == [COLD, COLD, WarmState.HOT, WarmState.HOT]


# -- cancelled at any moment


def test_any_turn_may_be_cancelled_at_any_point_of_loads_switches_and_waits() -> None:
    """Three sessions, two models that do not fit together, one slot each: somebody always waits for somebody."""

    async def scenario(trial: Trial) -> None:
        models = [Watched(name, 100, slots=1) for name in "ab"]
        cast = standard_cast(*models, model_memory_bytes=100)
        async with open_stage(cast, wall_clock=trio.current_time) as stage:
            sessions = [stage.start() for _ in range(3)]
            wanted = zip(sessions, "aab", strict=True)
            begun = [(session, session.begin_turn("Hello?", use(name))) for session, name in wanted]
            trial.aim(sessions[0].cancel, sessions[2].cancel)
            for session, turn_id in begun:
                await session.finalize(turn_id).wait()
            trial.disarm()
            await trio.testing.wait_all_tasks_blocked()
            assert [(each.turns, each.rounds_running, each.rounds_waiting) for each in stage.models] == [(0, 0, 0)] * 2
            assert not any(each.loading for each in stage.models)
            assert only(await take_turn(sessions[0], "Hello?", use("a")), TurnFinal).text == "a"
        assert all(each.warm_state is not WarmState.HOT for each in models)

    assert cancel_everywhere(scenario, orders=2, pairs=60).points > 20


def test_a_stage_may_be_cancelled_at_any_point_of_a_load() -> None:
    async def scenario() -> None:
        async with open_stage(standard_cast(Watched("a", slots=1)), wall_clock=trio.current_time) as stage:
            stage.prewarm("a")
            session = stage.start()
            await session.finalize(session.begin_turn("Hello?")).wait()

    assert cancel_everywhere(scenario).points > 10
