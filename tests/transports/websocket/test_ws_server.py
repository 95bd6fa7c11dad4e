"""The native protocol over real sockets: the effect of each command, and events on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import CommitOutcome, EventType, Limits, MemoryLedger, TurnFinal
from footlights.testing import only
from footlights_actors import Flood, Say, ScriptedModel, Stall
from footlights_transports.access.policy import AccessPolicy, WireLimits
from tests.kit.peers.ws_peer import HeldModel, connect, error_code, open_house

if TYPE_CHECKING:
    from footlights.authority import CommitRecord

STALLING = (Say("Well,"), Stall())


async def test_finalize_is_answered_when_the_commit_is_known_and_holds_up_nothing() -> None:
    model = HeldModel()
    async with open_house(model) as house, connect(house) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        finalize = await peer.send("finalize", session_id=session_id, turn_id=turn_id)
        assert await peer.ask("cancel", session_id=(await peer.ask("start"))["session_id"]) == {"canceled": []}
        model.may_go_on.set()
        result = (await peer.reply(finalize))["result"]
        assert result["commit_outcome"] == CommitOutcome.OK
        assert set(result) == {"commit_id", "commit_digest", "commit_outcome"}


class HeldLedger(MemoryLedger):
    """One that takes its time to look."""

    def __init__(self) -> None:
        super().__init__()
        self.may_look = trio.Event()
        self.is_looking = trio.Event()

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        self.is_looking.set()
        await self.may_look.wait()
        return await super().find(session_id, turn_id)


async def test_a_resume_that_has_to_read_the_ledger_delays_no_other_command() -> None:
    ledger = HeldLedger()
    async with open_house(ledger=ledger, limits=Limits(replay_turns=0)) as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        await house.stage.session(session_id).close()
        await peer.ask("start", params={"session_id": "inn"})
        back = await peer.send("subscribe", session_id="inn", after={"t1-000001": 1})
        await ledger.is_looking.wait()
        assert await peer.refusal("subscribe", session_id="inn", after={}) == "invalid_command", "it is being followed"
        later = (await peer.ask("begin_turn", session_id="inn", input="Another?"))["turn_id"]
        assert later != turn_id
        ledger.may_look.set()
        assert (await peer.reply(back))["error"]["code"] == "unknown_turn"
        await peer.ask("subscribe", session_id="inn", after={})


async def test_only_so_many_commands_may_wait_for_their_answers() -> None:
    model = HeldModel()
    async with open_house(model, wire_limits=WireLimits(max_commands_waiting=2)) as house, connect(house) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        waiting = [await peer.send("finalize", session_id=session_id, turn_id=turn_id) for _ in range(2)]
        assert await peer.refusal("finalize", session_id=session_id, turn_id=turn_id) == "busy"
        model.may_go_on.set()
        for each in waiting:
            assert (await peer.reply(each))["ok"] is True
        await peer.ask("finalize", session_id=session_id, turn_id=turn_id)


async def test_close_interrupts_and_answers_when_all_is_settled_and_the_stream_ends() -> None:
    async with open_house(ScriptedModel(lambda _: STALLING)) as house, connect(house) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        assert await peer.ask("close", session_id=session_id) == {}
        assert await peer.notice() == {"notice": "ended", "session_id": session_id}
        assert [each.event_type for each in peer.events if each.turn_id == turn_id][-1] is EventType.COMMIT_FINAL
        assert await peer.refusal("begin_turn", session_id=session_id, input="?") == "unknown_session"


# -- subscribing


async def test_the_reply_to_subscribe_comes_before_the_first_event() -> None:
    async with open_house(HeldModel()) as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        command_id = await peer.send("subscribe", session_id=session_id)
        await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        kinds = ["event" if "event_type" in frame else frame["reply"] for frame in peer.frames]
        assert kinds.index(command_id) < kinds.index("event")


async def test_a_turn_begun_right_after_subscribing_is_seen_whole() -> None:
    async with open_house() as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        await peer.send("subscribe", session_id=session_id)
        turn = await peer.send("begin_turn", session_id=session_id, input="A room?")
        turn_id = (await peer.reply(turn))["result"]["turn_id"]
        assert (await peer.take_until(EventType.COMMIT_FINAL, turn_id))[0].event_type is EventType.TURN_ACCEPTED


async def test_a_connection_cannot_follow_a_session_twice() -> None:
    async with open_house() as house, connect(house) as peer:
        session_id = await peer.start()
        assert await peer.refusal("subscribe", session_id=session_id) == "invalid_command"
        await peer.take_turn(session_id)  # nothing comes twice: the laws are checked


async def test_a_connection_follows_only_so_many_sessions() -> None:
    limits = WireLimits(max_subscriptions_per_connection=1)
    async with open_house(wire_limits=limits) as house, connect(house) as peer:
        first = await peer.start()
        second = (await peer.ask("start"))["session_id"]
        assert await peer.refusal("subscribe", session_id=second) == "busy"
        await peer.ask("close", session_id=first)
        await peer.notice()
        await peer.ask("subscribe", session_id=second)


async def test_a_subscription_that_is_refused_is_no_subscription() -> None:
    async with open_house() as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        assert await peer.refusal("subscribe", session_id=session_id, after={"t1-000099": 3}) == "unknown_turn"
        await peer.ask("subscribe", session_id=session_id)
        await peer.take_turn(session_id)


async def test_one_connection_follows_two_sessions() -> None:
    async with open_house() as house, connect(house) as peer:
        first, second = await peer.start(), await peer.start()
        turns = [await peer.send("begin_turn", session_id=each, input="A room?") for each in (first, second)]
        for command_id, session_id in zip(turns, (first, second), strict=True):
            turn_id = (await peer.reply(command_id))["result"]["turn_id"]
            events = await peer.take_until(EventType.COMMIT_FINAL, turn_id, session_id)
            assert only(events, TurnFinal).text == "Good evening, my friend."


async def test_two_connections_follow_one_session_and_get_the_same() -> None:
    async with open_house() as house, connect(house) as one, connect(house) as other:
        session_id = await one.start()
        await other.ask("subscribe", session_id=session_id)
        events = await one.take_turn(session_id)
        assert await other.take_until(EventType.COMMIT_FINAL, events[0].turn_id) == events


# -- batches


async def test_a_client_that_asks_for_batches_gets_events_in_arrays_and_replies_as_they_are() -> None:
    async with open_house() as house, connect(house, "?batch=1") as peer:
        session_id = await peer.start()
        events = await peer.take_turn(session_id)
        assert only(events, TurnFinal).text == "Good evening, my friend."
        assert all(isinstance(frame, list) or "reply" in frame for frame in peer.frames)
        assert any(isinstance(frame, list) and len(frame) > 1 for frame in peer.frames)


async def test_a_long_batch_is_cut_into_several_arrays() -> None:
    model = ScriptedModel(lambda _: (Flood("x" * 1_000, 400),))
    async with open_house(model, limits=Limits(replay_turns=2)) as house:
        async with connect(house) as peer:
            session_id = await peer.start()
            for _ in range(2):
                await peer.take_turn(session_id)
        async with connect(house, "?batch=1") as peer:
            peer.after = {}
            await peer.ask("subscribe", session_id=session_id, after={})
            while len([each for each in peer.events if each.event_type is EventType.COMMIT_FINAL]) < 2:
                await peer.receive()
            assert len([frame for frame in peer.frames if isinstance(frame, list)]) > 1


@pytest.mark.parametrize("query", ["?batch=0", "?batch", "?other=1", "?batch=1&batch=0"])
async def test_a_client_that_does_not_ask_for_batches_gets_none(query: str) -> None:
    async with open_house() as house, connect(house, query) as peer:
        await peer.take_turn(await peer.start())
        assert not any(isinstance(frame, list) for frame in peer.frames)


# -- whose session it is


async def test_sessions_of_others_look_as_if_they_did_not_exist() -> None:
    policy = AccessPolicy({"ann": "a" * 16, "bob": "b" * 16})
    async with (
        open_house(policy=policy) as house,
        connect(house, headers={"Authorization": f"Bearer {'a' * 16}"}) as ann,
        connect(house, headers={"Authorization": f"Bearer {'b' * 16}"}) as bob,
    ):
        session_id = await ann.start()
        assert session_id.startswith("ann:")
        for foreign in (session_id, "ann:nothing", "bob:nothing"):
            for op, fields in COMMANDS.items():
                reply = await bob.reply(await bob.send(op, session_id=foreign, **fields))
                assert error_code(reply) == "unknown_session", op
                assert reply["error"]["message"] == "There is no open session with that id."
        await ann.take_turn(session_id)


COMMANDS: dict[str, dict[str, object]] = {
    "subscribe": {},
    "begin_turn": {"input": "A room?"},
    "cancel": {},
    "finalize": {"turn_id": "t1-000001"},
    "heard": {"turn_id": "t1-000001", "seq": 0},
    "close": {},
}


async def test_a_resume_during_shutdown_is_not_refused() -> None:
    ledger = HeldLedger()
    async with open_house(ledger=ledger, limits=Limits(replay_turns=0)) as house, connect(house) as peer:
        session_id = (await peer.ask("start"))["session_id"]
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
        await house.stage.session(session_id).finalize(turn_id).wait()
        peer.after = {turn_id: 1}
        back = await peer.send("subscribe", session_id=session_id, after=peer.after)
        await ledger.is_looking.wait()
        house.stop()
        await trio.testing.wait_all_tasks_blocked()
        ledger.may_look.set()
        assert (await peer.reply(back))["ok"] is True
        assert [event.event_type for event in await peer.take_until(EventType.COMMIT_FINAL, turn_id)] == [
            EventType.TURN_FINAL,
            EventType.COMMIT_FINAL,
        ]
        await house.stopped.wait()
