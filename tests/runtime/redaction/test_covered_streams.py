"""Covered subscribers get lawful streams without secrets, and the others the same streams with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import Limits, TokenDelta, TurnFinal, TurnInterrupted, laws, open_stage, tool
from footlights.events import ToolCallResult
from footlights.params import Mode, TurnParams
from footlights.redaction.secret_filter import SecretFilter
from footlights.testing import cancel_everywhere, payloads
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

    from footlights import InteractionSession, Stage, StreamEvent
    from footlights.models.model import Prompt

from attrs import evolve

KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
BLOTS = "*" * len(KEY)
TEXT = f"The key is {KEY}, and my card 4111 1111 1111 1111. Keep them."
SHOWN = f"The key is {BLOTS}, and my card {'*' * 19}. Keep them."


@tool
async def look_up() -> dict[str, str]:
    """Look up the vault."""
    return {"password": "three little words"}


def inn(*, limits: Limits | None = None) -> AbstractAsyncContextManager[Stage]:
    def answer(prompt: Prompt) -> list[Say | Pause | Call]:
        if prompt.user == "vault":
            return [Say("It says: three little words. Bye.")] if prompt.rounds else [Call("look_up")]
        return [each for piece in range(0, len(TEXT), 3) for each in (Say(TEXT[piece : piece + 3]), Pause(0.1))]

    cast = evolve(standard_cast(ScriptedModel(answer), tools=[look_up]), output_filter=SecretFilter())
    return open_stage(cast, limits=limits)


def text_of(events: list[StreamEvent]) -> str:
    """The text that the deltas make, each at its offset."""
    text = ""
    for delta in payloads(events, TokenDelta):
        assert delta.offset == len(text)
        text += delta.delta
    return text


async def stream_of(
    session: InteractionSession, said: str = "Hello?", params: TurnParams | None = None
) -> list[StreamEvent]:
    async with session.subscribe() as stream:
        turn_id = session.begin_turn(said, params)
        return [event async for event in stream.until_commit(turn_id)]


async def test_a_covered_stream_is_lawful_and_hides_what_is_split_over_its_deltas(quiet_clock: MockClock) -> None:
    async with inn() as stage:
        session = stage.start()
        async with session.subscribe() as plain:
            events = await stream_of(session.covered)
            raw = [event async for event in plain.until_commit(events[0].turn_id)]
        assert laws.check(events) == laws.check(raw) == []
        assert (text_of(events), text_of(raw)) == (SHOWN, TEXT)
        assert payloads(events, TurnFinal)[0].text == SHOWN
        assert payloads(raw, TurnFinal)[0].text == TEXT
        assert len(events) > 10, "it is streamed, not sent at the end"


async def test_who_resumes_anywhere_sees_the_same_blots(quiet_clock: MockClock) -> None:
    async with inn() as stage:
        session = stage.start().covered
        events = await stream_of(session)
        turn_id = events[0].turn_id
        for seen in range(len(events) - 1):
            async with session.subscribe({turn_id: events[seen].seq}) as stream:
                rest = [event async for event in stream.until_commit(turn_id)]
            assert laws.check(rest, after={turn_id: events[seen].seq}) == []
            assert text_of(events[: seen + 1]) == SHOWN[: len(text_of(events[: seen + 1]))]
            for delta in payloads(rest, TokenDelta):
                assert delta.delta == SHOWN[delta.offset : delta.offset + len(delta.delta)]


async def test_gaps_are_declared_and_the_final_text_heals_them(quiet_clock: MockClock) -> None:
    async with inn(limits=Limits(best_effort_max_events_per_turn=3)) as stage:
        session = stage.start().covered
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Hello?")
            await session.finalize(turn_id).wait()
            events = [event async for event in stream.until_commit(turn_id)]
        assert laws.check(events) == []
        assert text_of(events) != SHOWN
        assert payloads(events, TurnFinal)[0].text == SHOWN


async def test_a_value_of_a_tools_result_is_blotted_in_the_text_that_quotes_it(quiet_clock: MockClock) -> None:
    async with inn() as stage:
        events = await stream_of(stage.start().covered, "vault", TurnParams(mode=Mode.EXECUTION))
        assert laws.check(events) == []
        assert payloads(events, ToolCallResult)[0].error is None
        assert payloads(events, TurnFinal)[0].text == f"It says: {'*' * 18}. Bye."


async def test_a_cancel_drops_what_is_held_and_what_was_heard_is_covered(quiet_clock: MockClock) -> None:
    async with inn() as stage:
        session = stage.start().covered
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Hello?")
            events: list[StreamEvent] = []
            async for event in stream.until_commit(turn_id):
                events.append(event)
                if len(text_of(events)) > 20 and not payloads(events, TurnInterrupted):
                    session.heard(turn_id, event.seq)
                    session.cancel(turn_id)
        assert laws.check(events, canceled=[turn_id]) == []
        ended = payloads(events, TurnInterrupted)[0]
        assert ended.heard is not None
        assert ended.heard.text == text_of(events) == SHOWN[: len(ended.heard.text)]


def test_a_covered_turn_can_be_cancelled_everywhere() -> None:
    async def scenario() -> None:
        async with inn() as stage:
            events = await stream_of(stage.start().covered, "vault", TurnParams(mode=Mode.EXECUTION))
            assert "three" not in text_of(events)

    cancel_everywhere(scenario, orders=1)


async def test_an_uncovered_cast_holds_nothing_back(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say(KEY[:9]), Say(KEY[9:])]))) as stage:
        events = await stream_of(stage.start().covered)
        assert text_of(events) == KEY
