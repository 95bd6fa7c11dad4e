"""Connections of the HTTP server: how many, how long, how they end; and that nothing said is ever logged."""

from __future__ import annotations

import logging
import ssl
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights import RegistrationError, open_stage
from footlights_actors import Flood, Say, ScriptedModel, Stall, standard_cast
from footlights_transports import http_server
from footlights_transports.desk import FrontDesk
from footlights_transports.gate import Gate, WireLimits
from footlights_transports.http_server import serve_http

from .http_peer import TALK, Answer, CuedModel, House, open_house, refused, taken

if TYPE_CHECKING:
    from footlights_transports.listening import Listening

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How one begins who speaks HTTP/2: the preface, and settings without any."""
PING_2 = b"\0\0\x08\6\0\0\0\0\0" + b"are-you?"
STALLING = ScriptedModel(lambda _: (Say("Well,"), Stall()))


async def connect(house: House) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", house.listening.port)


async def read_all(stream: trio.SocketStream) -> bytes:
    """Everything until the end, also if that is a broken one."""
    got = b""
    try:
        while data := await stream.receive_some():
            got += data
    except trio.BrokenResourceError:
        pass
    return got


async def ask(stream: trio.SocketStream, request: bytes = GET) -> bytes:
    """The whole answer."""
    await stream.send_all(request)
    got = b""
    while not is_whole(got):
        data = await stream.receive_some()
        assert data, "the connection ended"
        got += data
    return got


def is_whole(answer: bytes) -> bool:
    head, end_of_head, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
    return bool(end_of_head) and len(body) >= length


# -- time


async def test_headers_that_never_end_end_the_connection(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(handshake_timeout=10.0)) as house, await connect(house) as stream:
        for line in (b"GET /healthz HTTP/1.1\r\n", b"Host: localhost\r\n", b"X-More: 1\r\n"):
            await stream.send_all(line)
            await wait_all_tasks_blocked()
            mock_clock.jump(3.0)
        mock_clock.jump(1.1)
        assert await read_all(stream) == b""


@pytest.mark.parametrize("before", [b"", GET])
async def test_who_speaks_http_2_and_asks_for_nothing_is_not_kept(mock_clock: MockClock, before: bytes) -> None:
    ended = trio.Event()

    async def read() -> None:
        assert await read_all(stream), "it was not even answered"
        ended.set()

    async with open_house(wire_limits=WireLimits(handshake_timeout=10.0)) as house, await connect(house) as stream:
        if before:
            assert b" 200 " in await ask(stream, before)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await stream.send_all(HTTP_2)
            for _ in range(4):
                await wait_all_tasks_blocked(0.01)
                assert not ended.is_set()
                await stream.send_all(PING_2)  # it is answered, and makes it no longer
                await wait_all_tasks_blocked(0.01)
                mock_clock.jump(2.6)
            await wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        assert ended.is_set()


async def test_a_body_that_never_ends_is_refused(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(handshake_timeout=10.0)) as house, await connect(house) as stream:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        await wait_all_tasks_blocked()
        mock_clock.jump(10.1)
        answer = await read_all(stream)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"invalid_command"' in answer


async def test_a_connection_is_kept_for_a_while_and_no_longer(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(handshake_timeout=10.0)) as house, await connect(house) as stream:
        for _ in range(3):
            assert b" 200 " in await ask(stream)
            await wait_all_tasks_blocked()
            mock_clock.jump(9.0)
        mock_clock.jump(1.1)
        assert await read_all(stream) == b""


async def test_the_connection_of_a_stream_that_ended_is_good_for_more() -> None:
    async with open_house() as house, await connect(house) as stream:
        guest = await house.start()
        answer = Answer(stream)
        await answer.ask("GET", f"{guest.path}/events", {"host": "localhost"})
        await guest.close()
        assert b"ended" in await answer.read_all()
        assert b" 200 " in await ask(stream)


async def test_who_says_that_nothing_more_will_come_is_still_answered() -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(GET)
        await stream.send_eof()
        assert (await read_all(stream)).endswith(b'{"status":"ok"}')


async def test_a_connection_that_is_closed_is_forgotten_at_once() -> None:
    async with open_house(wire_limits=WireLimits(max_connections=1, max_handshakes=1)) as house:
        for request in (b"", b"GET /healthz HTTP/1.1\r\n", GET, GET):
            async with await connect(house) as stream:
                if request:
                    await stream.send_all(request)
                await wait_all_tasks_blocked()
            await wait_all_tasks_blocked()
        assert taken(await house.client.get("/healthz")) == {"status": "ok"}


async def test_a_body_that_goes_away_is_nobodys_business() -> None:
    async with open_house() as house:
        before = trio.lowlevel.current_statistics().tasks_living
        async with await connect(house) as stream:
            await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert house.stage.statistics().sessions == 0


# -- number


async def test_who_has_been_silent_longest_makes_room_for_who_comes() -> None:
    async with (
        open_house(wire_limits=WireLimits(max_handshakes=2)) as house,
        await connect(house) as oldest,
        await connect(house) as older,
    ):
        await oldest.send_all(GET[:10])
        await wait_all_tasks_blocked()
        async with await connect(house) as newest:
            assert await read_all(oldest) == b""
            assert b" 200 " in await ask(newest)
        assert b" 200 " in await ask(older)


async def test_any_number_who_say_nothing_lock_nobody_out(mock_clock: MockClock) -> None:
    limits = WireLimits(max_connections=1, max_handshakes=4)
    async with AsyncExitStack() as crowd, open_house(wire_limits=limits) as house:
        before = trio.lowlevel.current_statistics().tasks_living
        served = await crowd.enter_async_context(await connect(house))
        assert b" 200 " in await ask(served)
        for _ in range(40):
            await crowd.enter_async_context(await connect(house))
        await wait_all_tasks_blocked()
        a_connection = trio.lowlevel.current_statistics().tasks_living - before
        for _ in range(40):
            await crowd.enter_async_context(await connect(house))
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living - before == a_connection
        async with await connect(house) as newest:
            assert b" 503 " in await ask(newest)  # it is heard, and there is a place for one
        assert b" 200 " in await ask(served)


async def test_who_is_sent_away_before_tls_was_agreed_on_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(ours)
    async with open_house(tls=ours, wire_limits=WireLimits(max_handshakes=1)) as house:
        before = trio.lowlevel.current_statistics().tasks_living
        async with await connect(house) as silent, await connect(house):
            assert await read_all(silent) == b""
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
    assert not [record for record in caplog.records if record.name == "footlights.incidents"]


async def test_only_so_many_connections_are_served() -> None:
    async with open_house(wire_limits=WireLimits(max_connections=1, max_handshakes=2)) as house:
        async with await connect(house) as first:
            assert b" 200 " in await ask(first)
            async with await connect(house) as second:
                answer = await ask(second)
                assert b" 503 " in answer
                assert b'"code":"busy"' in answer
                assert await read_all(second) == b""
            assert b" 200 " in await ask(first)
        await wait_all_tasks_blocked()
        assert taken(await house.client.get("/healthz")) == {"status": "ok"}


async def test_one_connection_asks_only_so_often(mock_clock: MockClock) -> None:
    limits = WireLimits(commands_per_second=1.0, command_burst=3)
    async with open_house(wire_limits=limits) as house:
        for _ in range(3):
            taken(await house.client.get("/healthz"))
        answer = await house.client.get("/healthz")
        assert refused(answer) == (429, "rate_limited")
        assert answer.headers["retry-after"] == "1"
        mock_clock.jump(1.0)
        taken(await house.client.get("/healthz"))


async def test_one_user_asks_only_so_often_over_all_its_connections(mock_clock: MockClock) -> None:
    limits = WireLimits(user_commands_per_second=1.0, user_command_burst=3)
    async with open_house(wire_limits=limits) as house:
        for _ in range(3):
            async with await connect(house) as stream:
                assert b" 200 " in await ask(stream, GET.replace(b"/healthz", b"/v1/world"))
        assert refused(await house.client.get("/v1/world")) == (429, "rate_limited")
        taken(await house.client.get("/healthz"))  # which nobody in particular asks
        mock_clock.jump(1.0)
        taken(await house.client.get("/v1/world"))


# -- what is no HTTP, or not ours


async def test_what_is_no_http_gets_an_empty_refusal() -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(b"Good evening\r\n\r\n")
        assert (await read_all(stream)).startswith(b"HTTP/1.1 400 ")


async def test_headers_have_a_largest_size() -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000)
        assert (await read_all(stream)).startswith(b"HTTP/1.1 431 ")


async def test_http_2_is_not_spoken() -> None:
    async with open_house() as house, httpx2.AsyncClient(http1=False, http2=True, base_url=house.address) as client:
        assert refused(await client.get("/healthz")) == (505, "unsupported_version")


async def test_a_connection_that_fails_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: Edda\r\n\r\n"
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + upgrade)
        await read_all(stream)
        assert taken(await house.client.get("/healthz")) == {"status": "ok"}
    (said,) = [record.getMessage() for record in caplog.records if record.name == "footlights.incidents"]
    assert said.startswith("http_connection failed: ")
    assert "Edda" not in said


async def test_there_are_no_websockets_here() -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"
    async with open_house() as house, await connect(house) as stream:
        assert b" 403 " in await ask(stream, b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n")


async def test_who_sends_without_end_is_refused_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_transports.http_guard._DISCARDED_BYTES", 1_000_000)
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    async with open_house() as house, await connect(house) as stream, trio.open_nursery() as nursery:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")

        async def send() -> None:
            try:
                while True:
                    await stream.send_all(chunk)
            except trio.BrokenResourceError:
                pass

        nursery.start_soon(send)
        assert (await read_all(stream))[:13] in (b"HTTP/1.1 413 ", b"")  # the end may overtake the answer
        house.stop()
        await house.stopped.wait()


# -- the end


async def test_a_server_that_takes_nobody_new_serves_those_it_has() -> None:
    async with open_house() as house, await connect(house) as stream:
        assert b" 200 " in await ask(stream)
        house.listening.stop_accepting()
        await wait_all_tasks_blocked()
        with pytest.raises(OSError, match="all attempts to connect"):
            await connect(house)
        assert b" 200 " in await ask(stream)


async def test_a_server_that_stops_lets_an_answer_be_finished() -> None:
    model = CuedModel()
    async with open_house(model) as house, trio.open_nursery() as nursery:
        guest = await house.start()
        turn_id = await guest.begin_turn("One ~two")
        nursery.start_soon(guest.finalize, turn_id)
        await wait_all_tasks_blocked()
        house.stop()
        await wait_all_tasks_blocked()
        assert not house.stopped.is_set()
        model.cue("two")
        await house.stopped.wait()


async def test_a_server_that_stops_does_not_wait_for_ever(mock_clock: MockClock) -> None:
    async with open_house(STALLING, goodbye=5.0) as house, await connect(house) as stream:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        path = f"{guest.turn_path(turn_id)}/finalize"
        await stream.send_all(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await wait_all_tasks_blocked()
        house.stop()
        await wait_all_tasks_blocked()
        assert not house.stopped.is_set()
        mock_clock.jump(5.1)
        await house.stopped.wait()
        await read_all(stream)
        assert house.stage.statistics().turns_settled == {}


async def test_a_client_that_reads_nothing_cannot_hold_a_server_that_stops(mock_clock: MockClock) -> None:
    flooding = ScriptedModel(lambda _: (Flood("x" * 100, 20_000),))
    async with open_house(flooding, goodbye=5.0) as house, await connect(house) as stream:
        guest = await house.start()
        await stream.send_all(f"GET {guest.path}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await wait_all_tasks_blocked()
        for _ in range(4):  # more than the sockets can hold
            await guest.finalize(await guest.begin_turn("Flood, please."))
        house.stop()
        await wait_all_tasks_blocked()
        assert not house.stopped.is_set()
        mock_clock.jump(5.1)
        await house.stopped.wait()


async def test_nobody_gets_in_once_the_server_stops() -> None:
    model = CuedModel()
    async with open_house(model) as house, await connect(house) as idle, trio.open_nursery() as nursery:
        assert b" 200 " in await ask(idle)
        guest = await house.start()
        turn_id = await guest.begin_turn("One ~two")
        nursery.start_soon(guest.finalize, turn_id)
        await wait_all_tasks_blocked()
        house.stop()
        assert await read_all(idle) == b""
        model.cue("two")
        await house.stopped.wait()


async def test_who_was_accepted_in_the_moment_of_the_end_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[http_server._Server] = []

    class Kept(http_server._Server):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(http_server, "_Server", Kept)
    async with open_house() as house:
        house.stop()
        await house.stopped.wait()
        ours, theirs = trio.socket.socketpair()
        with theirs:
            await made[0].serve(trio.SocketStream(ours))
            assert await theirs.recv(1) == b""


async def test_a_server_refuses_to_listen_where_the_gate_forbids_it() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage:
        with pytest.raises(RegistrationError, match="configure tokens"):
            await serve_http(FrontDesk(stage, Gate()), host="0.0.0.0", port=0)


async def test_a_server_measures_the_stage_also_without_metrics_of_its_own() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_http, FrontDesk(stage, Gate()), host="localhost", port=0)
        listening: Listening = await nursery.start(serve)
        stage.start()
        async with httpx2.AsyncClient(base_url=f"http://localhost:{listening.port}", verify=False) as client:
            assert "footlights_sessions 1.0" in (await client.get("/metrics")).text
        nursery.cancel_scope.cancel()


async def test_a_port_is_taken_by_one_server_and_then_by_the_next() -> None:
    async with open_house() as house:
        port = house.listening.port
        async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage, trio.open_nursery() as nursery:
            serve = partial(serve_http, FrontDesk(stage, Gate()), host="127.0.0.1", port=port)
            with pytest.raises(OSError, match="in use"):
                await serve()
            house.stop()
            await house.stopped.wait()
            listening: Listening = await nursery.start(serve)
            assert listening.port == port
            assert taken(await house.client.get("/healthz")) == {"status": "ok"}
            nursery.cancel_scope.cancel()


# -- TLS


async def test_tls() -> None:
    authority = trustme.CA()
    ours, theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.configure_trust(theirs)
    authority.issue_cert("localhost").configure_cert(ours)
    async with open_house(tls=ours, trusting=theirs) as house:
        guest = await house.start()
        await guest.finalize(await guest.begin_turn("A room?"))
        async with await connect(house) as plain:
            await plain.send_all(GET)
            assert b"HTTP" not in await read_all(plain)


async def test_a_tls_handshake_that_never_ends_ends_the_connection(mock_clock: MockClock) -> None:
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(ours)
    async with open_house(tls=ours) as house, await connect(house) as stream:
        await wait_all_tasks_blocked()
        mock_clock.jump(10.1)
        assert await read_all(stream) == b""


# -- logs


async def test_nothing_that_anybody_said_is_logged_at_any_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, secrets = "a-token-that-is-secret", ("a-token-that-is-secret", "Edda", "Helgi")
    talking = ScriptedModel(lambda _: (Say("Good evening, Helgi."),))
    async with open_house(talking, gate=Gate({"ann": token}), headers={"authorization": f"Bearer {token}"}) as house:
        guest = await house.start()
        async with guest.follow() as stream:
            turn_id = await guest.begin_turn("My name is Edda.")
            assert b"Helgi" in b"".join([repr(each).encode() async for each in stream.until_commit(turn_id)])
        await house.client.post("/v1/sessions", content=b'{"Edda": ', headers={"content-type": "application/json"})
        await house.client.get("/Edda?token=a-token-that-is-secret")
        async with await connect(house) as stream_of_garbage:
            await stream_of_garbage.send_all(b"Edda says\r\n\r\n")
            await read_all(stream_of_garbage)
    by_the_client = ("httpx2", "httpcore2")
    ours = [each.getMessage() for each in caplog.records if not each.name.startswith(by_the_client)]
    assert [line for line in ours if any(secret in line for secret in secrets)] == []
