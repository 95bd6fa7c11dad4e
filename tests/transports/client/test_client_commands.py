"""Many commands on one connection: each gets its own reply or its own error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import Busy, CommitOutcome, FootlightsError, InvalidCommand, TooLarge
from footlights_transports import ConnectionLost, Retry, connect
from footlights_transports.access.policy import AccessPolicy, WireLimits
from tests.kit.peers.client_peer import GOING_AWAY, TOO_BIG, WsPeer, done, open_script, refused
from tests.kit.peers.ws_liar import open_peer
from tests.kit.peers.ws_peer import open_house
from tests.transports.contract.cue_model import CuedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trio.testing import MockClock

    from footlights_transports import ClientSession, ClientStream

AT_ONCE = Retry(first=1e-6, longest=1e-6)


class Results:
    """What came of commands that were given one after the other, and wait for their replies together."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self.of: dict[str, str | FootlightsError] = {}

    async def begin(self, said: str) -> None:
        try:
            self.of[said[0]] = await self._session.begin_turn(said)
        except FootlightsError as error:
            self.of[said[0]] = error

    async def begin_all(self, *said: str) -> None:
        async with trio.open_nursery() as nursery:
            for each in said:
                nursery.start_soon(self.begin, each)
                await trio.testing.wait_all_tasks_blocked()


def closing_after(count: int) -> Callable[[int, dict[str, Any]], Iterable[object]]:
    """The first connection is closed at that command, as by a server that cannot read it. The next ones are well."""
    heard: list[dict[str, Any]] = []

    def answer(connection: int, command: dict[str, Any]) -> Iterable[object]:
        heard.append(command)
        if connection > 0:
            yield done(command, turn_id=f"t1-{command['id']:06d}", canceled=[])
        elif len(heard) == count:
            yield TOO_BIG

    return answer


# -- too large


async def test_only_the_command_that_is_too_large_is_to_blame_for_it() -> None:
    model, commits = CuedModel(), list[CommitOutcome]()

    async def finalize(session: ClientSession, turn_id: str) -> None:
        commits.append((await session.finalize(turn_id)).commit_outcome)

    async with (
        open_house(model, policy=AccessPolicy(limits=WireLimits(max_frame_bytes=1_000))) as house,
        connect(f"ws://127.0.0.1:{house.listening.port}", retry=AT_ONCE) as client,
        trio.open_nursery() as nursery,
    ):
        session = await client.start()
        nursery.start_soon(finalize, session, await session.begin_turn("~go"))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(TooLarge):
            await session.begin_turn("x" * 2_000)
        model.cue("go")
    assert commits == [CommitOutcome.OK]


async def test_what_was_sent_behind_a_command_that_is_too_large_was_not_done_and_is_sent_again() -> None:
    async with open_script(closing_after(3)) as address, connect(address, retry=AT_ONCE) as client:
        results = Results(client.session("inn"))
        await results.begin_all("a", "b" * 2_000, "c")
    first, large, last = (results.of[key] for key in "abc")
    assert isinstance(large, TooLarge)
    assert (first, last) == ("t1-000001", "t1-000003")


async def test_a_session_whose_start_was_sent_and_not_answered_may_have_been_started() -> None:
    async with open_script(lambda _, command: [GOING_AWAY]) as address, connect(address, retry=AT_ONCE) as client:
        with pytest.raises(ConnectionLost) as lost:
            await client.start()
        assert lost.value.maybe_done


# -- a turn whose reply is lost


def losing(*codes: str | None) -> tuple[list[dict[str, Any]], Callable[[int, dict[str, Any]], Iterable[object]]]:
    """The first begin_turn gets no reply, the next ones are refused with these codes, and then one is done."""
    heard: list[dict[str, Any]] = []

    def answer(_: int, command: dict[str, Any]) -> Iterable[object]:
        heard.append(command)
        if len(heard) == 1:
            yield GOING_AWAY
        elif len(heard) - 2 < len(codes):
            yield refused(command["id"], str(codes[len(heard) - 2]), "No.")
        else:
            yield done(command, turn_id="t1-000001")

    return heard, answer


async def test_it_is_sent_again_with_the_same_random_id() -> None:
    heard, answer = losing()
    async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
        assert await client.session("inn").begin_turn("A room?") == "t1-000001"
        assert await client.session("inn").begin_turn("A room?") == "t1-000001"
    first, again, other = heard
    assert first == again
    assert 16 <= len(first["request_id"]) <= 128
    assert other["request_id"] != first["request_id"]


async def test_a_stream_that_is_read_asks_for_a_turn_that_was_found_again_and_of_which_nothing_has_come() -> None:
    asked: list[object] = []
    _, answer_command = losing()

    def answer(connection: int, command: dict[str, Any]) -> Iterable[object]:
        if command["op"] != "subscribe":
            yield from answer_command(connection, command)
            return
        asked.append(command.get("after"))
        yield done(command, cursor={})
        if len(asked) == 2:
            yield {"notice": "ended", "session_id": "inn"}

    async def read(stream: ClientStream) -> None:
        assert [event async for event in stream] == []

    with trio.fail_after(10):  # a stream that does not ask waits for ever
        async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
            session = client.session("inn")
            async with session.subscribe() as stream, trio.open_nursery() as nursery:
                nursery.start_soon(read, stream)
                await trio.testing.wait_all_tasks_blocked()
                assert await session.begin_turn("A room?") == "t1-000001"
    assert asked == [None, {"t1-000001": -1}]


async def test_it_is_sent_with_the_id_of_the_caller_also_if_no_server_takes_it() -> None:
    heard, answer = losing("invalid_command")
    async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
        with pytest.raises(InvalidCommand):
            await client.session("inn").begin_turn("A room?", request_id="")
    assert [each["request_id"] for each in heard] == ["", ""]


async def test_a_second_attempt_is_not_given_up_because_the_server_is_busy_now() -> None:
    heard, answer = losing("busy", "rate_limited")
    async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
        assert await client.session("inn").begin_turn("A room?") == "t1-000001"
    assert len(heard) == 4


async def test_a_server_that_stays_busy_is_given_up_when_patience_is_over() -> None:
    _, answer = losing(*["busy"] * 1_000)
    hasty = Retry(first=1e-6, longest=1e-6, patience=1e-3)
    async with open_script(answer) as address, connect(address, retry=hasty) as client:
        with pytest.raises(ConnectionLost) as lost:
            await client.session("inn").begin_turn("A room?")
    assert lost.value.maybe_done


async def test_a_first_attempt_is_refused_at_once() -> None:
    async with (
        open_script(lambda _, command: [refused(command["id"], "busy", "No.")]) as address,
        connect(address, retry=AT_ONCE) as client,
    ):
        with pytest.raises(Busy):
            await client.session("inn").begin_turn("A room?")


# -- the blame for what is too large


async def test_a_cancelled_command_that_is_too_large_still_takes_the_blame() -> None:
    async with open_script(closing_after(2)) as address, connect(address, retry=AT_ONCE) as client:
        session = client.session("inn")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.begin_turn, "x" * 2_000)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        assert await session.cancel() == ()


async def test_a_command_that_was_never_sent_is_not_to_blame_however_large_it_is() -> None:
    first, may_close = [True], trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        is_first, first[0] = first[0], False
        peer = WsPeer(stream)
        await peer.shake_hands()
        if is_first:
            await may_close.wait()
            await peer.send(TOO_BIG)
            await stream.send_eof()
            while await stream.receive_some():
                pass
        while not is_first and (command := await peer.receive_command()) is not None:
            await peer.say(done(command, turn_id="t1-000001"))

    async with open_peer(serve) as address, connect(address, retry=AT_ONCE) as client, trio.open_nursery() as nursery:
        results = Results(client.session("inn"))
        nursery.start_soon(results.begin_all, "a" * 20_000_000, "b" * 21_000_000)
        await trio.testing.wait_all_tasks_blocked()
        may_close.set()
    assert isinstance(results.of["a"], TooLarge)
    assert results.of["b"] == "t1-000001"


async def test_a_command_that_does_not_even_fit_into_the_buffers_is_too_large_and_the_client_goes_on() -> None:
    async with (
        open_house() as house,
        connect(f"ws://127.0.0.1:{house.listening.port}", retry=AT_ONCE) as client,
    ):
        session = await client.start()
        with pytest.raises(TooLarge):
            await session.begin_turn("x" * 20_000_000)
        assert await session.begin_turn("A room?") == "t1-000001"


async def test_a_cursor_that_is_too_large_is_said_to_be_and_is_not_sent_for_ever() -> None:
    async with (
        open_house(policy=AccessPolicy(limits=WireLimits(max_frame_bytes=1_000))) as house,
        connect(f"ws://127.0.0.1:{house.listening.port}", retry=AT_ONCE) as client,
    ):
        session = await client.start()
        with pytest.raises(TooLarge), trio.fail_after(20):
            await session.subscribe(after={f"t1-{number:06d}": -1 for number in range(200)}).__aenter__()


# -- what the server could not read


async def test_a_command_that_could_not_be_read_is_refused_although_the_server_does_not_name_it() -> None:
    def answer(_: int, command: dict[str, Any]) -> Iterable[object]:
        yield refused(None, "invalid_command", "It nests too deep.")

    async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
        for _ in range(2):  # the connection goes on
            with pytest.raises(InvalidCommand, match=r"^It nests too deep\.$"):
                await client.session("inn").begin_turn("A room?")
        with pytest.raises(InvalidCommand, match="too deep"):
            await client.session("inn").subscribe().__aenter__()


async def test_an_unreadable_command_without_an_id_fails_all_waiting_commands() -> None:
    heard: list[dict[str, Any]] = []

    def answer(connection: int, command: dict[str, Any]) -> Iterable[object]:
        heard.append(command)
        assert connection == 0
        if len(heard) == 2:
            yield refused(None, "invalid_command", "It nests too deep.")
        elif len(heard) > 2:
            yield done(command, turn_id="t1-000007")

    async with open_script(answer) as address, connect(address, retry=AT_ONCE) as client:
        results = Results(client.session("inn"))
        await results.begin_all("a", "b")
        for each in results.of.values():
            assert isinstance(each, InvalidCommand)
            assert "one of 2 commands" in str(each)
            assert "too deep" in str(each)
        assert await client.session("inn").begin_turn("c") == "t1-000007"


@pytest.mark.parametrize("nonsense", [{"reply": True}, {"reply": [1]}, {"reply": 99}, {"notice": "x"}, [], {}])
async def test_what_answers_nothing_is_passed_over(nonsense: object) -> None:
    async with (
        open_script(lambda _, command: [nonsense, done(command, turn_id="t1-000001")]) as address,
        connect(address) as client,
    ):
        assert await client.session("inn").begin_turn("A room?") == "t1-000001"


@pytest.mark.parametrize("reply", [{"ok": True}, {"ok": True, "result": []}])
async def test_a_reply_that_says_nothing_is_no_reply(reply: dict[str, Any]) -> None:
    async with (
        open_script(lambda _, command: [{"reply": command["id"], **reply}]) as address,
        connect(address, retry=AT_ONCE) as client,
    ):
        with pytest.raises(ConnectionLost, match="protocol") as lost:
            await client.session("inn").begin_turn("A room?")
        assert lost.value.maybe_done


# -- coming back


async def test_all_waiting_commands_share_one_patience(autojump_clock: MockClock) -> None:
    gave_up_after: list[float] = []

    async def cancel(session: ClientSession) -> None:
        began = trio.current_time()
        with pytest.raises(ConnectionLost):
            await session.cancel()
        gave_up_after.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        async with open_script(lambda _, command: [done(command, canceled=[])]) as address:
            client = await nursery.start(_hold_client, address)
            session = client.session("inn")
            await session.cancel()
        await trio.testing.wait_all_tasks_blocked()
        for again in range(2):  # who asks later has as much patience
            async with trio.open_nursery() as callers:
                for _ in range(5):
                    callers.start_soon(cancel, session)
            assert len(gave_up_after) == 5 + 5 * again
            assert all(60 < after <= 70 for after in gave_up_after)
        nursery.cancel_scope.cancel()


async def _hold_client(address: str, *, task_status: trio.TaskStatus[Any]) -> None:
    async with connect(address) as client:
        task_status.started(client)
        await trio.sleep_forever()


async def test_cancelling_a_waiting_command_does_not_stop_the_reconnection(autojump_clock: MockClock) -> None:
    answered: list[tuple[str, ...]] = []

    async def cancel(session: ClientSession) -> None:
        answered.append(await session.cancel())

    def answer(connection: int, command: dict[str, Any]) -> Iterable[object]:
        yield GOING_AWAY if connection < 3 else done(command, canceled=["t1-000001"])

    async with (
        open_script(answer) as address,
        connect(address, retry=Retry(first=1, longest=1)) as client,
        trio.open_nursery() as nursery,
    ):
        session = client.session("inn")
        with trio.move_on_after(0.5) as impatience:
            nursery.start_soon(cancel, session)
            await cancel(session)
    assert impatience.cancelled_caught
    assert answered == [("t1-000001",)]
