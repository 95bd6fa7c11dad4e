"""A soul gives text and nothing else, speaks as the persona of its mode, and says why it could not."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

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
from footlights_transports.views.kgent.clock import StreamClock
from footlights_transports.views.kgent.pure.messages import DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reading import BrokeOff
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES, Templates
from footlights_transports.views.kgent.soul import KgentSoul, Plan
from footlights_transports.views.kgent.templates import with_templates
from tests.kit.views.kgent_kit import ANSWERED, ASKED, HungLedger, open_room, saying, scripted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trio.testing import MockClock

    from footlights import InteractionSession, Prompt, Subscription


async def pieces(soul: KgentSoul, said: str = ASKED, mode: DialogueMode | None = None) -> list[str]:
    async with aclosing(soul.dialogue_stream(said, mode)) as stream:
        return [piece async for piece in stream]


async def test_an_answer_comes_in_pieces(quiet_clock: MockClock) -> None:
    async with open_room(saying(pace=0.1)) as room:
        told = await pieces(room.soul)
        assert "".join(told) == ANSWERED
        assert len(told) == len(ANSWERED.split())


async def test_the_persona_of_the_mode_speaks_if_there_is_one() -> None:
    def script(prompt: Prompt) -> list[Line]:
        return [Say(prompt.system)]

    personas = {"muse": Persona(text="gentle"), "muse.challenge": Persona(text="stern")}
    async with open_room(scripted(script), personas=personas, agent="muse") as room:
        assert await pieces(room.soul, mode=DialogueMode.CHALLENGE) == ["stern"]
        assert await pieces(room.soul, mode=DialogueMode.REFLECT) == ["gentle"]


async def test_a_plan_says_whether_a_template_is_enough() -> None:
    async with open_room(templates=STANDARD_TEMPLATES) as room:
        assert room.soul.plan("hello", DialogueMode.EXPLORE).tier is BudgetTier.DORMANT
        assert room.soul.plan(ASKED, DialogueMode.EXPLORE) == Plan(ASKED, DialogueMode.EXPLORE, BudgetTier.DEEP)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ((Fail(ModelError("down")),), ModelError),
        ((Say("Well,"), Fail(ModelError("down"))), StreamError),
        ((Say("Well,"), Stall()), ModelTimeout),
    ],
)
async def test_what_goes_wrong_is_an_error(
    lines: Sequence[Line], error: type[FootlightsError], quiet_clock: MockClock
) -> None:
    async with open_room(saying(*lines)) as room:
        with pytest.raises(error) as raised:
            await pieces(room.soul)
        assert type(raised.value) is error


async def test_an_answer_that_somebody_canceled_broke_off() -> None:
    async with open_room(saying(Say("Well,"), Stall())) as room, aclosing(room.soul.dialogue_stream(ASKED)) as stream:
        assert await anext(stream) == "Well,"
        room.session.cancel()
        with pytest.raises(StreamError):
            await anext(stream)


async def test_a_session_that_closes_ends_the_answer() -> None:
    async with open_room(saying(Say("Well,"), Stall())) as room, aclosing(room.soul.dialogue_stream(ASKED)) as stream:
        assert await anext(stream) == "Well,"
        await room.session.close()
        with pytest.raises(SessionClosed):
            await anext(stream)


async def test_the_templates_of_a_cast_are_its_own() -> None:
    cast = with_templates(standard_cast(saying()), STANDARD_TEMPLATES)
    with pytest.raises(RegistrationError):
        with_templates(cast, STANDARD_TEMPLATES)
    assert len(cast.workloads.names) == 5


async def test_a_template_that_the_cast_does_not_have_is_an_error() -> None:
    cast = with_templates(standard_cast(saying(Fail(ModelError("down")))), Templates())
    async with open_stage(cast) as stage:
        soul = KgentSoul(stage.start(), templates=STANDARD_TEMPLATES)
        for message in ("hello", ASKED):
            with pytest.raises(ModelError) as error:
                await pieces(soul, message)
            assert type(error.value) is ModelError, "no template is asked again until the time is up"


async def test_an_answer_whose_commit_nobody_will_know_has_expired(quiet_clock: MockClock) -> None:
    told: list[object] = []

    async def listen(soul: KgentSoul) -> None:
        async with aclosing(soul.perform(soul.plan(ASKED, DialogueMode.REFLECT), StreamClock(1e6))) as events:
            told.extend([event async for event in events])

    async with trio.open_nursery() as nursery:
        ledger, limits = HungLedger(), Limits(shutdown_deadline=1.0)
        async with open_stage(standard_cast(saying(Say("Yes."), Pause(1))), ledger=ledger, limits=limits) as stage:
            nursery.start_soon(listen, KgentSoul(stage.start()))
            await trio.sleep(5)
    assert told[-1] == BrokeOff(ErrorCode.SESSION_EXPIRED, said_something=True)


class Crossed:
    """Begins its turns in one session and listens to another."""

    def __init__(self, talks: InteractionSession, listens: InteractionSession) -> None:
        self.session_id = talks.session_id
        self.begin_turn, self.cancel = talks.begin_turn, talks.cancel
        self.subscribe = listens.subscribe


async def test_a_stream_that_ends_before_its_turn_does_is_an_end() -> None:
    async with open_stage(standard_cast(saying(Stall()))) as stage, trio.open_nursery() as nursery:
        talks, listens = stage.start(), stage.start()
        soul = KgentSoul(Crossed(talks, listens))
        told: list[object] = []

        async def listen() -> None:
            async with aclosing(soul.perform(soul.plan(ASKED, DialogueMode.REFLECT), StreamClock(1e6))) as events:
                told.extend([event async for event in events])

        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        await listens.close()
        await trio.testing.wait_all_tasks_blocked()
        assert told == [BrokeOff(ErrorCode.SESSION_EXPIRED)]


class Tapped:
    """A session whose streams can be ended from outside."""

    def __init__(self, session: InteractionSession) -> None:
        self.session_id = session.session_id
        self.begin_turn, self.cancel = session.begin_turn, session.cancel
        self.streams: list[Subscription] = []
        self._session = session

    def subscribe(self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()) -> Subscription:
        self.streams.append(self._session.subscribe(after, terminal_seen))
        return self.streams[-1]


async def test_time_passes_again_for_an_answer_that_breaks_off_while_others_come_first() -> None:
    async with open_stage(standard_cast(saying(Stall()))) as stage, trio.open_nursery() as nursery:
        session = Tapped(stage.start())
        session.begin_turn("A long tale, please.")
        soul, clock = KgentSoul(session), StreamClock(1e6)
        told: list[tuple[object, bool]] = []

        async def listen() -> None:
            async with aclosing(soul.perform(soul.plan(ASKED, DialogueMode.REFLECT), clock)) as events:
                told.extend([(event, clock.is_standing) async for event in events])

        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        assert clock.is_standing
        session.streams[0].end()
        await trio.testing.wait_all_tasks_blocked()
        assert told == [(BrokeOff(ErrorCode.SESSION_EXPIRED), False)]
