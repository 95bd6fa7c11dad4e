"""A turn that somebody began elsewhere is heard as a dialogue too, by those who ask for it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from math import inf
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed

from footlights import Limits, MemoryLedger, ModelError, SessionParams, TurnParams, open_stage
from footlights.session.core import MAX_OBSERVERS
from footlights.testing.faults import FlakyLedger
from footlights_actors import Fail, Pause, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.kgent.conversation import session_tokens
from footlights_transports.views.kgent.gateway import MAX_BEGUN, SWEEP, ChatSession, KgentGateway
from footlights_transports.views.kgent.pure.dialogues import TurnDialogues
from footlights_transports.views.kgent.pure.messages import ChatMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.wire import PerturbQuery
from footlights_transports.views.kgent.room import MAX_BEHIND
from footlights_transports.views.kgent.tap import SessionTap
from tests.kit.peers.kgent_peer import ANSWERED, ASKED, TOKENS, lawful, observe, only, open_chat_house, perturb, text
from tests.transports.views.kgent.test_kgent_gateway import rejection

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import InteractionSession, StreamEvent
    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from tests.kit.peers.kgent_peer import ChatHouse


def started(house: ChatHouse, name: str = "shared") -> InteractionSession:
    return house.access.start(User(), SessionParams(session_id=name))


async def test_a_turn_that_was_begun_natively_is_heard_as_a_dialogue() -> None:
    async with open_chat_house() as house:
        session = started(house)
        async with observe(house, "?session=shared") as ear, observe(house) as deaf, perturb(house) as mouth:
            turn_id = session.begin_turn(ASKED, TurnParams())
            frames = await ear.hear(turn_id)
            assert [each["event_type"] for each in frames] == ["chunk", "message", "done"]
            assert only(frames, "message") == [
                {
                    "content": ANSWERED,
                    "turn_id": turn_id,
                    "mode": "reflect",
                    "tokens_used": 10,
                    "entropy_cost": 0.01,
                    "correlation_id": turn_id,
                }
            ]
            await mouth.send("hello", correlation_id="a")
            await deaf.hear("a")
            assert deaf.told(turn_id) == []


async def test_a_session_that_the_stage_numbered_can_be_heard_and_talked_in() -> None:
    async with open_chat_house(policy=AccessPolicy(TOKENS)) as house:
        ann = User("ann")
        session = house.access.start(ann, SessionParams())
        query, token = f"?session={session.session_id}", TOKENS["ann"]
        async with observe(house, query, token=token) as ear, perturb(house, query, token=token) as mouth:
            await ear.hear(session.begin_turn(ASKED))
            await mouth.send(correlation_id="a")
            await ear.hear("a")
            assert len(house.access.open_sessions()) == 1
    async with open_chat_house() as house:
        session = house.stage.start()
        async with observe(house, f"?session={session.session_id}") as ear:
            await ear.hear(session.begin_turn(ASKED))
        assert await rejection(house, "/perturb/default?session=s1-000099") == 400


async def test_what_the_gateway_tells_is_not_told_twice() -> None:
    async with (
        open_chat_house() as house,
        perturb(house, "?session=shared") as mouth,
        observe(house, "?session=shared") as ear,
    ):
        await mouth.send(correlation_id="mine")
        (message,) = only(await ear.hear("mine"), "message")
        other = house.stage.session("shared").begin_turn(ASKED)
        await ear.hear(other)
        assert ear.told(message["turn_id"]) == []
        assert {each["payload"]["correlation_id"] for each in ear.frames} == {"mine", other}


async def test_a_session_that_is_not_there_or_foreign_cannot_be_overheard() -> None:
    async with (
        open_chat_house(policy=AccessPolicy(TOKENS)) as house,
        perturb(house, "?session=mine", token=TOKENS["ann"]),
    ):
        for session in ("mine", "ann:mine", "nothing"):
            assert await rejection(house, f"/observe/default?session={session}", token=TOKENS["bob"]) == 404
        async with observe(house, "?session=mine", token=TOKENS["ann"]):
            pass


async def test_a_server_that_goes_away_tells_what_waits_first() -> None:
    async with open_chat_house() as house:
        session = started(house)
        async with observe(house, "?session=shared") as ear:
            turn_id = session.begin_turn(ASKED)
            await session.finalize(turn_id).wait()
            house.stop()
            await ear.hear(turn_id)
            with pytest.raises(ConnectionClosed) as closed:
                await ear.receive()
            assert closed.value.reason is not None
            assert closed.value.reason.code == 1001


async def test_a_server_that_goes_away_ends_every_dialogue_that_is_overheard_first() -> None:
    model, config = ScriptedModel(lambda _: [Say("Well,"), Stall()]), ChatFluxConfig(buffer_chunks=1)
    async with open_chat_house(model, config) as house:
        session = started(house)
        async with observe(house, "?session=shared") as ear:
            turn_id = session.begin_turn(ASKED)
            await ear.receive()
            house.stop()
            frames = await ear.hear(turn_id)
            assert [each["event_type"] for each in frames] == ["chunk", "error", "done"]
            assert only(frames, "error")[0]["code"] == "SESSION_EXPIRED"


async def test_when_the_session_ends_the_observer_stays() -> None:
    async with open_chat_house() as house, perturb(house) as mouth:
        session = started(house)
        async with observe(house, "?session=shared") as ear:
            await session.close()
            await mouth.send(correlation_id="a")
            assert only(await ear.hear("a"), "message")
            house.stop()
            await house.stopped.wait()


# -- without a network


class Ear:
    """Takes what it is sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def send(self, batch: list[bytes]) -> None:
        await trio.lowlevel.checkpoint()
        self.heard += batch


async def test_who_is_let_go_goes_on_where_it_was(quiet_clock: MockClock) -> None:
    limits = Limits(stall_detach=1.0)
    model = ScriptedModel(lambda _: [part for _ in range(5) for part in (Say("word "), Pause(2))])
    async with open_stage(standard_cast(model), limits=limits) as stage, trio.open_nursery() as nursery:
        ear = Ear()
        session = stage.start()

        async def send_slowly(batch: list[bytes]) -> None:
            await ear.send(batch)
            await trio.sleep(7)

        tap = SessionTap(session, (), 1, lambda: 1.0)
        nursery.start_soon(tap.run, send_slowly)
        await trio.testing.wait_all_tasks_blocked()
        await session.finalize(session.begin_turn(ASKED)).wait()
        await session.close()
        await tap.over.wait()
        assert text(lawful([orjson.loads(each) for each in ear.heard])) == "word " * 5


async def test_who_ends_before_it_has_begun_hears_nothing() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Stall()]))) as stage:
        tap = SessionTap(stage.start(), (), 1, lambda: 1.0)
        tap.end()
        await tap.run(Ear().send)
        assert tap.over.is_set()


async def test_a_session_that_has_ended_is_not_heard() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Stall()]))) as stage:
        session = stage.start()
        await session.close()
        tap = SessionTap(session, (), 1, lambda: 1.0)
        await tap.run(Ear().send)
        assert tap.over.is_set()


async def test_players_keep_their_places_and_too_many_who_listen_are_told_so() -> None:
    async with open_chat_house(limits=Limits(max_subscribers=1)) as house:
        session = started(house)
        async with AsyncExitStack() as listeners:
            for _ in range(MAX_OBSERVERS):
                listener = await listeners.enter_async_context(observe(house, "?session=shared"))
            while len(session.statistics().observers) < MAX_OBSERVERS:
                await trio.testing.wait_all_tasks_blocked()
            async with observe(house, "?session=shared") as one_more:
                with pytest.raises(ConnectionClosed) as closed:
                    await one_more.receive()
                assert closed.value.reason is not None
                assert closed.value.reason.code == 1013
                assert "Too many listen" in str(closed.value.reason.reason)
            async with perturb(house, "?session=shared") as mouth:
                await mouth.send(correlation_id="a")
                assert only(await listener.hear("a"), "message"), "who listens takes no player's place"


@pytest.mark.parametrize("dialogues", [1, 3 * MAX_BEHIND])
@pytest.mark.parametrize("is_forgotten", [True, False])
async def test_who_is_slow_is_not_told_again_however_far_it_lags_behind(
    quiet_clock: MockClock, dialogues: int, is_forgotten: bool
) -> None:
    config = ChatFluxConfig(message_burst=1_000, session_tokens=10_000_000)
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Well.")]))) as stage, trio.open_nursery() as home:
        gateway = KgentGateway(SessionAccess(stage), config)
        await home.start(gateway.keep)
        sender = gateway.enter(User(), "default", PerturbQuery("shared"))
        ear, may_go_on, session = Ear(), trio.Event(), sender.chat.session

        async def send_late(batch: list[bytes]) -> None:
            await ear.send(batch)
            await may_go_on.wait()

        tap = gateway.tap(User(), "default", "shared")
        home.start_soon(tap.run, send_late)
        await trio.testing.wait_all_tasks_blocked()
        await session.finalize(session.begin_turn(ASKED)).wait()
        for number in range(dialogues):
            message = ChatMessage("user", ASKED, correlation_id=f"mine-{number}")
            await sender.perturb(message).over.wait()
        if is_forgotten:
            await session.close()
            await trio.sleep(2 * SWEEP)
        may_go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        await session.close()
        await tap.over.wait()
        told = [orjson.loads(each) for each in ear.heard]
        assert {each["payload"]["correlation_id"] for each in told} == {"t1-000001"}
        home.cancel_scope.cancel()


async def test_a_session_remembers_the_newest_turns_that_the_gateway_began() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: []))) as stage:
        chat = ChatSession(stage.start(), session_tokens(ChatFluxConfig()))
        for number in range(MAX_BEGUN + 1):
            chat.note_begun("muse", f"t1-{number:06}")
        assert list(chat.begun["muse"]) == [f"t1-{number:06}" for number in range(1, MAX_BEGUN + 1)]
        assert "t1-000001" not in chat.begun["sage"]


async def test_a_turn_whose_commit_nobody_will_know_ends_all_the_same(quiet_clock: MockClock) -> None:
    ear = Ear()
    async with trio.open_nursery() as nursery:
        limits = Limits(shutdown_deadline=1.0)
        cast = standard_cast(ScriptedModel(lambda _: [Say("Yes.")]))
        async with open_stage(cast, ledger=FlakyLedger(MemoryLedger(), delay=inf), limits=limits) as stage:
            session = stage.start()
            nursery.start_soon(SessionTap(session, (), 1, lambda: 1.0).run, ear.send)
            await trio.testing.wait_all_tasks_blocked()
            session.begin_turn(ASKED)
            await trio.sleep(1)
    told = lawful([orjson.loads(each) for each in ear.heard])
    assert [each["event_type"] for each in told] == ["chunk", "chunk", "error", "done"]
    assert only(told, "error")[0]["code"] == "SESSION_EXPIRED"


# -- the projection alone


async def dialogues_of(model: ScriptedModel, *, cancel: bool = False) -> list[ChatEvent]:
    events: list[StreamEvent] = []
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn(ASKED)
            async for event in stream.until_commit(turn_id):
                events.append(event)
                if cancel:
                    session.cancel()
    dialogues = TurnDialogues(5)
    told = [each for event in events for each in dialogues.take(event, 1.0)]
    assert dialogues.lose_sight(1.0) == []
    return told


async def test_any_turn_ends_with_done() -> None:
    whole = await dialogues_of(ScriptedModel(lambda _: [Say("Yes.")]))
    assert [each.event_type for each in whole] == ["chunk", "message", "done"]
    failed = await dialogues_of(ScriptedModel(lambda _: [Say("Well,"), Fail(ModelError("down"))]))
    assert [each.event_type for each in failed] == ["chunk", "error", "done"]
    canceled = await dialogues_of(ScriptedModel(lambda _: [Say("Well,"), Stall()]), cancel=True)
    assert [each.event_type for each in canceled][-1:] == ["done"]
    assert "error" not in [each.event_type for each in canceled]
