"""Loader: a turn that waits for a model reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    CommitOutcome,
    EventType,
    InterruptReason,
    ModelError,
    ModelLoading,
    ModelReady,
    ModelSelected,
    ModelTraits,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import failing_load, stalling_load
from footlights_actors import Say, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from trio.testing import MockClock

    from footlights import Model, Output, Prompt


def hello(_: Prompt) -> list[Say]:
    return [Say("Hello.")]


class ColdModel:
    """Loads as it is told to, and is hot from then on."""

    model_id = "cold"
    traits = ModelTraits()

    def __init__(self, load: Callable[[Callable[[float], None]], Awaitable[None]]) -> None:
        self._load = load
        self.warm_state = WarmState.COLD

    async def load(self, report: Callable[[float], None]) -> None:
        await self._load(report)
        self.warm_state = WarmState.HOT

    async def unload(self) -> None:
        await trio.lowlevel.checkpoint()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "Hello."


def reporting(*progress: float) -> ColdModel:
    async def load(report: Callable[[float], None]) -> None:
        for each in progress:
            await trio.lowlevel.checkpoint()
            report(each)

    return ColdModel(load)


async def played(*models: Model, params: TurnParams | None = None) -> list[StreamEvent]:
    async with open_stage(standard_cast(*models)) as stage:
        return await take_turn(stage.start(), "Hello?", params)


def progress_of(events: list[StreamEvent]) -> list[float | None]:
    return [loading.progress for loading in payloads(events, ModelLoading)]


# -- hot, warm, cold


@pytest.mark.shows("core-45", "core-47")
async def test_a_hot_model_is_ready_at_once_and_nothing_is_loaded() -> None:
    events = await played(ScriptedModel(hello))
    assert [event.event_type for event in events[1:3]] == [EventType.MODEL_SELECTED, EventType.MODEL_READY]
    assert only(events, ModelSelected) == ModelSelected("scripted", "default")
    assert only(events, ModelReady) == ModelReady("scripted", WarmState.HOT, 0)


@pytest.mark.shows("core-43", "core-46", "core-47")
@pytest.mark.parametrize(("warm_state", "cold_start"), [(WarmState.COLD, True), (WarmState.WARM, False)])
async def test_loading_is_shown_before_it_begins_and_readiness_says_how_long_it_took(
    quiet_clock: MockClock, warm_state: WarmState, cold_start: bool
) -> None:
    events = await played(ScriptedModel(hello, warm_state=warm_state, load_seconds=2.5))
    types = [event.event_type for event in events[:3]]
    assert types == [EventType.TURN_ACCEPTED, EventType.MODEL_SELECTED, EventType.MODEL_LOADING]
    assert {event.mono_ts_ms for event in events[:3]} == {events[0].mono_ts_ms}
    assert payloads(events, ModelLoading)[0] == ModelLoading("scripted", cold_start)
    assert only(events, ModelReady) == ModelReady("scripted", warm_state, 2500)


async def test_a_model_that_was_loaded_once_is_hot_for_the_next_turn(quiet_clock: MockClock) -> None:
    model = ScriptedModel(hello, warm_state=WarmState.COLD, load_seconds=1)
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        await take_turn(session, "Hello?")
        assert only(await take_turn(session, "Hello?"), ModelReady) == ModelReady("scripted", WarmState.HOT, 0)


async def test_a_stage_unloads_what_it_loaded_and_nothing_else(quiet_clock: MockClock) -> None:
    hot, cold = ScriptedModel(hello, model_id="hot"), ScriptedModel(hello, warm_state=WarmState.COLD)
    async with open_stage(standard_cast(hot, cold)) as stage:
        session = stage.start()
        for each in ("hot", "scripted"):
            await take_turn(session, "Hello?", TurnParams(model=each))
        assert [each.warm_state for each in stage.models] == [WarmState.HOT, WarmState.HOT]
    assert (hot.warm_state, cold.warm_state) == (WarmState.HOT, WarmState.WARM)


async def test_a_turn_may_name_its_model() -> None:
    events = await played(ScriptedModel(hello), ScriptedModel(hello, model_id="b"), params=TurnParams(model="b"))
    assert only(events, ModelSelected) == ModelSelected("b", "requested")


async def test_two_turns_share_one_load(quiet_clock: MockClock) -> None:
    model = ScriptedModel(hello, warm_state=WarmState.COLD, load_seconds=10)
    async with open_stage(standard_cast(model)) as stage:
        first, second = stage.start(), stage.start()
        first_id = first.begin_turn("Hello?")
        await trio.sleep(4)
        events = await take_turn(second, "Hello?")
        await first.finalize(first_id).wait()
    assert trio.current_time() == pytest.approx(10)
    assert only(events, ModelReady) == ModelReady("scripted", WarmState.COLD, 6000)


# -- progress


@pytest.mark.shows("core-46")
async def test_progress_is_shown_in_whole_percents_and_only_forward() -> None:
    events = await played(reporting(0.1, 0.105, 0.5, 0.3, 0.5, 0.75, 1.0))
    assert progress_of(events) == [None, 0.1, 0.5, 0.75, 1.0]


async def test_a_model_that_reports_all_the_time_is_shown_a_hundred_times_at_most() -> None:
    events = await played(reporting(*(step / 10_000 for step in range(10_001))))
    shown = progress_of(events)[1:]
    assert len(shown) <= 100
    assert shown[-1] == 1.0


@pytest.mark.parametrize(
    "odd",
    [
        float("nan"),
        -1.0,
        7.0,
        float("inf"),
        float("-inf"),
    ],
)
async def test_progress_that_makes_no_sense_does_no_harm(odd: float) -> None:
    events = await played(reporting(odd, 0.5, odd))
    assert only(events, TurnFinal).text == "Hello."
    assert all(progress is None or 0 < progress <= 1 for progress in progress_of(events))


@pytest.mark.parametrize("percent", [29, 57, 58])
async def test_a_whole_percent_is_shown_as_it_is(percent: int) -> None:
    assert progress_of(await played(reporting(percent / 100))) == [None, percent / 100]


async def test_progress_after_the_cancel_is_not_shown(quiet_clock: MockClock) -> None:
    async def load(report: Callable[[float], None]) -> None:
        report(0.2)
        try:
            await trio.sleep_forever()
        finally:
            report(0.9)

    events = await canceled_while_loading(ColdModel(load))
    assert progress_of(events) == [None, 0.2]


async def test_progress_that_comes_late_does_no_harm() -> None:
    reports: list[Callable[[float], None]] = []

    class Late(ColdModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            reports[0](0.9)
            yield "Hello."

    async def load(report: Callable[[float], None]) -> None:
        await trio.lowlevel.checkpoint()
        reports.append(report)

    events = await played(Late(load))
    assert only(events, TurnFinal).text == "Hello."


# -- failures


@pytest.mark.parametrize(
    ("error", "detail"), [(ModelError("what the player said"), "model_error"), (OSError("what he said"), "OSError")]
)
async def test_a_load_that_fails_ends_the_turn_and_quotes_nothing(
    caplog: pytest.LogCaptureFixture, error: Exception, detail: str
) -> None:
    events = await played(failing_load(ScriptedModel(hello), error=error))
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, detail, "model_load_failed")
    assert payloads(events, ModelReady) == []
    assert str(error) not in caplog.text + repr(events)


async def test_a_load_that_failed_may_be_tried_again(quiet_clock: MockClock) -> None:
    failures = iter([OSError(), None])

    async def load(report: Callable[[float], None]) -> None:
        await trio.sleep(1)
        failure = next(failures)
        if failure is not None:
            raise failure

    model = ColdModel(load)
    assert only(await played(model), TurnInterrupted).reason is InterruptReason.MODEL_ERROR
    assert only(await played(model), TurnFinal).text == "Hello."


async def canceled_while_loading(model: Model) -> list[StreamEvent]:
    async with (
        open_stage(standard_cast(model)) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Hello?")
        await trio.sleep(1)
        session.cancel(turn_id)
        return [event async for event in stream.until_commit(turn_id)]


async def test_a_turn_may_be_cancelled_while_its_model_loads(quiet_clock: MockClock) -> None:
    events = await canceled_while_loading(stalling_load(ScriptedModel(hello)))
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED
    assert trio.current_time() == pytest.approx(1)


async def test_a_cancelled_load_does_not_lock_out_the_next_turn(quiet_clock: MockClock) -> None:
    model = ScriptedModel(hello, warm_state=WarmState.COLD, load_seconds=5)
    async with open_stage(standard_cast(model)) as stage:
        session, neighbour = stage.start(), stage.start()
        first, second = session.begin_turn("Hello?"), neighbour.begin_turn("Hello?")
        await trio.sleep(1)
        session.cancel(first)
        assert (await neighbour.finalize(second).wait()).commit_outcome is CommitOutcome.OK
