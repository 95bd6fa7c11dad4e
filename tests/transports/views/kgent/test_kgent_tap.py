"""Session tap: turns that the gateway did not begin, as dialogues."""

from __future__ import annotations

from contextlib import AsyncExitStack
from math import inf
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed

from footlights import Limits, MemoryLedger, SessionParams, TurnParams, open_stage
from footlights.session.core import MAX_OBSERVERS
from footlights.testing.faults import FlakyLedger
from footlights_actors import Pause, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.kgent.conversation import session_tokens
from footlights_transports.views.kgent.gateway import MAX_BEGUN, SWEEP, ChatSession, KgentGateway
from footlights_transports.views.kgent.pure.messages import ChatMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.wire import PerturbQuery
from footlights_transports.views.kgent.room import MAX_BEHIND
from footlights_transports.views.kgent.tap import SessionTap
from tests.kit.peers.kgent_peer import ANSWERED, ASKED, TOKENS, lawful, observe, only, open_chat_house, perturb, text
from tests.transports.views.kgent.test_kgent_gateway import rejection

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import InteractionSession
    from tests.kit.peers.kgent_peer import ChatHouse


def started(house: ChatHouse, name: str = "shared") -> InteractionSession:
    return house.access.start(User(), SessionParams(session_id=name))


async def test_a_native_turn_is_sent_as_a_dialogue() -> None:
    async with open_chat_house() as house:
        session = started(house)
        async with observe(house, "?session=shared") as observer, observe(house) as deaf, perturb(house) as sender:
            turn_id = session.begin_turn(ASKED, TurnParams())
            frames = await observer.hear(turn_id)
            assert [each["event_type"] for each in frames][-3:] == ["chunk", "message", "done"]
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
            await sender.send("hello", correlation_id="a")
            await deaf.hear("a")
            assert deaf.told(turn_id) == []


async def test_a_numbered_session_can_be_tapped_and_entered() -> None:
    async with open_chat_house(policy=AccessPolicy(TOKENS)) as house:
        ann = User("ann")
        session = house.access.start(ann, SessionParams())
        query, token = f"?session={session.session_id}", TOKENS["ann"]
        async with observe(house, query, token=token) as observer, perturb(house, query, token=token) as sender:
            await observer.hear(session.begin_turn(ASKED))
            await sender.send(correlation_id="a")
            await observer.hear("a")
            assert len(house.access.open_sessions()) == 1
    async with open_chat_house() as house:
        session = house.stage.start()
        async with observe(house, f"?session={session.session_id}") as observer:
            await observer.hear(session.begin_turn(ASKED))
        assert await rejection(house, "/perturb/default?session=s1-000099") == 400


async def test_turns_of_the_gateway_are_not_sent_twice() -> None:
    async with (
        open_chat_house() as house,
        perturb(house, "?session=shared") as sender,
        observe(house, "?session=shared") as observer,
    ):
        await sender.send(correlation_id="mine")
        (message,) = only(await observer.hear("mine"), "message")
        other = house.stage.session("shared").begin_turn(ASKED)
        await observer.hear(other)
        assert observer.told(message["turn_id"]) == []
        assert {each["payload"]["correlation_id"] for each in observer.frames} == {"mine", other}


async def test_unknown_and_foreign_sessions_cannot_be_tapped() -> None:
    async with (
        open_chat_house(policy=AccessPolicy(TOKENS)) as house,
        perturb(house, "?session=mine", token=TOKENS["ann"]),
    ):
        for session in ("mine", "ann:mine", "nothing"):
            assert await rejection(house, f"/observe/default?session={session}", token=TOKENS["bob"]) == 404
        async with observe(house, "?session=mine", token=TOKENS["ann"]):
            pass


async def test_shutdown_sends_what_waits_first() -> None:
    async with open_chat_house() as house:
        session = started(house)
        async with observe(house, "?session=shared") as observer:
            turn_id = session.begin_turn(ASKED)
            await session.finalize(turn_id).wait()
            house.stop()
            await observer.hear(turn_id)
            with pytest.raises(ConnectionClosed) as closed:
                await observer.receive()
            assert closed.value.reason is not None
            assert closed.value.reason.code == 1001


async def test_shutdown_ends_tapped_dialogues_first() -> None:
    model, config = ScriptedModel(lambda _: [Say("Well,"), Stall()]), ChatFluxConfig(buffer_chunks=1)
    async with open_chat_house(model, config) as house:
        session = started(house)
        async with observe(house, "?session=shared") as observer:
            turn_id = session.begin_turn(ASKED)
            await observer.receive()
            house.stop()
            frames = await observer.hear(turn_id)
            assert [each["event_type"] for each in frames] == ["chunk", "error", "done"]
            assert only(frames, "error")[0]["code"] == "SESSION_EXPIRED"


async def test_an_observer_stays_when_its_tapped_session_ends() -> None:
    async with open_chat_house() as house, perturb(house) as sender:
        session = started(house)
        async with observe(house, "?session=shared") as observer:
            await session.close()
            await sender.send(correlation_id="a")
            assert only(await observer.hear("a"), "message")
            house.stop()
            await house.stopped.wait()


# -- without a network


class Collector:
    """Collects what is sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def send(self, batch: list[bytes]) -> None:
        await trio.lowlevel.checkpoint()
        self.heard += batch


async def test_a_detached_tap_continues_where_it_was(quiet_clock: MockClock) -> None:
    limits = Limits(stall_detach=1.0)
    model = ScriptedModel(lambda _: [part for _ in range(5) for part in (Say("word "), Pause(2))])
    async with open_stage(standard_cast(model), limits=limits) as stage, trio.open_nursery() as nursery:
        observer = Collector()
        session = stage.start()

        async def send_slowly(batch: list[bytes]) -> None:
            await observer.send(batch)
            await trio.sleep(7)

        tap = SessionTap(session, (), 1, lambda: 1.0)
        nursery.start_soon(tap.run, send_slowly)
        await trio.testing.wait_all_tasks_blocked()
        await session.finalize(session.begin_turn(ASKED)).wait()
        await session.close()
        await tap.over.wait()
        assert text(lawful([orjson.loads(each) for each in observer.heard])) == "word " * 5


async def test_a_tap_that_ends_before_it_runs_sends_nothing() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Stall()]))) as stage:
        tap = SessionTap(stage.start(), (), 1, lambda: 1.0)
        tap.end()
        await tap.run(Collector().send)
        assert tap.over.is_set()


async def test_a_tap_of_a_closed_session_ends_at_once() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Stall()]))) as stage:
        session = stage.start()
        await session.close()
        tap = SessionTap(session, (), 1, lambda: 1.0)
        await tap.run(Collector().send)
        assert tap.over.is_set()


async def test_a_session_has_a_limited_number_of_taps_which_take_no_place_of_players() -> None:
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
            async with perturb(house, "?session=shared") as sender:
                await sender.send(correlation_id="a")
                assert only(await listener.hear("a"), "message"), "who listens takes no player's place"


@pytest.mark.parametrize("dialogues", [1, 3 * MAX_BEHIND])
@pytest.mark.parametrize("is_forgotten", [True, False])
async def test_a_slow_tap_still_skips_turns_of_the_gateway(
    quiet_clock: MockClock, dialogues: int, is_forgotten: bool
) -> None:
    config = ChatFluxConfig(message_burst=1_000, session_tokens=10_000_000)
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Well.")]))) as stage, trio.open_nursery() as home:
        gateway = KgentGateway(SessionAccess(stage), config)
        await home.start(gateway.keep)
        sender = gateway.enter(User(), "default", PerturbQuery("shared"))
        observer, may_go_on, session = Collector(), trio.Event(), sender.chat.session

        async def send_late(batch: list[bytes]) -> None:
            await observer.send(batch)
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
        told = [orjson.loads(each) for each in observer.heard]
        assert {each["payload"]["correlation_id"] for each in told} == {"t1-000001"}
        home.cancel_scope.cancel()


async def test_a_session_remembers_the_newest_turns_that_the_gateway_began() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: []))) as stage:
        chat = ChatSession(stage.start(), session_tokens(ChatFluxConfig()))
        for number in range(MAX_BEGUN + 1):
            chat.note_begun("muse", f"t1-{number:06}")
        assert list(chat.begun["muse"]) == [f"t1-{number:06}" for number in range(1, MAX_BEGUN + 1)]
        assert "t1-000001" not in chat.begun["sage"]


async def test_a_tapped_turn_with_an_unknown_commit_ends(quiet_clock: MockClock) -> None:
    observer = Collector()
    async with trio.open_nursery() as nursery:
        limits = Limits(shutdown_deadline=1.0)
        cast = standard_cast(ScriptedModel(lambda _: [Say("Yes.")]))
        async with open_stage(cast, ledger=FlakyLedger(MemoryLedger(), delay=inf), limits=limits) as stage:
            session = stage.start()
            nursery.start_soon(SessionTap(session, (), 1, lambda: 1.0).run, observer.send)
            await trio.testing.wait_all_tasks_blocked()
            session.begin_turn(ASKED)
            await trio.sleep(1)
    told = lawful([orjson.loads(each) for each in observer.heard])
    assert [each["event_type"] for each in told] == ["chunk", "chunk", "error", "done"]
    assert only(told, "error")[0]["code"] == "SESSION_EXPIRED"
