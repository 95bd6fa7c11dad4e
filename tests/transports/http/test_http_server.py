"""Connections of the HTTP server: how many, how long, how they end; and that nothing said is ever logged."""

from __future__ import annotations

import errno
import json
import logging
import socket
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
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.http import connection as http_connection
from footlights_transports.http import server as http_server
from tests.kit.peers.http_peer import TALK, Answer, CuedModel, House, open_house, refused, taken
from tests.kit.serving import serve_http

if TYPE_CHECKING:
    from footlights_transports.server.listening import Listening

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""Beginning of an HTTP/2 connection: the preface, and an empty settings frame."""
PING_2 = b"\0\0\x08\6\0\0\0\0\0" + b"are-you?"
H2C = GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n" + HTTP_2
WEBSOCKET = (
    b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
)
PING = b"\x89\x80\0\0\0\0"
HALF = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
"""A request that still needs an empty line, and a body of two bytes."""
TOKEN = "a-token-of-sixteen-or-more"
AUTHORIZED = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
STALLING = ScriptedModel(lambda _: (Say("Well,"), Stall()))


async def connect(house: House) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", house.listening.port)


async def test_whoever_hangs_up_before_a_line_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    served = 0
    serve = http_server.HttpServer.serve

    async def count(server: http_server.HttpServer, stream: trio.SocketStream) -> None:
        nonlocal served
        served += 1
        await serve(server, stream)

    monkeypatch.setattr(http_server.HttpServer, "serve", count)
    async with open_house() as house:
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", house.listening.port)) as gone:
                gone.sendall(b"G")
        async with await connect(house) as stream:
            await stream.send_all(GET)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    assert served == 1


async def test_a_server_without_file_descriptors_goes_on_when_it_has_some(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept = socket.socket.accept
    failures = iter([OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError()])

    def fail_twice(listener: socket.socket) -> tuple[socket.socket, object]:
        for failure in failures:
            raise failure
        return accept(listener)

    async with open_house() as house:
        monkeypatch.setattr(socket.socket, "accept", fail_twice)
        async with await connect(house) as stream:
            await stream.send_all(GET)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    assert "Too many open files" in caplog.text


async def read_all(stream: trio.SocketStream) -> bytes:
    """Everything until the end, also if that is a broken one."""
    got = b""
    try:
        while data := await stream.receive_some():
            got += data
    except trio.BrokenResourceError:
        pass
    return got


async def read_to_the_end(stream: trio.abc.ReceiveStream) -> bytes:
    """Everything until the end, which must be a proper one: a client that is reset may lose the answer."""
    got = b""
    while data := await stream.receive_some():
        got += data
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


async def test_a_body_that_never_ends_is_refused(mock_clock: MockClock) -> None:
    async with open_house(wire_limits=WireLimits(handshake_timeout=10.0)) as house, await connect(house) as stream:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        await wait_all_tasks_blocked()
        mock_clock.jump(10.1)
        answer = await read_to_the_end(stream)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()
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


async def test_a_client_that_half_closes_is_still_answered() -> None:
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


async def test_a_client_that_disconnects_during_its_body_is_no_failure() -> None:
    async with open_house() as house:
        before = trio.lowlevel.current_statistics().tasks_living
        async with await connect(house) as stream:
            await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert house.stage.statistics().sessions == 0


# -- number


async def test_the_oldest_pending_connection_is_dropped_for_a_new_one() -> None:
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


async def test_any_number_of_silent_connections_locks_out_no_client(mock_clock: MockClock) -> None:
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


HALVES = [HALF, HALF + b"\r\n{", HALF + b"Authorization: Bearer nobody\r\n\r\n{", b"", GET]
"""Bytes from clients without a valid token. None of them makes the server wait."""


@pytest.mark.parametrize("half", HALVES)
async def test_a_client_with_a_token_is_served_however_many_others_send_half_a_request(half: bytes) -> None:
    limits = WireLimits(max_connections=1, max_handshakes=4)
    async with open_house(policy=AccessPolicy({"ann": TOKEN}, limits=limits)) as house, AsyncExitStack() as crowd:
        for _ in range(20):
            stranger = await crowd.enter_async_context(await connect(house))
            await stranger.send_all(half)
        await wait_all_tasks_blocked()
        async with await connect(house) as stream:
            assert b" 201 " in await ask(stream, HALF + AUTHORIZED + b"\r\n{}")


async def test_a_client_with_a_token_may_be_slow_however_many_others_come() -> None:
    limits = WireLimits(max_connections=1, max_handshakes=4)
    async with open_house(policy=AccessPolicy({"ann": TOKEN}, limits=limits)) as house, AsyncExitStack() as crowd:
        slow = await crowd.enter_async_context(await connect(house))
        await slow.send_all(HALF + AUTHORIZED + b"\r\n{")
        await wait_all_tasks_blocked()
        for _ in range(20):
            stranger = await crowd.enter_async_context(await connect(house))
            await stranger.send_all(HALF + b"\r\n{")
        await wait_all_tasks_blocked()
        assert b" 201 " in await ask(slow, b"}")


async def test_a_client_without_a_token_is_refused_before_its_body_has_come() -> None:
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house, await connect(house) as stream:
        await stream.send_all(HALF + b"\r\n{")
        answer = await read_to_the_end(stream)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in answer.lower()
        assert b'"code":"unauthorized"' in answer


async def test_without_tokens_half_a_request_takes_no_place_either() -> None:
    limits = WireLimits(max_connections=1, max_handshakes=4)
    async with open_house(wire_limits=limits) as house, AsyncExitStack() as crowd:
        for _ in range(20):
            stranger = await crowd.enter_async_context(await connect(house))
            await stranger.send_all(HALF + b"\r\n{")
        await wait_all_tasks_blocked()
        async with await connect(house) as stream:
            assert b" 201 " in await ask(stream, HALF + b"\r\n{}")


async def test_a_connection_that_is_dropped_during_its_tls_handshake_leaves_nothing_behind(
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


@pytest.mark.parametrize("before", [b"", GET])
@pytest.mark.parametrize("asked", [HTTP_2 + PING_2, H2C])
async def test_http_2_is_refused_where_it_begins_and_no_frame_of_it_is_read(before: bytes, asked: bytes) -> None:
    async with open_house() as house, await connect(house) as stream:
        if before:
            assert b" 200 " in await ask(stream, before)
        await stream.send_all(asked)
        head, _, body = (await read_to_the_end(stream)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 505 ")
        assert b"connection: close" in head.lower()
        assert json.loads(body)["error"]["code"] == "unsupported_version", "nothing follows the answer"


@pytest.mark.parametrize(("offered", "agreed"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], None)])
async def test_http_2_is_not_agreed_on_with_tls(offered: list[str], agreed: str | None) -> None:
    authority = trustme.CA()
    ours, theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    ours.set_alpn_protocols(["h2"])  # a host's own context
    authority.configure_trust(theirs)
    authority.issue_cert("localhost").configure_cert(ours)
    theirs.set_alpn_protocols(offered)
    async with open_house(tls=ours) as house:
        stream = trio.SSLStream(await connect(house), theirs, server_hostname="localhost", https_compatible=True)
        async with stream:
            await stream.do_handshake()
            assert stream.selected_alpn_protocol() == agreed
            await stream.send_all(HTTP_2 + PING_2)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 505 ")


async def test_a_connection_that_fails_takes_no_other_with_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise RuntimeError("Edda")

    async with open_house() as house:
        with monkeypatch.context() as patched:
            patched.setattr(http_connection.LingeringServer, "_read_data", fail)
            async with await connect(house) as stream:
                assert await read_all(stream) == b""
        assert taken(await house.client.get("/healthz")) == {"status": "ok"}
    (said,) = [record.getMessage() for record in caplog.records if record.name == "footlights.incidents"]
    assert said.startswith("http_connection failed: ")
    assert "Edda" not in said


WEBSOCKET_HEADERS = (
    b"Connection: Upgrade, \xff",
    b"Sec-WebSocket-Extensions: \xff",
    b"Sec-WebSocket-Protocol: \xff",
    b"Sec-WebSocket-Key: \xff",
    b"Sec-WebSocket-Version: \xff",
    b"Upgrade: websocket, \xff",
)


@pytest.mark.parametrize("header", [b"X-Name: value", *WEBSOCKET_HEADERS])
async def test_a_websocket_handshake_is_refused_whatever_its_headers_hold(header: bytes) -> None:
    async with open_house() as house, await connect(house) as stream:
        head, _, body = (await ask(stream, WEBSOCKET[:-2] + header + b"\r\n\r\n" + PING)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in head.lower()
        assert json.loads(body)["error"]["code"] == "invalid_command"
        assert await read_to_the_end(stream) == b"", "frames that follow are not read"
        assert dict(house.access.incidents.counts) == {"http_400": 1}


AMBIGUOUS = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
]


@pytest.mark.parametrize(
    "head", [*(b"POST /v1/sessions HTTP/1.1\r\n" + each for each in AMBIGUOUS),
             b"POST /v1/sessions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"]
)  # fmt: skip
async def test_a_request_whose_end_is_ambiguous_is_refused_and_ends_the_connection(head: bytes) -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(head + b"Host: localhost\r\n\r\n0\r\n\r\n" + GET)
        answer = await read_to_the_end(stream)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1, "what follows may be meant as a body, and is not answered"
        assert b"connection: close" in answer.lower()
        assert b'"code":"invalid_command"' in answer
        assert house.stage.statistics().sessions == 0


async def test_garbage_in_a_body_that_is_not_read_does_not_break_off_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, send_all = trio.Event(), http_connection.HttpStream.send_all

    async def send_and_wait(self: http_connection.HttpStream, data: bytes) -> None:
        await send_all(self, data)
        await may_go_on.wait()

    monkeypatch.setattr(http_connection.HttpStream, "send_all", send_and_wait)
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house, await connect(house) as stream:
        await stream.send_all(HALF.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"\r\n")
        head = await stream.receive_some()
        await stream.send_all(b"this is no chunk\r\n")
        await wait_all_tasks_blocked()
        may_go_on.set()
        answer = head + await read_to_the_end(stream)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert is_whole(answer)


CHUNK = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
LARGE = 128
"""Chunks: 8 MB, more than sockets hold."""


@pytest.mark.parametrize(
    ("framing", "piece", "end"),
    [
        (b"Content-Length: %d" % (LARGE * 65_536), CHUNK[7:-2], b""),
        (b"Transfer-Encoding: chunked", CHUNK, b"0\r\n\r\n"),
    ],
)
async def test_a_client_that_sends_too_large_a_body_can_read_that_it_was_refused(
    framing: bytes, piece: bytes, end: bytes
) -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n\r\n")
        for _ in range(LARGE):
            await stream.send_all(piece)
        await stream.send_all(end)
        answer = await read_to_the_end(stream)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert answer.endswith(b'"}}')


@pytest.mark.parametrize("token", [b"", AUTHORIZED])
async def test_a_body_that_will_be_refused_is_not_asked_for(token: bytes) -> None:
    head = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + token
    size = b"Content-Length: %d\r\n\r\n" % (1_000_000 if token else 2)
    async with open_house(policy=AccessPolicy({"ann": TOKEN})) as house, await connect(house) as stream:
        await stream.send_all(head + size)
        assert (await read_to_the_end(stream)).startswith(b"HTTP/1.1 413 " if token else b"HTTP/1.1 401 ")


async def test_a_body_that_will_be_read_is_asked_for() -> None:
    async with open_house() as house, await connect(house) as stream:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n")
        await stream.send_all(b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n")
        assert await stream.receive_some() == b"HTTP/1.1 100 \r\n\r\n"
        assert b" 201 " in await ask(stream, b"{}")


async def send_until_broken(stream: trio.SocketStream) -> None:
    try:
        while True:
            await stream.send_all(CHUNK)
    except trio.BrokenResourceError:
        pass


async def test_a_client_that_sends_without_end_is_refused_and_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "_LINGER_BYTES", 1_000_000)
    async with open_house() as house, await connect(house) as stream, trio.open_nursery() as nursery:
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")

        nursery.start_soon(send_until_broken, stream)
        assert (await read_all(stream))[:13] in (b"HTTP/1.1 413 ", b"")  # the end may overtake the answer
        house.stop()
        await house.stopped.wait()


async def test_a_client_that_was_refused_and_does_not_close_is_closed(mock_clock: MockClock) -> None:
    async with open_house() as house, await connect(house) as stream:
        before = trio.lowlevel.current_statistics().tasks_living
        await stream.send_all(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
        assert (await read_to_the_end(stream)).startswith(b"HTTP/1.1 413 ")
        await wait_all_tasks_blocked()
        mock_clock.jump(2.1)
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living < before
        await send_until_broken(stream)


@pytest.mark.parametrize(
    "request_",
    [
        GET,
        GET.replace(b"/healthz", b"/nothing"),
        GET.replace(b"GET", b"DELETE"),
        GET.replace(b"localhost", b"example.org"),
        b"Good evening\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000,
        HTTP_2,
        WEBSOCKET,
    ],
)
async def test_no_answer_is_taken_for_another_type_than_it_says(request_: bytes) -> None:
    async with open_house() as house, await connect(house) as stream:
        assert b"\r\nx-content-type-options: nosniff\r\n" in await ask(stream, request_)


# -- the end


async def test_a_server_that_accepts_no_more_serves_the_clients_it_has() -> None:
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


async def test_no_connection_is_accepted_once_the_server_stops() -> None:
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


async def test_a_connection_that_is_accepted_during_shutdown_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[http_server.HttpServer] = []

    class Kept(http_server.HttpServer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(http_server, "HttpServer", Kept)
    async with open_house() as house:
        house.stop()
        await house.stopped.wait()
        ours, theirs = trio.socket.socketpair()
        with theirs:
            await made[0].serve(trio.SocketStream(ours))
            assert await theirs.recv(1) == b""


async def test_a_server_refuses_to_listen_where_the_policy_forbids_it() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage:
        with pytest.raises(RegistrationError, match="configure tokens"):
            await serve_http(SessionAccess(stage), host="0.0.0.0", port=0)


async def test_a_server_measures_the_stage_also_without_metrics_of_its_own() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_http, SessionAccess(stage), host="localhost", port=0)
        listening: Listening = await nursery.start(serve)
        stage.start()
        async with httpx2.AsyncClient(base_url=f"http://localhost:{listening.port}", verify=False) as client:
            assert "footlights_sessions 1.0" in (await client.get("/metrics")).text
        nursery.cancel_scope.cancel()


async def test_a_port_is_taken_by_one_server_and_then_by_the_next() -> None:
    async with open_house() as house:
        port = house.listening.port
        async with open_stage(standard_cast(ScriptedModel(lambda _: TALK))) as stage, trio.open_nursery() as nursery:
            serve = partial(serve_http, SessionAccess(stage), host="127.0.0.1", port=port)
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


async def test_nothing_that_a_client_said_is_logged_at_any_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, secrets = "a-token-that-is-secret", ("a-token-that-is-secret", "Edda", "Helgi")
    talking = ScriptedModel(lambda _: (Say("Good evening, Helgi."),))
    async with open_house(
        talking, policy=AccessPolicy({"ann": token}), headers={"authorization": f"Bearer {token}"}
    ) as house:
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
