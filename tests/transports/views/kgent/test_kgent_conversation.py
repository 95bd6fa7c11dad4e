"""Conversation: the events of its dialogues, their order, failures, templates and budgets."""

from __future__ import annotations

from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import (
    BudgetConfig,
    BusyRule,
    EventType,
    Limits,
    ModelError,
    RateLimitError,
    RegistrationError,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.authority import MemoryLedger
from footlights.testing.faults import FlakyLedger
from footlights.token_bucket import TokenBucket
from footlights_actors import Fail, Flood, Pause, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.views.kgent.conversation import Conversation, ConversationState
from footlights_transports.views.kgent.pure.messages import ChatMessage, DialogueMode
from footlights_transports.views.kgent.pure.record import TurnType
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.responder import COMMIT_PATIENCE, Responder
from footlights_transports.views.kgent.template_workloads import with_templates
from tests.kit.views.kgent_kit import (
    ANSWERED,
    ASKED,
    PRECOMPUTED,
    HungLedger,
    kinds,
    lawful,
    open_room,
    payload,
    saying,
    scripted,
    talk,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio.testing import MockClock

    from footlights import Prompt
    from footlights_actors import Line
    from footlights_transports.views.kgent.pure.messages import ChatEvent


# -- the contracts of the seed, by their names


@pytest.mark.shows("gateway-10", "gateway-22", "gateway-24", "gateway-39", "gateway-70", "gateway-71")
async def test_complete_dialogue_emits_speech_turn() -> None:
    async with open_room() as room:
        await talk(room.conversation, PRECOMPUTED["input"]["content"], DialogueMode(PRECOMPUTED["input"]["mode"]))
        (turn,) = room.conversation.trace.events
        assert turn.turn_type == TurnType.SPEECH
        assert turn.content == PRECOMPUTED["output"]["content"]


@pytest.mark.shows("gateway-6", "gateway-13", "gateway-69")
async def test_chunks_monotonic_sequence() -> None:
    async with open_room() as room:
        events = [event async for event in room.conversation.dialogue_stream("test")]
        sequences = [event.sequence for event in events]
        assert sequences == sorted(sequences)
        assert len(sequences) == len(set(sequences))


@pytest.mark.shows("gateway-12")
async def test_stream_content_identity(quiet_clock: MockClock) -> None:
    async with open_room(saying(pace=0.1)) as room:
        events = await talk(room.conversation)
        assert text(events) == room.speeches[0] == ANSWERED
        assert len(events) > 3


# -- events


@pytest.mark.shows("gateway-11", "gateway-24", "gateway-87")
async def test_the_message_event_repeats_the_turn() -> None:
    async with open_room() as room:
        first, second = await talk(room.conversation), await talk(room.conversation, mode=DialogueMode.ADVISE)
        one, other = room.conversation.trace.events
        assert payload(first, "message")["turn_id"] == one.id
        assert payload(first, "message")["tokens_used"] == len(ANSWERED.split())
        assert payload(first, "message")["entropy_cost"] == one.entropy_cost == len(ANSWERED.split()) / 1_000
        assert (payload(first, "message")["mode"], payload(second, "message")["mode"]) == ("reflect", "advise")
        assert one.confidence == 0.95
        assert one.source == "kgent-soul"
        assert (one.state_hash_pre, other.state_hash_pre) == ("", one.state_hash_post)
        commits = [await room.session.finalize(turn.id).wait() for turn in (one, other)]
        assert [one.state_hash_post, other.state_hash_post] == [each.commit_digest for each in commits]
        assert room.conversation.trace.depends_on(other.id) == {one.id}
        assert [each["id"] for each in room.conversation.mirror.join().take()] == [one.id, other.id]


@pytest.mark.shows("gateway-9", "gateway-48")
@pytest.mark.parametrize("buffer_chunks", [1, 2, 5, 100])
async def test_buffer_chunks_pieces_are_one_chunk(buffer_chunks: int, quiet_clock: MockClock) -> None:
    async with open_room(saying(pace=0.1), ChatFluxConfig(buffer_chunks=buffer_chunks)) as room:
        events = await talk(room.conversation)
        assert payload(events, "done")["total_chunks"] == len(ANSWERED.split()) // buffer_chunks + 1


@pytest.mark.shows("gateway-47", "gateway-70")
@pytest.mark.parametrize(("buffer_chunks", "thoughts"), [(4, 3), (5, 2)])
async def test_emit_thoughts_adds_thoughts_and_still_one_speech(
    buffer_chunks: int, thoughts: int, quiet_clock: MockClock
) -> None:
    async with open_room(saying(pace=0.1), ChatFluxConfig(emit_thoughts=True, buffer_chunks=buffer_chunks)) as room:
        for _ in range(2):
            await talk(room.conversation)
        turns = room.conversation.trace.events
        assert [each.turn_type for each in turns] == [*["THOUGHT"] * thoughts, "SPEECH"] * 2
        assert "".join(each.content for each in turns[:thoughts]) == turns[thoughts].content == ANSWERED
        assert all(each.content for each in turns)
        assert len({each.id for each in turns}) == 2 * (thoughts + 1)


@pytest.mark.shows("gateway-22")
async def test_a_failed_dialogue_leaves_no_thoughts(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(emit_thoughts=True, buffer_chunks=1)
    async with open_room(saying(Say("Well, I"), Fail(ModelError("no")), pace=0.1), config) as room:
        assert kinds(await talk(room.conversation)) == ["chunk", "chunk", "error", "done"]
        assert room.conversation.trace.events == ()


async def test_an_empty_answer_is_complete() -> None:
    async with open_room(saying(Pause(0))) as room:
        assert kinds(await talk(room.conversation)) == ["chunk", "message", "done"]
        assert room.speeches == [""]


@pytest.mark.shows("gateway-36")
async def test_timestamps_never_go_back() -> None:
    times = iter(range(1_000, 0, -1))
    async with open_room(wall_clock=lambda: float(next(times))) as room:
        stamps = [each.timestamp for _ in range(2) for each in await talk(room.conversation)]
        assert stamps == sorted(stamps)
        assert [each.timestamp for each in room.conversation.trace.events] == [1_000.0, 1_000.0]


@pytest.mark.shows("gateway-27")
async def test_a_slow_reader_gets_the_whole_text() -> None:
    limits = Limits(best_effort_max_events_per_turn=2)
    async with open_room(saying(Flood("word ", 500)), ChatFluxConfig(buffer_chunks=1), limits=limits) as room:
        events: list[ChatEvent] = []
        async with aclosing(room.conversation.dialogue_stream(ASKED)) as stream:
            async for event in stream:
                events.append(event)
                await trio.testing.wait_all_tasks_blocked()
        assert text(lawful(events)) == "word " * 500


async def test_a_detached_reader_subscribes_again(quiet_clock: MockClock) -> None:
    limits = Limits(stall_detach=1.0)
    lines: list[Line] = [part for _ in range(4) for part in (Say("word "), Pause(2.0))]
    async with open_room(saying(*lines), ChatFluxConfig(buffer_chunks=1), limits=limits) as room:
        events: list[ChatEvent] = []
        async with aclosing(room.conversation.dialogue_stream(ASKED)) as stream:
            async for event in stream:
                events.append(event)
                await trio.sleep(5.0)
        assert text(lawful(events)) == "word " * 4
        assert room.speeches == ["word " * 4]


# -- order


@pytest.mark.shows("gateway-86")
async def test_dialogues_of_a_conversation_run_one_after_the_other() -> None:
    async with open_room() as room, trio.open_nursery() as nursery:
        order: list[str] = []

        async def run(name: str) -> None:
            message = ChatMessage("user", ASKED, correlation_id=name)
            order.extend([f"{name}{event.event_type}" async for event in room.conversation.converse(message)])

        for name in "ab":
            nursery.start_soon(run, name)
            await trio.testing.wait_all_tasks_blocked()
    assert order.index("adone") < order.index("bchunk")
    first, second = room.conversation.trace.events
    assert room.conversation.trace.depends_on(second.id) == {first.id}


async def test_more_dialogues_than_may_wait_are_refused(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(max_waiting_dialogues=1, stream_timeout=5.0)
    async with open_room(saying(Stall()), config) as room, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(talk, room.conversation)
            await trio.testing.wait_all_tasks_blocked()
        error = payload(await talk(room.conversation), "error")
        assert (error["code"], error["retry_after_seconds"]) == ("RATE_LIMITED", 10)
        await trio.sleep(10)
        assert payload(await talk(room.conversation), "error")["code"] == "STREAM_TIMEOUT", "the wait was the truth"


@pytest.mark.shows("gateway-4", "gateway-85")
async def test_a_conversation_flows_drains_and_stops(quiet_clock: MockClock) -> None:
    async with open_room(saying(Say("Well,"), Pause(1), Say(" yes."))) as room, trio.open_nursery() as nursery:
        conversation = room.conversation
        states = [conversation.state]
        told: list[list[ChatEvent]] = []

        async def run() -> None:
            told.append(await talk(conversation))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        states.append(conversation.state)
        nursery.start_soon(conversation.drain)
        await trio.testing.wait_all_tasks_blocked()
        states.append(conversation.state)
        assert payload(await talk(conversation), "error")["code"] == "SESSION_EXPIRED"
        await conversation.drain()
        assert [*states, conversation.state] == ["dormant", "flowing", "draining", "stopped"]
        assert room.speeches == ["Well, yes."], "what had begun went on to its end"
        await conversation.drain()


async def test_a_dormant_conversation_stops_at_once() -> None:
    async with open_room() as room:
        await room.conversation.drain()
        assert room.conversation.state is ConversationState.STOPPED


# -- failures


@pytest.mark.shows("gateway-35")
async def test_an_empty_message_is_invalid() -> None:
    async with open_room() as room:
        error, _ = await talk(room.conversation, "   ")
        assert error.payload["code"] == "INVALID_MESSAGE"
        assert "Fix the client's payload." in str(error.payload["message"])
        assert "retry_after_seconds" not in error.payload
        assert room.conversation.state is ConversationState.DORMANT


@pytest.mark.parametrize("message", [None, 5, b"Hello?", "half \ud800 pair"])
async def test_a_message_that_is_not_text_is_invalid(message: Any) -> None:
    async with open_room() as room:
        assert payload(await talk(room.conversation, message), "error")["code"] == "INVALID_MESSAGE"


@pytest.mark.shows("gateway-6")
async def test_a_mode_may_be_named() -> None:
    async with open_room() as room:
        named: Any = "advise"
        assert payload(await talk(room.conversation, ASKED, named), "message")["mode"] == "advise"
        unknown: Any = "shout"
        assert payload(await talk(room.conversation, ASKED, unknown), "error")["code"] == "INVALID_MESSAGE"


async def test_a_message_that_is_too_long_is_invalid() -> None:
    async with open_room(limits=Limits(max_input_bytes=10)) as room:
        assert payload(await talk(room.conversation, "x" * 11), "error")["code"] == "INVALID_MESSAGE"


async def test_a_full_stage_is_a_rate_limit() -> None:
    async with open_room(saying(Stall()), limits=Limits(max_subscribers=1)) as room, room.session.subscribe():
        assert payload(await talk(room.conversation), "error")["code"] == "RATE_LIMITED"


@pytest.mark.shows("gateway-50")
async def test_an_answer_that_takes_too_long_is_a_timeout(quiet_clock: MockClock) -> None:
    async with open_room(saying(Say("Well,"), Pause(31), Say("never."))) as room:
        began = trio.current_time()
        events = await talk(room.conversation)
        assert trio.current_time() - began == pytest.approx(30.0)
        assert kinds(events) == ["chunk", "error", "done"]
        assert payload(events, "error")["code"] == "STREAM_TIMEOUT"
        assert text(events) == "Well,", "what was said is told"
        assert room.conversation.trace.events == ()


@pytest.mark.shows("gateway-50")
async def test_stream_timeout_is_what_the_config_says(quiet_clock: MockClock) -> None:
    async with open_room(saying(Pause(3), Say("Yes.")), ChatFluxConfig(stream_timeout=2.0)) as room:
        assert payload(await talk(room.conversation), "error")["code"] == "STREAM_TIMEOUT"
    async with open_room(saying(Pause(3), Say("Yes.")), ChatFluxConfig(stream_timeout=4.0)) as room:
        assert room.conversation.state is ConversationState.DORMANT
        await talk(room.conversation)
        assert room.speeches == ["Yes."]


async def test_a_late_reader_causes_no_timeout(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(buffer_chunks=1, stream_timeout=1.0)
    async with open_room(saying(pace=0.01), config) as room:
        events: list[ChatEvent] = []
        async with aclosing(room.conversation.dialogue_stream(ASKED)) as stream:
            async for event in stream:
                events.append(event)
                await trio.sleep(3.0)
        assert room.speeches == [ANSWERED]
        assert "error" not in kinds(lawful(events))


async def test_a_commit_that_hangs_is_a_timeout(quiet_clock: MockClock) -> None:
    limits = Limits(shutdown_deadline=1.0)
    async with open_stage(standard_cast(saying(Say("Yes."))), ledger=HungLedger(), limits=limits) as stage:
        conversation = Conversation(Responder(stage.start()), ChatFluxConfig(stream_timeout=20.0))
        began = trio.current_time()
        events = await talk(conversation)
        assert trio.current_time() - began == pytest.approx(20.0 + COMMIT_PATIENCE)
        assert kinds(events) == ["chunk", "error", "done"]
        assert payload(events, "error")["code"] == "STREAM_TIMEOUT"
        assert conversation.trace.events == (), "nobody knows whether it counts"


async def test_other_turns_do_not_extend_the_wait_for_a_commit(quiet_clock: MockClock) -> None:
    def script(prompt: Prompt) -> Iterable[Line]:
        return (
            [Say("Yes.")] if prompt.user == ASKED else [line for _ in range(200) for line in (Pause(1), Say("Psst."))]
        )

    limits = Limits(shutdown_deadline=1.0)
    async with open_stage(standard_cast(scripted(script)), ledger=HungLedger(), limits=limits) as stage:
        session = stage.start()
        conversation = Conversation(Responder(session), ChatFluxConfig(stream_timeout=20.0))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def chatter() -> None:
                await trio.sleep(1)
                session.begin_turn("Go on and on.", TurnParams(busy=BusyRule.CONCURRENT))

            nursery.start_soon(chatter)
            assert payload(await talk(conversation), "error")["code"] == "STREAM_TIMEOUT"
        assert trio.current_time() - began == pytest.approx(20.0 + COMMIT_PATIENCE, abs=0.1)


async def test_a_stalled_model_is_a_timeout(quiet_clock: MockClock) -> None:
    async with open_room(saying(Say("Well,"), Stall()), limits=Limits(stall_timeout=3.0)) as room:
        assert payload(await talk(room.conversation), "error")["code"] == "STREAM_TIMEOUT"


@pytest.mark.shows("gateway-103")
async def test_a_failing_model_without_a_template_is_unavailable() -> None:
    async with open_room(saying(Fail(ModelError("down")))) as room:
        events = await talk(room.conversation)
        assert kinds(events) == ["error", "done"]
        assert payload(events, "error")["code"] == "LLM_UNAVAILABLE"
        assert room.conversation.trace.events == ()


async def test_a_session_that_is_closed_has_expired() -> None:
    async with open_room(saying(Say("Well,"), Stall())) as room, trio.open_nursery() as nursery:
        told: list[list[ChatEvent]] = []

        async def run() -> None:
            told.append(await talk(room.conversation))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        await room.session.close()
        await trio.testing.wait_all_tasks_blocked()
        assert payload(told[0], "error")["code"] == "SESSION_EXPIRED"
        assert payload(await talk(room.conversation), "error")["code"] == "SESSION_EXPIRED"


async def test_a_canceled_dialogue_ends_with_done_alone() -> None:
    async with open_room(saying(Say("Well,"), Stall())) as room, trio.open_nursery() as nursery:
        told: list[list[ChatEvent]] = []

        async def run() -> None:
            told.append(await talk(room.conversation))

        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        room.session.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert kinds(told[0]) == ["chunk", "done"]
        assert text(told[0]) == "Well,"
        assert room.conversation.trace.events == ()


async def test_leaving_a_dialogue_early_cancels_its_turn(quiet_clock: MockClock) -> None:
    lines: list[Line] = [Say("one"), Pause(1)]
    async with open_room(saying(*lines * 9), ChatFluxConfig(buffer_chunks=1)) as room:
        async with room.session.subscribe() as native:
            async with aclosing(room.conversation.dialogue_stream(ASKED)) as events:
                async for _ in events:
                    break
            async for event in native:
                if event.event_type is EventType.TURN_INTERRUPTED:
                    assert isinstance(event.payload, TurnInterrupted)
                    assert event.payload.reason == "canceled"
                    break
        assert room.conversation.trace.events == ()
        await talk(room.conversation, "thanks")
        assert len(room.speeches) == 1, "the next one finds its place free"


# -- templates


@pytest.mark.shows("gateway-92")
async def test_a_template_answers_small_talk_without_a_model() -> None:
    async with open_room(saying(Fail(ModelError("down"))), templates=STANDARD_TEMPLATES) as room:
        async with room.session.subscribe() as native:
            events = await talk(room.conversation, "Hello!")
            kinds_of_turn = [(await anext(native)).event_type for _ in range(4)]
        assert EventType.MODEL_SELECTED not in kinds_of_turn
        assert payload(events, "message") == {
            "content": "Hello. What is on your mind?",
            "turn_id": room.conversation.trace.events[0].id,
            "mode": "reflect",
            "tokens_used": 0,
            "entropy_cost": 0.0,
            "correlation_id": events[0].payload["correlation_id"],
            "template": "short_circuit",
        }
        assert room.conversation.trace.events[0].source == "kgent-template"


@pytest.mark.shows("gateway-102")
@pytest.mark.parametrize("mode", DialogueMode)
async def test_a_template_is_the_fallback_when_no_model_can_answer(mode: DialogueMode) -> None:
    async with open_room(saying(Fail(ModelError("down"))), templates=STANDARD_TEMPLATES) as room:
        message = payload(await talk(room.conversation, mode=mode), "message")
        assert message["content"] == STANDARD_TEMPLATES.fallback(mode)
        assert (message["template"], message["tokens_used"]) == ("fallback", 0)
        assert len(room.speeches) == 1


async def test_no_template_follows_a_part_of_an_answer() -> None:
    model = saying(Say("Well,"), Fail(ModelError("down")))
    async with open_room(model, templates=STANDARD_TEMPLATES) as room:
        assert payload(await talk(room.conversation), "error")["code"] == "LLM_UNAVAILABLE"


async def test_an_uncommitted_empty_answer_has_one_final_chunk_and_no_template() -> None:
    cast = with_templates(standard_cast(ScriptedModel(lambda _: [])), STANDARD_TEMPLATES)
    async with open_stage(cast, ledger=FlakyLedger(MemoryLedger(), failing_appends={1})) as stage:
        conversation = Conversation(Responder(stage.start(), templates=STANDARD_TEMPLATES))
        events = await talk(conversation)
        assert kinds(events) == ["chunk", "error", "done"]
        assert payload(events, "error")["code"] == "LLM_UNAVAILABLE"


@pytest.mark.shows("gateway-102")
async def test_a_template_answers_when_the_model_cannot_load() -> None:
    model = saying(Say("never"))
    model.cool()
    model._load_error = ModelError("no weights")
    async with open_room(model, templates=STANDARD_TEMPLATES) as room:
        assert payload(await talk(room.conversation), "message")["template"] == "fallback"


@pytest.mark.shows("gateway-98")
async def test_a_model_rate_limit_is_retried_with_backoff(quiet_clock: MockClock) -> None:
    asked: list[float] = []

    def script(_: Prompt) -> list[Line]:
        asked.append(trio.current_time())
        return [Fail(RateLimitError("later"))] if len(asked) < 4 else [Say("Yes.")]

    async with open_room(scripted(script), templates=STANDARD_TEMPLATES) as room:
        assert payload(await talk(room.conversation), "message")["content"] == "Yes."
        assert [round(after - before) for before, after in pairwise(asked)] == [1, 2, 4]
        assert len(room.speeches) == 1


async def test_a_retry_ends_with_its_session(quiet_clock: MockClock) -> None:
    async with open_room(saying(Fail(RateLimitError("later")))) as room, trio.open_nursery() as nursery:
        told: list[ChatEvent] = []

        async def run() -> None:
            told.extend(await talk(room.conversation))

        nursery.start_soon(run)
        await trio.sleep(8)  # it was asked after 0, 1, 3 and 7 seconds, and is to be again after 15
        await room.session.close()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 8
        assert payload(told, "error")["code"] == "SESSION_EXPIRED"


@pytest.mark.shows("gateway-99")
async def test_a_lasting_model_rate_limit_falls_back_to_a_template(quiet_clock: MockClock) -> None:
    model = saying(Fail(RateLimitError("later")))
    async with open_room(model, templates=STANDARD_TEMPLATES) as room:
        began = trio.current_time()
        assert payload(await talk(room.conversation), "message")["template"] == "fallback"
        assert trio.current_time() - began == pytest.approx(15.0)
    async with open_room(saying(Fail(RateLimitError("later")))) as room:
        assert payload(await talk(room.conversation), "error")["code"] == "LLM_UNAVAILABLE"


# -- budgets

SMALL = BudgetConfig(whisper_max=2, dialogue_max=10, deep_max=20)


class Words:
    """A script of so many words, which records the token limit of each prompt."""

    def __init__(self, number: int) -> None:
        self.allowed: list[int] = []
        self.number = number

    def __call__(self, prompt: Prompt) -> list[Line]:
        self.allowed.append(prompt.max_tokens)
        return [Flood("word ", self.number)]


@pytest.mark.shows("gateway-91")
async def test_a_message_gets_the_tier_that_it_is_worth() -> None:
    script = Words(1)
    async with open_room(scripted(script), budget=SMALL) as room:
        await talk(room.conversation, ASKED)
        await talk(room.conversation, "And now?")
        await talk(room.conversation, "And now?", DialogueMode.EXPLORE)
    assert script.allowed == [10, 2, 20]


@pytest.mark.shows("gateway-51")
async def test_entropy_budget_bounds_the_tier_of_one_dialogue() -> None:
    for entropy, allowed in ((0.08, 20), (0.07, 10), (0.03, 2)):
        script = Words(1)
        async with open_room(scripted(script), ChatFluxConfig(entropy_budget=entropy), budget=SMALL) as room:
            for _ in range(2):
                await talk(room.conversation, ASKED, DialogueMode.EXPLORE)
        assert script.allowed == [allowed, allowed]


@pytest.mark.shows("gateway-101")
async def test_a_session_with_few_tokens_whispers_before_it_is_refused(quiet_clock: MockClock) -> None:
    script = Words(100)
    config = ChatFluxConfig(session_tokens=15, session_tokens_seconds=150)
    async with open_room(scripted(script), config, budget=SMALL) as room:
        for _ in range(3):
            await talk(room.conversation)
        assert script.allowed == [10, 2, 2]
        error = payload(await talk(room.conversation), "error")
        assert error["code"] == "RATE_LIMITED"
        wait = error["retry_after_seconds"]
        await trio.sleep(wait - 1)
        assert payload(await talk(room.conversation), "error")["retry_after_seconds"] == 1
        await trio.sleep(1)
        assert payload(await talk(room.conversation), "message")["tokens_used"] == 2, "the wait was the truth"


async def test_unused_tokens_are_given_back() -> None:
    config = ChatFluxConfig(session_tokens=12, session_tokens_seconds=1e9)
    script = Words(1)
    async with open_room(scripted(script), config, budget=SMALL) as room:
        for _ in range(3):
            await talk(room.conversation)
    assert script.allowed == [10, 10, 10]


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        ((Say("Well,"), Fail(ModelError("down"))), 10),
        ((Stall(),), 10),
        ((Fail(ModelError("down")),), 0),
        ((Say("one two"),), 2),
    ],
)
async def test_a_failed_answer_uses_its_whole_reservation_if_a_model_worked(
    quiet_clock: MockClock, lines: tuple[Line, ...], taken: int
) -> None:
    config = ChatFluxConfig(session_tokens=100, session_tokens_seconds=1e12)
    tokens = TokenBucket(100, 1e12, trio.current_time())
    async with open_room(saying(*lines)) as room:
        conversation = Conversation(room.responder, config, budget=SMALL, tokens=tokens)
        await talk(conversation)
    assert 100 - tokens.left(trio.current_time()) == taken


async def test_templates_use_no_tokens() -> None:
    config = ChatFluxConfig(session_tokens=2, session_tokens_seconds=1e9)
    async with open_room(scripted(Words(2)), config, budget=SMALL, templates=STANDARD_TEMPLATES) as room:
        await talk(room.conversation)
        assert payload(await talk(room.conversation), "error")["code"] == "RATE_LIMITED"
        assert payload(await talk(room.conversation, "hello"), "message")["template"] == "short_circuit"


async def test_session_tokens_below_a_whisper_are_refused() -> None:
    with pytest.raises(RegistrationError, match="whisper"):
        async with open_room(config=ChatFluxConfig(session_tokens=99)):
            pass


async def test_other_turns_of_the_session_are_not_sent() -> None:
    async with open_room() as room:
        room.session.begin_turn("Something else", TurnParams())
        (message,) = [each for each in await talk(room.conversation) if each.event_type == "message"]
        assert [each.id for each in room.conversation.trace.events] == [message.payload["turn_id"]] == ["t1-000002"]
