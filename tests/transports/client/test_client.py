"""Client sessions behave like local ones, and report exactly what the client cannot know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import (
    ErrorInfo,
    EventType,
    FootlightsError,
    InvalidCommand,
    Limits,
    ModelUnreachable,
    SessionClosed,
    SessionParams,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
    UnknownSession,
    UnknownTurn,
    laws,
)
from footlights.testing import only
from footlights_actors import Fail, ScriptedModel
from footlights_transports import Commit, Retry, connect
from footlights_transports.client.protocol import refusal
from footlights_transports.client.session import MAX_BEGUN
from footlights_transports.errors import RateLimited
from tests.kit.cutting_proxy import Fate, open_proxy
from tests.kit.peers.ws_liar import open_liar
from tests.kit.peers.ws_peer import open_house
from tests.transports.contract.cue_model import CuedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_transports import Client, ClientSession, ClientStream

AT_ONCE = Retry(first=1e-6, longest=1e-6)


@pytest.fixture
def model() -> CuedModel:
    return CuedModel()


@pytest.fixture
async def client(model: CuedModel) -> AsyncGenerator[Client, None]:
    with trio.fail_after(60):
        async with (
            open_house(model, limits=Limits(replay_turns=1)) as house,
            connect(f"ws://127.0.0.1:{house.listening.port}", retry=AT_ONCE) as connected,
        ):
            yield connected


@pytest.fixture
async def session(client: Client) -> ClientSession:
    return await client.start()


async def whole(stream: ClientStream, turn_id: str) -> list[StreamEvent]:
    return [event async for event in stream.until_commit(turn_id)]


# -- the client


async def test_the_hosts_own_exception_leaves_the_block_as_it_is(client: Client) -> None:
    async with open_house() as house:
        with pytest.raises(KeyError, match="mine"):
            async with connect(f"ws://127.0.0.1:{house.listening.port}"):
                raise KeyError("mine")


async def test_a_turn_that_fails_says_why() -> None:
    why = ErrorInfo("model_unreachable", "inn.example cannot be reached (ConnectError).")
    away = ScriptedModel(lambda _: [Fail(ModelUnreachable(sentence=why.message))])
    with trio.fail_after(60):
        async with open_house(away) as house, connect(f"ws://127.0.0.1:{house.listening.port}") as client:
            session = await client.start()
            async with session.subscribe() as stream:
                events = await whole(stream, await session.begin_turn("A room?"))
    assert only(events, TurnInterrupted).error == why


async def test_a_cancelled_host_leaves_in_order() -> None:
    async with open_house() as house:
        with trio.CancelScope() as scope:
            async with connect(f"ws://127.0.0.1:{house.listening.port}"):
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught


async def test_leaving_closes_no_session_and_cancels_no_turn(model: CuedModel) -> None:
    async with open_house(model) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        async with connect(url) as client:
            session = await client.start(SessionParams(session_id="inn"))
            turn_id = await session.begin_turn("~go")
        async with connect(url) as client:
            model.cue("go")
            decision = await client.session("inn").finalize(turn_id)
    assert decision == Commit(decision.commit_digest, decision.commit_outcome, f"c-{decision.commit_digest[:16]}")


async def test_commands_of_many_tasks_do_not_wait_for_each_other(session: ClientSession, model: CuedModel) -> None:
    turn_id = await session.begin_turn("~go")
    order: list[str] = []

    async def finalize() -> None:
        await session.finalize(turn_id)
        order.append("finalized")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(finalize)
        await trio.testing.wait_all_tasks_blocked()
        await session.heard(turn_id, 0)
        order.append("heard")
        model.cue("go")
    assert order == ["heard", "finalized"]


async def test_a_command_that_is_cancelled_leaves_nothing_behind(session: ClientSession) -> None:
    turn_id = await session.begin_turn("~never")
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.finalize, turn_id)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert await session.cancel(turn_id) == (turn_id,)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("rate_limited", "Slower.", RateLimited),
        ("unknown_turn", "No.", UnknownTurn),
        ("internal", "Oh.", FootlightsError),
        ("of the future", "Hm.", FootlightsError),
        (None, None, FootlightsError),
        ([], {}, FootlightsError),
    ],
)
def test_a_refusal_is_the_same_error_as_in_process(code: object, message: object, kind: type[Exception]) -> None:
    error = refusal({"code": code, "message": message})
    assert type(error) is kind
    assert str(error) == (message if isinstance(message, str) else "The server refused, and did not say why.")


async def test_what_json_cannot_say_is_refused_before_it_is_sent(session: ClientSession) -> None:
    with pytest.raises(InvalidCommand, match="surrogate"):
        await session.begin_turn("\ud83c")


@pytest.mark.parametrize("number", [2**53, 2**70, -(2**63)])
async def test_a_number_that_json_readers_disagree_about_is_refused_by_the_name_of_its_field(
    session: ClientSession, number: int
) -> None:
    with pytest.raises(InvalidCommand, match="seq: must not hold integers beyond 9007199254740991"):
        await session.heard("t1-000001", number)
    with pytest.raises(InvalidCommand, match="after: must not hold integers beyond 9007199254740991"):
        await session.subscribe(after={"t1-000001": number}).__aenter__()


# -- what was lost


async def test_a_turn_whose_reply_is_lost_is_found_and_not_begun_again() -> None:
    async with open_house() as house:
        started = await _bytes_until_started(house.listening.port)
        async with (
            open_proxy(house.listening.port, [Fate(hold_down=started + 1)]) as proxy,
            connect(f"ws://127.0.0.1:{proxy.port}", retry=AT_ONCE) as client,
        ):
            session = await client.start(SessionParams(session_id="inn"))
            async with session.subscribe() as stream, trio.open_nursery() as nursery:
                begun: list[str] = []

                @nursery.start_soon
                async def _begin() -> None:
                    begun.append(await session.begin_turn("A room? " * 20))

                await proxy.held.wait()
                event = await anext(stream)  # it did begin
                proxy.cut_all()
            assert event.event_type is EventType.TURN_ACCEPTED
            assert begun == [event.turn_id]
            assert await session.begin_turn("And now?") == "t1-000002"


async def _bytes_until_started(port: int) -> int:
    """How much a client is sent until it has a session with a name of three letters."""
    async with open_proxy(port) as proxy, connect(f"ws://127.0.0.1:{proxy.port}") as client:
        await (await client.start(SessionParams(session_id="pub"))).close()
        return proxy.carried[0] - len('{"reply":2,"ok":true,"result":{}}') - 2


async def test_a_turn_that_was_never_sent_is_sent_when_the_connection_is_back() -> None:
    async with (
        open_house() as house,
        open_proxy(house.listening.port) as proxy,
        connect(f"ws://127.0.0.1:{proxy.port}", retry=AT_ONCE) as client,
    ):
        session = await client.start()
        proxy.cut_all()
        while (
            replies := client._commands._replies
        ) is not None and replies.connection.is_open:  # until the client has noticed
            await trio.testing.wait_all_tasks_blocked(0.001)
        assert await session.begin_turn("A room?") == "t1-000001"


async def test_what_may_be_done_twice_is_asked_for_again() -> None:
    fates = [Fate(cut_up=at) for at in (700, 620, 610, 600)]
    async with (
        open_house() as house,
        open_proxy(house.listening.port, fates) as proxy,
        connect(f"ws://127.0.0.1:{proxy.port}", retry=AT_ONCE) as client,
    ):
        session = client.session((await client.start()).session_id)
        for _ in range(40):
            assert await session.cancel() == ()
        assert proxy.cuts == len(fates)


async def test_a_session_that_never_was_is_not_brought_back(client: Client) -> None:
    with pytest.raises(UnknownSession):
        await client.session("s1-000099").cancel()


# -- closing


async def test_closing_a_session_that_another_client_closed_succeeds(client: Client) -> None:
    mine = await client.start(SessionParams(session_id="inn"))
    await client.session("inn").close()
    await mine.close()
    with pytest.raises(SessionClosed):
        await mine.begin_turn("Anybody?")
    with pytest.raises(SessionClosed):
        await mine.subscribe().__aenter__()
    await mine.close()


@pytest.mark.parametrize("name", [None, "inn"])
async def test_a_stream_that_was_cut_off_when_its_session_closed_ends_too(client: Client, name: str | None) -> None:
    session = await client.start(SessionParams(session_id=name))
    async with session.subscribe() as stream:
        await session.begin_turn("~never")
        events = [await anext(stream)]
        await stream.drop_connection()
        await session.close()
        events += [event async for event in stream]
        assert stream.is_exhausted
    assert events[-1].event_type is EventType.COMMIT_FINAL
    assert laws.check(events) == []


async def test_a_close_whose_reply_was_lost_ends_the_streams_that_came_back() -> None:
    async with open_house(CuedModel()) as house, open_proxy(house.listening.port) as proxy:
        async with connect(f"ws://127.0.0.1:{proxy.port}", retry=AT_ONCE) as client:
            session = await client.start(SessionParams(session_id="inn"))
            async with session.subscribe() as stream:
                await stream.drop_connection()
                await house.stage.session("inn").close()  # as if by the command whose reply never came
                await session.close()
                assert [event async for event in stream] == []
        assert house.stage.statistics().sessions == 0


# -- the stream


async def test_a_stream_that_was_not_entered_says_so(session: ClientSession) -> None:
    with pytest.raises(InvalidCommand, match="async with"):
        await anext(session.subscribe())


async def test_a_stream_is_entered_once(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        with pytest.raises(InvalidCommand, match="once"):
            await stream.__aenter__()


async def test_a_stream_has_one_reader(session: ClientSession) -> None:
    async with session.subscribe() as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.receive_batch)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(stream)
        nursery.cancel_scope.cancel()


async def test_a_stream_is_a_receive_channel(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        channel: trio.abc.ReceiveChannel[StreamEvent] = stream
        await session.begin_turn("A room?")
        assert (await channel.receive()).seq == 0
        await session.close()
        assert [event.seq async for event in channel] != []
        with pytest.raises(trio.EndOfChannel):
            await channel.receive()


async def test_a_stream_that_was_left_has_ended(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        pass
    assert await stream.receive_batch() == []
    assert stream.is_exhausted


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_batch_of_nothing_makes_no_sense(session: ClientSession, limit: int) -> None:
    async with session.subscribe() as stream:
        with pytest.raises(InvalidCommand):
            await stream.receive_batch(limit)


async def test_a_batch_holds_what_is_here_up_to_its_limit(session: ClientSession) -> None:
    await session.finalize(await session.begin_turn("Good evening my friend"))
    async with session.subscribe(after={}) as stream:
        first = await stream.receive_batch(2)
        rest = await stream.receive_batch()
    assert [event.seq for event in first] == [0, 1]
    assert rest[0].seq == 2


async def test_a_read_that_is_cancelled_loses_nothing(session: ClientSession, model: CuedModel) -> None:
    async with session.subscribe() as stream:
        turn_id = await session.begin_turn("Good ~evening friend")
        got: list[StreamEvent] = []
        while len(got) < 4:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_cancel_when_blocked, scope)
                    got.append(await anext(stream))
                    nursery.cancel_scope.cancel()
        model.cue("evening")
        got += await whole(stream, turn_id)
    assert laws.check(got) == []
    assert only(got, TurnFinal).text == "Good evening friend"


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


async def test_what_ended_before_a_stream_was_entered_is_not_its_business_when_it_comes_back(
    session: ClientSession,
) -> None:
    before = await session.begin_turn("Before")
    await session.finalize(before)
    async with session.subscribe() as stream:
        assert await whole(stream, before) == []
        await stream.drop_connection()
        turn_id = await session.begin_turn("And now?")
        assert {event.turn_id for event in await whole(stream, turn_id)} == {turn_id}


async def test_a_stream_says_whose_end_was_taken_and_not_its_commit(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        turn_id = await session.begin_turn("Good evening")
        async for event in stream.until_commit(turn_id):
            assert stream.terminal_seen == ({turn_id} if event.event_type is EventType.TURN_FINAL else set())


async def test_only_so_many_turns_are_remembered_to_have_begun_here() -> None:
    async with open_liar(lambda it: [_begun(it)]) as address, connect(address) as client:
        session = client.session("inn")
        turns = [await session.begin_turn("A room?") for _ in range(MAX_BEGUN + 1)]
    assert [session.has_begun(turn_id) for turn_id in turns[:2]] == [False, True]


def _begun(command: dict[str, Any]) -> dict[str, Any]:
    return {"reply": command["id"], "ok": True, "result": {"turn_id": f"t1-{command['id']:06d}"}}


async def test_until_commit_of_an_unknown_turn_is_refused(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        with pytest.raises(UnknownTurn):
            stream.until_commit("t1-000001")


async def test_until_commit_follows_a_turn_that_another_session_object_began(
    client: Client, session: ClientSession
) -> None:
    async with session.subscribe() as stream:
        turn_id = await client.session(session.session_id).begin_turn("A room?")
        first = await anext(stream)
        assert (first.turn_id, (await whole(stream, turn_id))[-1].event_type) == (turn_id, EventType.COMMIT_FINAL)


async def test_a_resumed_stream_gets_the_turns_that_ran_meanwhile(client: Client, session: ClientSession) -> None:
    somebody_else = client.session(session.session_id)
    async with session.subscribe() as stream:
        await stream.drop_connection()
        turns = [await somebody_else.begin_turn("A room?") for _ in range(5)]
        for turn_id in turns:
            await somebody_else.finalize(turn_id)
        last = await session.begin_turn("And now?")
        events = await whole(stream, last)
    commits = [event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL]
    assert commits == [*turns, last]
    assert laws.check(events) == []


async def test_a_stream_of_many_turns_comes_back_without_a_repeat(session: ClientSession) -> None:
    async with session.subscribe() as stream:
        for _ in range(70):  # more than a subscriber may ask after of turns of long ago
            await whole(stream, await session.begin_turn("Good evening"))
        await stream.drop_connection()
        turn_id = await session.begin_turn("And now?")
        assert {event.turn_id for event in await whole(stream, turn_id)} == {turn_id}
