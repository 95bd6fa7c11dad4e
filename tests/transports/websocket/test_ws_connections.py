"""WebSocket connections: accepted, refused, lost, silent, stalled, and closed by the server."""

from __future__ import annotations

import socket
import ssl
import tracemalloc
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
import trio.testing
import trustme
from trio_websocket import ConnectionClosed

from footlights import EventType, Limits, RegistrationError, TurnFinal, open_stage
from footlights.testing import only
from footlights_actors import Flood, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from tests.kit.peers.ws_peer import (
    HANDSHAKE,
    HeldModel,
    House,
    Peer,
    connect,
    open_house,
    open_stream,
    read_until_end,
    refusal,
    shake_hands,
    text_frame,
)
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

TOKEN = "t" * 20
PING = b"\x89\x00"


async def until(condition: Callable[[], bool]) -> None:
    """Let the others run until it is so. No time passes."""
    while not condition():
        await trio.lowlevel.checkpoint()


def with_header(header: str) -> bytes:
    return HANDSHAKE.replace(b"Host: localhost", f"Host: localhost\r\n{header}".encode())


# -- who may connect


async def test_another_path_is_not_found() -> None:
    async with open_house() as house:
        for path in (b"/", b"/v2", b"/v1/", b"//[/v1"):
            assert await refusal(house, HANDSHAKE.replace(b"/v1", path, 1)) == (404, "invalid_command")


async def test_a_client_that_does_not_offer_our_subprotocol_has_another_version() -> None:
    async with open_house() as house:
        assert await refusal(house, HANDSHAKE.replace(b"footlights.v1", b"chat")) == (400, "unsupported_version")


async def test_our_subprotocol_is_chosen() -> None:
    async with open_house() as house, connect(house, subprotocols=["chat", "footlights.v1"]) as peer:
        assert peer.socket.subprotocol == "footlights.v1"


@pytest.mark.parametrize("host", ["inn.example", "inn.example:7600", "127.0.0.1.evil.example", "::"])
async def test_without_tokens_a_rebound_host_name_is_refused(host: str) -> None:
    async with open_house() as house:
        request = HANDSHAKE.replace(b"Host: localhost", f"Host: {host}".encode())
        assert await refusal(house, request) == (403, "unauthorized")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:7600", "[::1]:7600"])
async def test_without_tokens_any_loopback_name_is_accepted(host: str) -> None:
    async with open_house() as house, connect(house, host=host) as peer:
        await peer.start()


async def test_with_tokens_the_host_may_be_any() -> None:
    policy, headers = AccessPolicy({"ann": TOKEN}), {"Authorization": f"Bearer {TOKEN}"}
    async with open_house(policy=policy) as house, connect(house, headers=headers, host="inn.example") as peer:
        await peer.start()


async def test_pages_from_elsewhere_may_not_connect() -> None:
    policy = AccessPolicy(origins=["https://game.example"])
    async with open_house(policy=policy) as house:
        assert await refusal(house, with_header("Origin: https://evil.example")) == (403, "unauthorized")
        async with connect(house, headers={"Origin": "https://game.example"}) as peer:
            await peer.start()


@pytest.mark.parametrize("header", ["X-Nothing: 1", "Authorization: Bearer wrong", f"Authorization: Basic {TOKEN}"])
async def test_a_missing_or_wrong_token_is_refused(header: str) -> None:
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house:
        assert await refusal(house, with_header(header)) == (401, "unauthorized")


async def test_a_wrong_token_in_the_header_is_not_made_good_by_another_in_a_subprotocol() -> None:
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house:
        request = with_header("Authorization: Bearer wrong").replace(b".v1\r", f".v1, bearer.{TOKEN}\r".encode())
        assert await refusal(house, request) == (401, "unauthorized")


async def test_a_token_may_come_in_a_header_or_as_a_subprotocol() -> None:
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house:
        async with connect(house, headers={"Authorization": f"Bearer {TOKEN}"}) as peer:
            assert (await peer.start()).startswith("ann:")
        async with connect(house, subprotocols=["footlights.v1", f"bearer.{TOKEN}"]) as peer:
            assert (await peer.start()).startswith("ann:")
            assert peer.socket.subprotocol == "footlights.v1"


async def test_one_connection_too_many_is_refused_and_the_next_after_one_has_left_is_accepted() -> None:
    async with open_house(wire_limits=WireLimits(max_connections=1)) as house:
        async with connect(house) as peer:
            assert await refusal(house, HANDSHAKE) == (503, "busy")
            await peer.start()
        await until(lambda: house.stage.statistics().subscribers == 0)
        async with connect(house) as peer:
            await peer.start()


async def test_the_oldest_pending_connection_is_dropped_for_a_new_one() -> None:
    async with (
        open_house(wire_limits=WireLimits(max_handshakes=2)) as house,
        await open_stream(house) as oldest,
        await open_stream(house) as older,
    ):
        await oldest.send_all(HANDSHAKE[:40])
        await trio.testing.wait_all_tasks_blocked()
        async with connect(house) as peer:
            assert await read_until_end(oldest) == b""
            await peer.start()
        assert (await shake_hands(older)).startswith(b"HTTP/1.1 101")


async def test_any_number_of_silent_connections_locks_out_no_client() -> None:
    async with AsyncExitStack() as crowd, open_house(wire_limits=WireLimits(max_handshakes=4)) as house:
        before = trio.lowlevel.current_statistics().tasks_living
        for _ in range(40):
            await crowd.enter_async_context(await open_stream(house))
        async with connect(house) as peer:
            await peer.take_turn(await peer.start())
        await trio.testing.wait_all_tasks_blocked()
        # For each of those who may still shake hands: the connection and its reader.
        assert trio.lowlevel.current_statistics().tasks_living <= before + 2 * 4


async def test_a_handshake_with_a_body_is_refused() -> None:
    async with open_house() as house:
        for header in ("Content-Length: 7", "Transfer-Encoding: chunked"):
            assert await refusal(house, with_header(header)) == (400, "invalid_command")
        async with await open_stream(house) as stream:
            assert (await shake_hands(stream, with_header("Content-Length: 0"))).startswith(b"HTTP/1.1 101")


async def test_a_client_that_sends_its_headers_too_slowly_is_closed(mock_clock: MockClock) -> None:
    limits = WireLimits(handshake_timeout=10.0)
    async with open_house(wire_limits=limits) as house, await open_stream(house) as slow:
        for at in range(9):
            await slow.send_all(HANDSHAKE[at : at + 1])
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(1.0)
        mock_clock.jump(1.5)
        assert await read_until_end(slow) == b""


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01 hello\r\n\r\n",
        b"POST /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        HANDSHAKE.replace(b"footlights.v1", b"xyzzy\xff"),
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n",
    ],
)
async def test_what_is_not_websocket_does_no_harm(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with open_house() as house, connect(house) as bystander:
        async with await open_stream(house) as stream:
            try:
                await stream.send_all(garbage)
                await read_until_end(stream)
            except trio.BrokenResourceError:
                pass  # it did not even read it to the end
        await bystander.take_turn(await bystander.start())
    assert "xyzzy" not in caplog.text


async def test_a_client_that_connects_and_leaves_is_not_counted(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(max_handshakes=1)) as house:
        async with await open_stream(house):
            pass
        async with connect(house) as peer:
            await peer.start()


async def test_tls() -> None:
    authority = trustme.CA()
    theirs, ours = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(theirs)
    authority.issue_cert("localhost").configure_cert(ours)
    async with open_house(tls=ours, wire_limits=WireLimits(max_frame_bytes=2_000)) as house:
        async with connect(house, tls=theirs) as peer:
            await peer.take_turn(await peer.start())
        async with connect(house, tls=theirs) as peer:
            await peer.socket.send_message("x" * 3_000)
            with pytest.raises(ConnectionClosed):
                await peer.receive()


async def test_without_tokens_only_this_machine_is_served() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        with pytest.raises(RegistrationError, match="configure tokens"):
            await serve_ws(SessionAccess(stage), host="0.0.0.0", port=0)


async def test_a_port_that_is_taken_is_an_error_of_the_system_and_one_that_is_free_again_is_had() -> None:
    async with open_house() as house:
        with pytest.raises(OSError, match=r"."):
            await serve_ws(house.access, host="127.0.0.1", port=house.listening.port)
        house.stop()
        await house.stopped.wait()
        async with trio.open_nursery() as nursery:
            port = house.listening.port
            listening = await nursery.start(partial(serve_ws, house.access, host="127.0.0.1", port=port))
            assert listening.port == port
            nursery.cancel_scope.cancel()


async def test_a_name_gets_one_free_port() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage, trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_ws, SessionAccess(stage), host="localhost", port=0))
        stream = await trio.open_tcp_stream("localhost", listening.port)
        async with stream:
            assert (await shake_hands(stream)).startswith(b"HTTP/1.1 101")
        nursery.cancel_scope.cancel()


# -- lost


async def begun(peer: Peer) -> tuple[str, str]:
    """A session and a turn of it that has said something."""
    session_id = await peer.start()
    turn_id = (await peer.ask("begin_turn", session_id=session_id, input="A room?"))["turn_id"]
    await peer.take_until(EventType.TOKEN_DELTA, turn_id)
    return session_id, turn_id


async def test_losing_the_connection_is_not_a_cancel_and_leaves_nothing_behind() -> None:
    model = HeldModel()
    async with open_house(model) as house:
        async with connect(house) as peer:
            session_id, turn_id = await begun(peer)
            await peer.send("finalize", session_id=session_id, turn_id=turn_id)
        await until(lambda: house.stage.statistics().subscribers == 0)
        model.may_go_on.set()
        async with connect(house) as again:
            again.after = {}
            await again.ask("subscribe", session_id=session_id, after={})
            events = await again.take_until(EventType.COMMIT_FINAL, turn_id)
            assert only(events, TurnFinal).text == "Well, good evening."


async def test_a_client_that_vanishes_without_a_word_leaves_nothing_behind() -> None:
    model = HeldModel()
    async with open_house(model) as house, connect(house) as bystander:
        async with await open_stream(house) as stream:
            await shake_hands(stream)
            session_id = await bystander.start()
            await stream.send_all(text_frame(f'{{"op":"subscribe","id":1,"session_id":"{session_id}"}}'))
            await until(lambda: house.stage.statistics().subscribers == 2)
            assert isinstance(stream, trio.SocketStream)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing it sends a reset
        await until(lambda: house.stage.statistics().subscribers == 1)
        model.may_go_on.set()
        await bystander.take_turn(session_id)


# -- silent


async def test_a_silent_client_is_pinged_and_lives_on_if_it_answers(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(keep_alive=15.0)) as house, await open_stream(house) as stream:
        await shake_hands(stream)
        for silence in (15.0, 30.0):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(silence)
            assert await stream.receive_some() == PING
            await stream.send_all(b"\x8a\x80" + bytes(4))
        await stream.send_all(text_frame('{"op":"start","id":1}'))
        assert b'"ok":true' in await stream.receive_some()


async def test_a_client_that_speaks_is_not_pinged(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(keep_alive=15.0)) as house, await open_stream(house) as stream:
        await shake_hands(stream)
        for _ in range(5):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(10.0)
            await stream.send_all(text_frame('{"op":"start","id":1}'))
            assert (await stream.receive_some()).startswith(b"\x81")


async def test_a_client_that_does_not_answer_pings_is_closed(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(keep_alive=15.0)) as house, await open_stream(house) as stream:
        await shake_hands(stream)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(15.0)
        assert await stream.receive_some() == PING
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(30.0)
        assert await read_until_end(stream) == b""


# -- stalled

FLOOD = ScriptedModel(lambda _: (Flood("blah " * 40, 2_000),))


async def fill_up(house: House, quick: Peer, session_id: str) -> None:
    """Play turns until one subscriber cannot be sent any more."""
    while not any(each.must_deliver_waiting for each in house.stage.session(session_id).statistics().subscribers):
        await quick.take_turn(session_id)
        await trio.testing.wait_all_tasks_blocked()


async def test_a_client_that_stops_reading_slows_no_other_and_gets_a_detached_notice(mock_clock: MockClock) -> None:
    async with (
        open_house(FLOOD, limits=Limits(stall_detach=30.0, replay_turns=1)) as house,
        connect(house) as stalled,
        connect(house) as quick,
    ):
        session_id = await stalled.start()
        await quick.ask("subscribe", session_id=session_id)
        await fill_up(house, quick, session_id)
        mock_clock.jump(31.0)
        await quick.take_turn(session_id)
        assert await stalled.notice() == {"notice": "detached", "session_id": session_id, "reason": "stalled"}
        stalled.after = {}
        seen = {each.turn_id: each.seq for each in stalled.events}
        ended = [each.turn_id for each in stalled.events if each.event_type is EventType.TURN_FINAL]
        await stalled.ask("subscribe", session_id=session_id, after=seen, terminal_seen=ended)
        last = quick.events[-1].turn_id
        await stalled.take_until(EventType.COMMIT_FINAL, last)


async def test_a_client_that_never_reads_again_is_closed(mock_clock: MockClock) -> None:
    limits = WireLimits(keep_alive=15.0)
    async with (
        open_house(FLOOD, wire_limits=limits) as house,
        await open_stream(house) as stalled,
        connect(house) as quick,
    ):
        session_id = await quick.start()
        await shake_hands(stalled)
        await stalled.send_all(text_frame(f'{{"op":"subscribe","id":1,"session_id":"{session_id}"}}'))
        await fill_up(house, quick, session_id)
        mock_clock.jump(16.0)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(31.0)
        await until(lambda: house.stage.statistics().subscribers == 1)
        await quick.take_turn(session_id)


ENDLESS = 40_000
"""Commands. A client that can send so many without reading an answer is not stopped by anything."""


def long_text_frame(text: str) -> bytes:
    data = text.encode()
    return bytes((0x81, 0x80 | 126)) + len(data).to_bytes(2, "big") + bytes(4) + data


async def open_deaf_stream(house: House) -> trio.SocketStream:
    """A connection that takes in and sends little before it is read from."""
    deaf = trio.socket.socket()
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        deaf.setsockopt(socket.SOL_SOCKET, buffer, 4_096)
    await deaf.connect(("127.0.0.1", house.listening.port))
    return trio.SocketStream(deaf)


@pytest.mark.parametrize(
    "op", ["finalize", "finalize the held one", "close", "cancel", "heard", "subscribe", "nothing"]
)
async def test_a_client_that_asks_and_never_reads_is_stopped_and_costs_little(op: str, mock_clock: MockClock) -> None:
    limits = WireLimits(
        keep_alive=15.0, max_commands_waiting=8, command_burst=ENDLESS * 2, user_command_burst=ENDLESS * 2
    )
    async with (
        open_house(HeldModel(), wire_limits=limits) as house,
        connect(house) as quick,
        await open_deaf_stream(house) as deaf,
    ):
        session_id, turn_id = await begun(quick)
        if op == "finalize the held one":
            op = "finalize"
        else:
            await quick.ask("cancel", session_id=session_id)
            await quick.take_until(EventType.COMMIT_FINAL, turn_id)
        if op in {"close", "subscribe"}:
            session_id = "none"
        command = {"op": op, "id": "x" * 120, "session_id": session_id, "turn_id": turn_id, "seq": 0}
        taken = {"close": 3, "subscribe": 3, "finalize": 4, "cancel": 4, "heard": 5, "nothing": 5}[op]
        frame = long_text_frame(orjson.dumps(dict(list(command.items())[:taken])).decode())
        await shake_hands(deaf)
        await trio.testing.wait_all_tasks_blocked()
        before, sent = trio.lowlevel.current_statistics().tasks_living, 0

        async def flood() -> None:
            nonlocal sent
            with suppress(trio.BrokenResourceError):
                while sent < ENDLESS:
                    await deaf.send_all(frame * 50)
                    sent += 50

        async with trio.open_nursery() as nursery:
            tracemalloc.start()
            nursery.start_soon(flood)
            await trio.testing.wait_all_tasks_blocked(0.05)
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert sent < ENDLESS
            assert held < 1_000_000
            assert trio.lowlevel.current_statistics().tasks_living <= before + 1 + limits.max_commands_waiting
            while nursery.child_tasks:  # until it is given up, and its flood breaks
                assert await quick.refusal("cancel", session_id="none") == "unknown_session"
                await trio.testing.wait_all_tasks_blocked()
                mock_clock.jump(16.0)
                await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living < before


async def test_a_client_that_is_refused_to_come_back_and_never_reads_costs_little() -> None:
    async with open_house(FLOOD) as house, connect(house) as quick, await open_deaf_stream(house) as deaf:
        full, other = await quick.start(), await quick.start()
        await quick.take_turn(other)
        await shake_hands(deaf)
        await deaf.send_all(text_frame(f'{{"op":"subscribe","id":1,"session_id":"{full}"}}'))
        await fill_up(house, quick, full)
        before = trio.lowlevel.current_statistics().tasks_living
        turn_id = quick.events[0].turn_id
        for _ in range(20):
            never_had = f'{{"op":"subscribe","id":2,"session_id":"{other}","after":{{"{turn_id}":999999}}}}'
            await deaf.send_all(text_frame(never_had))
            await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living <= before + 1


# -- closed by the server


async def test_a_server_that_stops_accepting_keeps_those_it_has() -> None:
    async with open_house() as house, connect(house) as peer:
        house.listening.stop_accepting()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match=r"."):
            await open_stream(house)
        await peer.take_turn(await peer.start())


async def test_a_closing_server_sends_what_waits_and_says_that_it_goes_away() -> None:
    async with open_house(HeldModel()) as house, connect(house) as peer:
        session_id, turn_id = await begun(peer)
        await peer.ask("cancel", session_id=session_id)
        house.stop()
        with pytest.raises(ConnectionClosed) as closed:
            await peer.take_until(EventType.COMMIT_FINAL, "none")
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1001
        assert EventType.TURN_INTERRUPTED in {each.event_type for each in peer.events if each.turn_id == turn_id}
        assert not peer.notices
        await house.stopped.wait()


async def test_a_closing_server_waits_only_so_long_for_clients_that_do_not_close(mock_clock: MockClock) -> None:
    async with open_house(goodbye=5.0) as house, await open_stream(house) as stream, await open_stream(house) as new:
        await shake_hands(stream)
        house.stop()
        assert await read_until_end(new) == b""  # who has not come in yet is not waited for
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not house.stopped.is_set()
        mock_clock.jump(5.5)
        await house.stopped.wait()
        assert (await read_until_end(stream))[:1] == b"\x88"


async def test_when_the_stage_closes_first_clients_get_the_end_of_every_stream() -> None:
    async with trio.open_nursery() as nursery:
        playing = trio.Event()

        async def play(house: House) -> None:
            async with connect(house) as peer:
                session_id, turn_id = await begun(peer)
                playing.set()
                assert await peer.notice() == {"notice": "ended", "session_id": session_id}
                assert [each.event_type for each in peer.events if each.turn_id == turn_id][-2:] == [
                    EventType.TURN_INTERRUPTED,
                    EventType.COMMIT_FINAL,
                ]
            nursery.cancel_scope.cancel()

        async with open_stage(standard_cast(HeldModel())) as stage:
            access = SessionAccess(stage)
            listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=0))
            nursery.start_soon(play, House(stage, access, listening, nursery.cancel_scope.cancel, trio.Event()))
            await playing.wait()


async def test_connections_that_are_made_at_once_are_counted_too() -> None:
    answers: list[bytes] = []
    everybody = trio.Event()
    hello = (
        b"GET /v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Protocol: footlights.v1\r\n\r\n"
    )

    async def come_in(port: int) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(hello)
            answers.append((await stream.receive_some())[9:12])
            if len(answers) == 8:
                everybody.set()
            await everybody.wait()

    async with open_house(wire_limits=WireLimits(max_connections=2)) as house, trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(come_in, house.listening.port)
    assert sorted(answers) == [b"101"] * 2 + [b"503"] * 6
