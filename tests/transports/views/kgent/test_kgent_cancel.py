"""Dialogues canceled at every point: one `done`, and never a part of a turn in the trace."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import ModelError, RateLimitError, WarmState, open_stage
from footlights.testing import cancel_everywhere
from footlights_actors import Fail, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.views.kgent.conversation import Conversation, ConversationState
from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.responder import Responder
from footlights_transports.views.kgent.template_workloads import with_templates
from tests.kit.views.kgent_kit import ASKED, kinds, lawful, talk, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Stage
    from footlights.models.model import Model
    from footlights.testing import Trial
    from footlights_actors import Line

SAID = "Well, let me think about it."
CONFIG = ChatFluxConfig(buffer_chunks=2, emit_thoughts=True)


def thoughtful() -> Model:
    lines: list[Line] = [Say("Well, let"), Pause(0.2), Say(" me think about it.")]
    return ScriptedModel(lambda _: lines, pace=0.01, warm_state=WarmState.COLD, load_seconds=0.1, load_steps=2)


def failing() -> Model:
    attempts = iter([RateLimitError("later"), ModelError("down")])
    return ScriptedModel(lambda _: [Pause(0.1), Fail(next(attempts, ModelError("down")))])


def conversation_of(stage: Stage) -> Conversation:
    responder = Responder(stage.start(), templates=STANDARD_TEMPLATES)
    return Conversation(responder, CONFIG, wall_clock=lambda: 1_700_000_000.0)


def check_trace(conversation: Conversation, whole: str) -> int:
    """The number of dialogues in the trace, each complete."""
    speeches = [each for each in conversation.trace.events if each.turn_type == "SPEECH"]
    assert [each.content for each in speeches] == [whole] * len(speeches)
    thoughts = "".join(each.content for each in conversation.trace.events if each.turn_type == "THOUGHT")
    assert thoughts == whole * len(speeches), "no thought stays without its speech"
    assert len(conversation.mirror.join().take()) == len(conversation.trace)
    return len(speeches)


def explore(make_model: Callable[[], Model], whole: str) -> set[tuple[str, ...]]:
    outcomes: set[tuple[str, ...]] = set()

    async def scenario(trial: Trial) -> None:
        cast = with_templates(standard_cast(make_model()), STANDARD_TEMPLATES)
        async with open_stage(cast, wall_clock=trio.current_time) as stage:
            conversation = conversation_of(stage)
            won: list[str] = []
            trial.aim(lambda: won.extend(conversation.responder.session.cancel()))
            events = lawful(await talk(conversation))
            trial.disarm()
            assert whole.startswith(text(events))
            assert check_trace(conversation, whole) == kinds(events).count("message") == (not won)
            outcomes.add(tuple(dict.fromkeys(kinds(events))))

    assert cancel_everywhere(scenario, orders=2, pairs=10).points > 20
    return outcomes


@pytest.mark.shows("gateway-25", "gateway-43", "gateway-44", "gateway-87")
def test_a_turn_canceled_anywhere_leaves_a_complete_dialogue_or_nothing() -> None:
    assert explore(thoughtful, SAID) == {("chunk", "message", "done"), ("chunk", "done"), ("done",)}


def test_a_retry_or_fallback_canceled_anywhere_leaves_a_complete_dialogue_or_nothing() -> None:
    fallback = STANDARD_TEMPLATES.fallback(DialogueMode.REFLECT)
    assert fallback is not None
    assert explore(failing, fallback) >= {("chunk", "message", "done"), ("done",)}


def test_a_waiting_turn_canceled_anywhere_leaves_a_complete_dialogue_or_nothing() -> None:
    outcomes: set[tuple[str, ...]] = set()

    async def scenario(trial: Trial) -> None:
        async with open_stage(standard_cast(thoughtful()), wall_clock=trio.current_time) as stage:
            conversation = conversation_of(stage)
            won: list[str] = []
            other = stage.session(conversation.responder.session.session_id).begin_turn("A tale, please.")
            trial.aim(lambda: won.extend(conversation.responder.session.cancel()))
            events = lawful(await talk(conversation))
            trial.disarm()
            assert check_trace(conversation, SAID) == kinds(events).count("message") == (set(won) <= {other})
            outcomes.add(tuple(dict.fromkeys(kinds(events))))

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
    assert outcomes == {("chunk", "message", "done"), ("chunk", "done"), ("done",)}


@pytest.mark.shows("gateway-25")
def test_the_reader_may_be_canceled_anywhere() -> None:
    """Its turn is canceled with it, nothing partial is recorded, and the next dialogue can run."""
    kept: set[int] = set()

    async def scenario(trial: Trial) -> None:
        async with open_stage(standard_cast(thoughtful()), wall_clock=trio.current_time) as stage:
            conversation = conversation_of(stage)
            with trio.CancelScope() as listening:
                trial.aim(listening.cancel)
                async with aclosing(conversation.dialogue_stream(ASKED)) as events:
                    async for _ in events:
                        await trio.lowlevel.checkpoint()
            trial.disarm()
            kept.add(check_trace(conversation, SAID))
            await talk(conversation)
            assert check_trace(conversation, SAID) >= 1
            await conversation.drain()
            assert conversation.state is ConversationState.STOPPED

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
    assert kept == {0, 1}


def test_a_dialogue_ends_when_its_stage_closes_at_any_point() -> None:
    async def scenario(trial: Trial) -> None:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as host:
                async with open_stage(standard_cast(thoughtful()), wall_clock=trio.current_time) as stage:
                    conversation = conversation_of(stage)
                    ended = trio.Event()

                    async def listen() -> None:
                        events = await talk(conversation)
                        assert check_trace(conversation, SAID) == kinds(events).count("message")
                        ended.set()

                    nursery.start_soon(listen)
                    trial.aim(host.cancel)
                    await ended.wait()
                    trial.disarm()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
