"""Responder: pieces of an answer, the persona of a mode, templates, and ends of a stream that is not its turn's."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trio.testing

from footlights import (
    BudgetTier,
    FootlightsError,
    Limits,
    ModelError,
    ModelTimeout,
    Persona,
    RegistrationError,
    SessionClosed,
    StreamError,
    open_stage,
)
from footlights_actors import Fail, Line, Pause, Say, Stall, standard_cast
from footlights_transports.views.kgent.deadline import PausableDeadline
from footlights_transports.views.kgent.pure.messages import ChatMessage, DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reader import AnswerPiece, Failed
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES, Templates
from footlights_transports.views.kgent.responder import Responder
from footlights_transports.views.kgent.template_workloads import with_templates
from tests.kit.views.kgent_kit import ANSWERED, ASKED, HungLedger, open_room, saying, scripted

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import InteractionSession, Prompt, Subscription
    from footlights_transports.views.kgent.pure.reader import AnswerEvent


async def answer(
    responder: Responder, said: str = ASKED, mode: str = "reflect", deadline: PausableDeadline | None = None
) -> list[AnswerEvent]:
    message = ChatMessage("user", said, mode=DialogueMode(mode))
    stream = responder.respond(message, responder.tier_of(message), deadline or PausableDeadline(1e6))
    async with aclosing(stream) as events:
        return [event async for event in events]


def pieces(events: list[AnswerEvent]) -> list[str]:
    return [each.text for each in events if isinstance(each, AnswerPiece)]


async def test_an_answer_comes_in_pieces(quiet_clock: MockClock) -> None:
    async with open_room(saying(pace=0.1)) as room:
        said = pieces(await answer(room.responder))
        assert "".join(said) == ANSWERED
        assert len(said) == len(ANSWERED.split())


async def text_of(responder: Responder) -> list[str]:
    async with aclosing(responder.dialogue_stream(ASKED)) as stream:
        return [piece async for piece in stream]


@pytest.mark.shows("gateway-2", "gateway-8")
async def test_a_dialogue_stream_is_the_text_of_the_answer(quiet_clock: MockClock) -> None:
    async with open_room(saying(pace=0.1)) as room:
        assert "".join(await text_of(room.responder)) == ANSWERED


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ((Fail(ModelError("down")),), ModelError),
        ((Say("Well,"), Fail(ModelError("down"))), StreamError),
        ((Say("Well,"), Stall()), ModelTimeout),
    ],
)
async def test_a_dialogue_stream_that_fails_raises_the_reason(
    lines: tuple[Line, ...], error: type[FootlightsError], quiet_clock: MockClock
) -> None:
    async with open_room(saying(*lines)) as room:
        with pytest.raises(error) as raised:
            await text_of(room.responder)
        assert type(raised.value) is error


async def test_a_dialogue_stream_ends_with_its_session() -> None:
    async with (
        open_room(saying(Say("Well,"), Stall())) as room,
        aclosing(room.responder.dialogue_stream(ASKED)) as stream,
    ):
        assert await anext(stream) == "Well,"
        await room.session.close()
        with pytest.raises(SessionClosed):
            await anext(stream)


@pytest.mark.shows("gateway-95")
async def test_the_persona_of_the_mode_speaks_if_there_is_one() -> None:
    def script(prompt: Prompt) -> list[Line]:
        return [Say(prompt.system)]

    personas = {"muse": Persona(text="gentle"), "muse.challenge": Persona(text="stern")}
    async with open_room(scripted(script), personas=personas, agent="muse") as room:
        assert pieces(await answer(room.responder, mode="challenge")) == ["stern"]
        assert pieces(await answer(room.responder, mode="reflect")) == ["gentle"]


async def test_a_message_that_a_template_answers_is_worth_no_tier() -> None:
    async with open_room(templates=STANDARD_TEMPLATES) as room:
        tiers = [room.responder.tier_of(ChatMessage("user", said, mode="explore")) for said in ("hello", ASKED)]
        assert tiers == [BudgetTier.DORMANT, BudgetTier.DEEP]


async def test_the_templates_of_a_cast_are_its_own() -> None:
    cast = with_templates(standard_cast(saying()), STANDARD_TEMPLATES)
    with pytest.raises(RegistrationError):
        with_templates(cast, STANDARD_TEMPLATES)
    assert len(cast.workloads.names) == 5


async def test_a_template_that_the_cast_does_not_have_is_an_error() -> None:
    cast = with_templates(standard_cast(saying(Fail(ModelError("down")))), Templates())
    async with open_stage(cast) as stage:
        responder = Responder(stage.start(), templates=STANDARD_TEMPLATES)
        missing = Failed(ErrorCode.LLM_UNAVAILABLE, meaning="There is no template for this.", cause="model_error")
        for message in ("hello", ASKED):
            assert await answer(responder, message) == [missing], "it is not tried again"


async def test_an_answer_whose_commit_stays_unknown_has_expired(quiet_clock: MockClock) -> None:
    events: list[AnswerEvent] = []

    async def listen(responder: Responder) -> None:
        events.extend(await answer(responder))

    async with trio.open_nursery() as nursery:
        ledger, limits = HungLedger(), Limits(shutdown_deadline=1.0)
        async with open_stage(standard_cast(saying(Say("Yes."), Pause(1))), ledger=ledger, limits=limits) as stage:
            nursery.start_soon(listen, Responder(stage.start()))
            await trio.sleep(5)
    assert events[-1] == Failed(ErrorCode.SESSION_EXPIRED, has_begun=True)


class Tapped:
    """A session whose subscriptions can be ended from outside."""

    def __init__(self, session: InteractionSession) -> None:
        self.begin_turn, self.cancel = session.begin_turn, session.cancel
        self.streams: list[Subscription] = []
        self._session = session

    def subscribe(self, *after: Any, observer: bool = False) -> Subscription:
        self.streams.append(self._session.subscribe(*after, observer=observer))
        return self.streams[-1]


async def test_an_answer_whose_stream_ends_has_expired_and_its_deadline_is_not_paused_any_more() -> None:
    async with open_stage(standard_cast(saying(Stall()))) as stage, trio.open_nursery() as nursery:
        session = Tapped(stage.start())
        session.begin_turn("A long tale, please.")
        deadline = PausableDeadline(1e6)
        events: list[AnswerEvent] = []

        async def listen() -> None:
            responder = Responder(cast("InteractionSession", session))
            events.extend(await answer(responder, deadline=deadline))

        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        assert deadline.is_paused
        session.streams[0].end()
        await trio.testing.wait_all_tasks_blocked()
        assert events == [Failed(ErrorCode.SESSION_EXPIRED)]
        assert not deadline.is_paused
