"""A model that fails before its first token is asked once more, then replaced; after it, nothing is tried again."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    EventType,
    FootlightsError,
    InterruptReason,
    KeyRefused,
    Limits,
    ModelError,
    ModelLoadFailed,
    ModelNotFound,
    ModelReady,
    ModelSelected,
    ModelServerError,
    ModelTimeout,
    ModelTraits,
    ModelUnavailable,
    ModelUnreachable,
    Persona,
    PromptTooLarge,
    RateLimitError,
    RemoteNotAllowed,
    StreamError,
    Tool,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.events import ErrorInfo
from footlights.testing import only, payloads, take_turn
from footlights_actors import Call, Fail, Pause, Say, ScriptedModel, standard_cast
from footlights_kit.explore import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio.testing import MockClock

    from footlights import Cast, Prompt, SessionParams, StreamEvent
    from footlights.events import JsonValue
    from footlights.tools.tool import ToolContext
    from footlights_actors import Line
    from footlights_kit.trial import Trial

UNREACHABLE = "127.0.0.1:9 cannot be reached (ConnectError)."


class Asked(ScriptedModel):
    """Fails with the next of these errors, and speaks when there are none left. Notes when it is asked."""

    def __init__(
        self,
        model_id: str,
        *errors: Exception,
        words: str = "Hello.",
        after: Sequence[Line] = (),
        remote: bool = False,
        slots: int | None = None,
        load_error: Exception | None = None,
        memory_bytes: int = 0,
    ) -> None:
        self.at: list[float] = []
        self.prompts: list[Prompt] = []
        left = list(errors)

        def script(prompt: Prompt) -> Sequence[Line]:
            self.at.append(trio.current_time())
            self.prompts.append(prompt)
            return [*after, Fail(left.pop(0))] if left else [Say(words)]

        super().__init__(
            script,
            model_id=model_id,
            warm_state=WarmState.HOT if load_error is None else WarmState.COLD,
            load_error=load_error,
            load_seconds=1.0,
            traits=ModelTraits(remote=remote, slots=slots, memory_bytes=memory_bytes),
        )


def cast_of(*models: Asked, fallback: bool = True, tools: Sequence[Tool] = (), memory: int | None = None) -> Cast:
    persona = Persona(models=[model.model_id for model in models])
    return standard_cast(*models, personas=persona, fallback=fallback, tools=tools, model_memory_bytes=memory)


async def played(
    cast: Cast,
    params: TurnParams | None = None,
    *,
    limits: Limits | None = None,
    session: SessionParams | None = None,
) -> list[StreamEvent]:
    async with open_stage(cast, limits=limits) as stage:
        return await take_turn(stage.start(session), "A room?", params)


# -- another model


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ModelUnreachable(sentence=UNREACHABLE), "model_unreachable", UNREACHABLE),
        (RateLimitError("what the player said"), "model_rate_limited", "The model's server limits requests."),
        (ModelServerError(sentence="It failed (HTTP 503)."), "model_server_error", "It failed (HTTP 503)."),
        (ModelUnavailable(), "model_unavailable", "The model cannot answer now."),
    ],
)
async def test_the_next_model_takes_the_place_of_one_that_is_unavailable(
    error: ModelUnavailable, code: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    events = await played(cast_of(Asked("a", error), Asked("b", words="B speaks.")))
    assert payloads(events, ModelSelected) == [
        ModelSelected("a", "persona"),
        ModelSelected("b", "fallback", ErrorInfo(code, sentence)),
    ]
    assert only(events, TurnFinal).text == "B speaks."
    assert sentence in caplog.text
    assert "what the player said" not in caplog.text + repr(events)


async def test_a_model_that_cannot_be_loaded_is_replaced(quiet_clock: MockClock) -> None:
    events = await played(cast_of(Asked("a", load_error=OSError("xyzzy")), Asked("b")))
    assert payloads(events, ModelSelected)[1] == ModelSelected(
        "b", "fallback", ErrorInfo("model_load_failed", "The model could not be loaded.")
    )
    assert [ready.model_id for ready in payloads(events, ModelReady)] == ["b"]


async def test_models_are_tried_in_order_and_the_last_failure_ends_the_turn(quiet_clock: MockClock) -> None:
    models = Asked("a", RateLimitError()), Asked("b", load_error=OSError()), Asked("c", ModelUnreachable())
    events = await played(cast_of(*models))
    assert [selected.model_id for selected in payloads(events, ModelSelected)] == ["a", "b", "c"]
    assert only(events, TurnInterrupted).error == ErrorInfo(
        "model_unreachable", "The model's server cannot be reached."
    )


@pytest.mark.parametrize(
    "error",
    [KeyRefused(), ModelNotFound(), PromptTooLarge(), StreamError(), ModelError(), TimeoutError(), ValueError()],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_that_is_a_mistake_is_shown_and_not_hidden_by_another_model(error: Exception) -> None:
    spare = Asked("b")
    events = await played(cast_of(Asked("a", error), spare))
    found = only(events, TurnInterrupted).error
    assert found is not None
    expected: dict[type[Exception], type[FootlightsError]] = {TimeoutError: ModelTimeout, ValueError: ModelError}
    assert found.code == expected.get(type(error), type(error)).code  # type: ignore[attr-defined]
    assert spare.at == []


async def test_after_the_first_token_nothing_is_tried_again() -> None:
    first, spare = Asked("a", RateLimitError(retry_after=1), after=[Say("Well, ")]), Asked("b")
    events = await played(cast_of(first, spare))
    assert only(events, TurnInterrupted).error == ErrorInfo("model_rate_limited", "The model's server limits requests.")
    assert (len(first.at), spare.at) == (1, [])


async def test_after_a_tool_nothing_is_tried_again() -> None:
    rung: list[int] = []

    async def ring(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        rung.append(1)
        return None

    first = ScriptedModel(lambda prompt: [Fail(RateLimitError())] if prompt.exchanges else [Call("bell")], model_id="a")
    spare = Asked("b")
    cast = standard_cast(first, spare, personas=Persona(models=["a", "b"]), tools=[Tool(name="bell", run=ring)])
    events = await played(cast)
    assert only(events, TurnInterrupted).reason is InterruptReason.MODEL_ERROR
    assert (rung, spare.at) == ([1], [])


async def test_a_model_that_the_turn_names_is_not_replaced() -> None:
    spare = Asked("b")
    events = await played(cast_of(Asked("a", ModelUnreachable()), spare), TurnParams(model="a"))
    assert only(events, TurnInterrupted).error is not None
    assert spare.at == []


async def test_fallback_can_be_turned_off() -> None:
    spare = Asked("b")
    events = await played(cast_of(Asked("a", ModelUnreachable()), spare, fallback=False))
    assert only(events, TurnInterrupted).detail == "model_unreachable"
    assert spare.at == []


@pytest.mark.shows("gateway-33")
async def test_the_prompt_is_fitted_to_the_model_that_gets_it() -> None:
    first = Asked("a", RateLimitError())
    small = ScriptedModel(lambda _: [Say("Hello.")], model_id="b", traits=ModelTraits(context_tokens=1))
    cast = standard_cast(first, small, personas=Persona(models=["a", "b"]))
    assert only(await played(cast), TurnInterrupted).detail == "prompt_too_large"


async def test_the_room_of_a_model_that_failed_is_free_for_the_next(quiet_clock: MockClock) -> None:
    big = Asked("a", RateLimitError(), memory_bytes=8)
    other = Asked("b", memory_bytes=8)
    other.cool(WarmState.COLD)
    events = await played(cast_of(big, other, memory=8))
    assert only(events, TurnFinal).text == "Hello."


# -- consent


async def test_no_turn_falls_from_a_local_model_to_a_remote_one_without_consent() -> None:
    remote = Asked("b", remote=True)
    cast = cast_of(Asked("a", ModelUnreachable()), remote, Asked("c", words="C speaks."))
    events = await played(cast)
    assert [selected.model_id for selected in payloads(events, ModelSelected)] == ["a", "c"]
    assert remote.at == []


async def test_a_remote_model_without_consent_is_passed_over_and_that_is_said() -> None:
    remote = Asked("a", remote=True)
    events = await played(cast_of(remote, Asked("b")))
    assert payloads(events, ModelSelected) == [
        ModelSelected(
            "b",
            "fallback",
            ErrorInfo("remote_not_allowed", RemoteNotAllowed.sentence),
        )
    ]
    assert remote.at == []


async def test_without_an_allowed_model_nothing_is_sent() -> None:
    models = Asked("a", remote=True), Asked("b", remote=True)
    events = await played(cast_of(*models))
    assert only(events, TurnInterrupted).detail == "remote_not_allowed"
    assert payloads(events, ModelSelected) == []
    assert [model.at for model in models] == [[], []]


# -- once more


async def test_a_model_that_went_cold_during_the_wait_is_loaded_again_before_it_is_asked(
    quiet_clock: MockClock,
) -> None:
    first = Asked("a", RateLimitError(retry_after=3), RateLimitError(retry_after=3))
    events: list[StreamEvent] = []

    async def play() -> None:
        events.extend(await played(cast_of(first, Asked("b", words="B speaks."))))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        await trio.sleep(1)
        first.cool(WarmState.COLD)
    assert [selected.model_id for selected in payloads(events, ModelSelected)] == ["a", "a", "b"]
    assert [selected.reason for selected in payloads(events, ModelSelected)] == ["persona", "persona", "fallback"]
    assert [ready.warm_state for ready in payloads(events, ModelReady)] == [
        WarmState.HOT,
        WarmState.COLD,
        WarmState.HOT,
    ]
    assert [round(later - first.at[0]) for later in first.at] == [0, 4], "it is asked once more, and not twice"


async def test_a_model_that_says_when_is_asked_once_more_then(quiet_clock: MockClock) -> None:
    first, spare = Asked("a", RateLimitError(retry_after=3)), Asked("b")
    events = await played(cast_of(first, spare))
    assert [later - first.at[0] for later in first.at] == [0, 3]
    assert only(events, ModelSelected).model_id == "a"
    assert only(events, TurnFinal).text == "Hello."
    assert first.prompts[0] == first.prompts[1]
    assert spare.at == []


async def test_a_model_is_asked_only_once_more(quiet_clock: MockClock) -> None:
    first = Asked("a", ModelServerError(retry_after=3), ModelServerError(retry_after=3))
    events = await played(cast_of(first, Asked("b", RateLimitError(retry_after=2), words="B speaks.")))
    assert len(first.at) == 2
    assert only(events, TurnFinal).text == "B speaks."
    assert events[-2].mono_ts_ms - events[0].mono_ts_ms == 5000


@pytest.mark.parametrize(
    ("asked_for", "limit"),
    [(3.0, 2.0), (0.0, 0.0), (-1.0, 9.0), (nan, 9.0), (3.0, 0.0), (None, 10.0), (86_400.0, 10.0)],
)
async def test_a_wait_that_is_too_long_or_turned_off_is_not_waited_for(
    asked_for: float | None, limit: float, quiet_clock: MockClock
) -> None:
    first = Asked("a", RateLimitError(retry_after=asked_for))
    events = await played(cast_of(first, Asked("b")), limits=Limits(retry_wait=limit))
    assert len(first.at) == 1
    assert [selected.model_id for selected in payloads(events, ModelSelected)] == ["a", "b"]
    assert events[-2].mono_ts_ms == events[0].mono_ts_ms


async def test_the_slot_is_free_during_the_wait(quiet_clock: MockClock) -> None:
    model = Asked("a", RateLimitError(retry_after=5), slots=1)
    async with open_stage(cast_of(model)) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(take_turn, stage.start(), "A room?")
        await trio.sleep(1)
        events = await take_turn(stage.start(), "And I?")
        assert events[-2].mono_ts_ms == events[0].mono_ts_ms
    assert len(model.at) == 3


async def test_a_wait_is_no_stall_and_ends_with_the_turn(quiet_clock: MockClock) -> None:
    limits = Limits(stall_timeout=2, load_timeout=2, turn_timeout=100, retry_wait=50)
    first = Asked("a", RateLimitError(retry_after=40))
    assert only(await played(cast_of(first), limits=limits), TurnFinal).text == "Hello."
    limits = Limits(stall_timeout=2, load_timeout=2, turn_timeout=10, retry_wait=50)
    events = await played(cast_of(Asked("a", RateLimitError(retry_after=40))), limits=limits)
    assert only(events, TurnInterrupted).error == ErrorInfo(
        "turn_timeout", "The turn took longer than it may (turn_timeout)."
    )
    assert events[-2].mono_ts_ms - events[0].mono_ts_ms == 10_000


async def test_silence_after_the_wait_is_a_stall(quiet_clock: MockClock) -> None:
    limits = Limits(stall_timeout=2, load_timeout=2, retry_wait=50)
    first = Asked("a", RateLimitError(retry_after=4), RateLimitError(), after=[Pause(1)])
    spare = ScriptedModel(lambda _: [Pause(30)], model_id="b")
    cast = standard_cast(first, spare, personas=Persona(models=["a", "b"]))
    events = await played(cast, limits=limits)
    assert only(events, TurnInterrupted).reason is InterruptReason.STALLED
    assert events[-2].mono_ts_ms - events[0].mono_ts_ms == 1000 + 4000 + 1000 + 2000


# -- canceled everywhere


def trouble() -> Cast:
    return cast_of(
        Asked("a", RateLimitError(retry_after=0.5), RateLimitError(), after=[Pause(0.01)]),
        Asked("b", load_error=ModelLoadFailed()),
        Asked("c", ModelUnreachable(), slots=1),
        Asked("d", words="Good evening."),
    )


def test_a_turn_that_retries_and_falls_back_is_canceled_anywhere() -> None:
    async def scenario(trial: Trial) -> None:
        async with open_stage(trouble(), wall_clock=trio.current_time) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                turn_id = session.begin_turn("A room?")
                won: list[str] = []
                trial.aim(lambda: won.extend(session.cancel(turn_id)))
                events = [event async for event in stream.until_commit(turn_id)]
                trial.disarm()
            await trio.testing.wait_all_tasks_blocked()
            assert all(model.turns == model.rounds_running == 0 for model in stage.models)
        ends = [event.event_type for event in events if event.event_type in ENDS]
        assert ends == [EventType.TURN_INTERRUPTED if won else EventType.TURN_FINAL, EventType.COMMIT_FINAL]
        assert won or [selected.model_id for selected in payloads(events, ModelSelected)] == ["a", "b", "c", "d"]

    assert cancel_everywhere(scenario, orders=2, pairs=20).points > 10


ENDS = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL}
