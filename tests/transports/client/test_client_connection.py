"""Connections of a client: addresses, the handshake and its refusals, pings, and dead servers."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from footlights import FootlightsError, InvalidCommand, TooLarge, UnknownSession
from footlights_transports import ConnectionLost, Retry, connect
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.client import connection as client_connection
from footlights_transports.client.address import Address
from footlights_transports.client.connection import Connection, Outgoing, dial
from footlights_transports.errors import Unauthorized, UnsupportedVersion
from footlights_transports.views.native.protocol import SUBPROTOCOL
from tests.kit.peers.client_peer import WsPeer
from tests.kit.peers.ws_liar import open_liar, open_peer
from tests.kit.peers.ws_peer import open_house

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.testing import MockClock

TOKEN = "a token of twenty char"


async def get_in(url: str, **settings: Any) -> None:
    async with connect(url, **settings):
        pass


def answering(text: bytes) -> Callable[[trio.SocketStream], Awaitable[None]]:
    """Somebody who says this to whoever asks, and hangs up."""

    async def say(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        with suppress(trio.BrokenResourceError):  # nobody has to listen to the end
            await stream.send_all(text)

    return say


def text(data: str) -> Outgoing:
    return Outgoing(TextMessage(data=data))


async def has_ended(connection: Connection) -> None:
    with pytest.raises(ConnectionLost, match="gone"):
        await connection.receive()
    assert not connection.is_open


# -- getting in


async def test_no_server_at_the_address() -> None:
    async with open_peer(answering(b"")) as address:
        pass
    with pytest.raises(ConnectionLost, match="No server answers"):
        await get_in(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:7600",
        "http://127.0.0.1:7600",
        "ws://",
        "ws://:7600",
        "ws://in n:7600",
        "ws://inn:port",
        "ws://inn:65536",
        "ws://inn:-1",
        "ws://inn:0",
        "ws://[::1",
        "ws://a..b",
        f"ws://{'a' * 64}.example",
        "ws://edda:secret@inn",
        "ws://127.0.0.1:7600/?batch=1",
        "ws://127.0.0.1/v1#x",
        "ws://inn/a b",
        "ws://inn/\u00e9",
    ],
)
async def test_a_bad_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidCommand, match=r"reads ws://HOST:PORT .*\.$") as refused:
        await get_in(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("times", [{"silence": 0}, {"silence": float("nan")}, {"dial_timeout": -1}])
async def test_bad_timeouts_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(InvalidCommand, match="seconds"):
        await get_in("ws://127.0.0.1:7600", **times)


@pytest.mark.parametrize("token", ["", "a\nb", "é" * 20])
async def test_a_bad_token_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        await get_in("ws://127.0.0.1:7600", token=token)
    assert not token or token not in str(refused.value)


def test_an_address_shows_no_token() -> None:
    assert TOKEN not in repr(Address("ws://127.0.0.1:7600", token=TOKEN))


@pytest.mark.parametrize(
    ("url", "host", "port", "asks"),
    [
        ("ws://127.0.0.1:7600", "127.0.0.1", 7600, ("127.0.0.1:7600", "/v1")),
        ("ws://inn.example/", "inn.example", 80, ("inn.example", "/v1")),
        ("wss://inn.example/far/v1", "inn.example", 443, ("inn.example", "/far/v1")),
        ("ws://[::1]:9", "::1", 9, ("[::1]:9", "/v1")),
    ],
)
def test_an_address_has_host_port_and_path(url: str, host: str, port: int, asks: tuple[str, str]) -> None:
    address = Address(url)
    request = address.request(in_batches=False)
    assert (address.host, address.port, (request.host, request.target)) == (host, port, asks)
    assert address.request(in_batches=True).target == f"{asks[1]}?batch=1"


async def test_a_token_gives_access_to_its_own_sessions_only() -> None:
    policy = AccessPolicy({"edda": TOKEN, "odo": "another token of odo"})
    async with open_house(policy=policy) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        for wrong in (None, "no token of anybody"):
            with pytest.raises(Unauthorized):
                await get_in(url, token=wrong)
        async with connect(url, token=TOKEN) as edda, connect(url, token="another token of odo") as odo:
            session = await edda.start()
            assert session.session_id.startswith("edda:")
            with pytest.raises(UnknownSession):
                await odo.session(session.session_id).cancel()


async def test_a_server_that_is_full_says_so() -> None:
    async with open_house(policy=AccessPolicy(limits=WireLimits(max_connections=1))) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        async with connect(url):
            with pytest.raises(FootlightsError) as full:
                await get_in(url)
    assert full.value.code == "busy"


async def test_tls_is_spoken_if_the_address_says_so_and_only_to_whom_we_trust() -> None:
    authority = trustme.CA()
    theirs, ours, wary = (ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, *[ssl.PROTOCOL_TLS_CLIENT] * 2))
    authority.issue_cert("localhost").configure_cert(theirs)
    authority.configure_trust(ours)
    async with open_house(tls=theirs) as house:
        url = f"wss://localhost:{house.listening.port}"
        async with connect(url, tls=ours) as client:
            assert await (await client.start()).cancel() == ()
        with pytest.raises(ConnectionLost, match=r"not trusted: .*certificate.*SSL_CERT_FILE"):
            await get_in(url, tls=wary)
        with pytest.raises(ConnectionLost, match=r"If it speaks TLS, its address begins with wss://\.$"):
            await get_in(f"ws://localhost:{house.listening.port}")
    async with open_house() as house:
        with pytest.raises(ConnectionLost, match=r"does not speak TLS\. Without TLS the address begins with ws://"):
            await get_in(f"wss://localhost:{house.listening.port}", tls=ours)


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\n<p>No</p>",
        b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n[]",
        b'HTTP/1.1 400 No\r\ncontent-length: 13\r\n\r\n{"error": {}}',
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 900000\r\n\r\n" + b"x" * 200_000,
    ],
)
async def test_another_http_server_is_reported_as_such(text: bytes) -> None:
    async with open_peer(answering(text)) as address:
        with pytest.raises(UnsupportedVersion, match="no Footlights server"):
            await get_in(address)


@pytest.mark.parametrize("text", [b"", b"220 mail.example ESMTP\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"])
async def test_what_is_no_websocket_is_a_lost_connection(text: bytes) -> None:
    async with open_peer(answering(text)) as address:
        with pytest.raises(ConnectionLost):
            await get_in(address)


async def test_a_server_without_our_subprotocol_speaks_another_version() -> None:
    async with open_liar(lambda _: (), subprotocol=None) as address:
        with pytest.raises(UnsupportedVersion, match=SUBPROTOCOL):
            await get_in(address)


async def test_a_handshake_without_an_answer_times_out(autojump_clock: MockClock) -> None:
    async def say_nothing(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass

    async with open_peer(say_nothing) as address:
        with pytest.raises(ConnectionLost, match="in time"):
            await get_in(address)


# -- staying


async def test_pings_are_answered_and_binary_messages_ignored() -> None:
    answered: list[bytes] = []

    async def ping(stream: trio.SocketStream) -> None:
        peer = WsPeer(stream)
        await peer.shake_hands()
        await peer.send(BytesMessage(data=b"nothing"))
        await peer.send(Ping(payload=b"there?"))
        pong = await peer.receive()
        assert isinstance(pong, Pong)
        answered.append(bytes(pong.payload))
        for part in ('{"said": "Good', ' evening"}'):
            await peer.send(TextMessage(data=part, message_finished=part.endswith("}")))

    async with open_peer(ping) as address, trio.open_nursery() as nursery:
        connection = await dial(Address(address), nursery)
        assert await connection.receive() == {"said": "Good evening"}
        await has_ended(connection)
        with pytest.raises(ConnectionLost):
            await connection.send(text("too late"))
        await connection.aclose()
    assert answered == [b"there?"]


async def test_a_connection_whose_writer_has_ended_is_not_open() -> None:
    """A command would otherwise be tried on it for ever: the reader could not run to find out."""

    async def say_nothing(stream: trio.SocketStream) -> None:
        await WsPeer(stream).shake_hands()
        await trio.sleep_forever()

    async with open_peer(say_nothing) as address, trio.open_nursery() as nursery:
        connection = await dial(Address(address), nursery)
        await connection._send_close(CloseConnection(code=1000))
        assert not connection.is_open
        nursery.cancel_scope.cancel()


async def test_a_silent_server_gets_a_ping_and_is_then_dropped(autojump_clock: MockClock) -> None:
    async def say_nothing(stream: trio.SocketStream) -> None:
        peer = WsPeer(stream)
        await peer.shake_hands()
        pings.append(type(await peer.receive()))
        while await stream.receive_some():
            pass

    pings: list[type] = []
    async with open_peer(say_nothing) as address:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            await has_ended(await dial(Address(address, silence=20), nursery))
        assert trio.current_time() - began == pytest.approx(40, abs=1)
    assert pings == [Ping]


async def test_a_server_that_stops_reading_is_given_up_also_while_something_is_being_sent(
    autojump_clock: MockClock,
) -> None:
    async def read_nothing(stream: trio.SocketStream) -> None:
        await WsPeer(stream).shake_hands()
        await trio.sleep_forever()

    async with open_peer(read_nothing) as address:
        more_than_fits, behind = text("x" * 20_000_000), text("Anybody?")
        began = trio.current_time()
        with trio.fail_after(1_000), pytest.RaisesGroup(ConnectionLost):
            async with trio.open_nursery() as nursery:
                connection = await dial(Address(address, silence=20), nursery)
                await connection.send(more_than_fits)
                nursery.start_soon(connection.send, behind)
        assert trio.current_time() - began == pytest.approx(40, abs=1)
    assert [each.is_sent for each in (more_than_fits, behind)] == [False, False]


async def test_a_server_that_pings_but_does_not_read_is_dropped(autojump_clock: MockClock) -> None:
    async def only_ask(stream: trio.SocketStream) -> None:
        peer = WsPeer(stream)
        await peer.shake_hands()
        with suppress(trio.BrokenResourceError):
            while True:
                await trio.sleep(10)
                await peer.send(Ping())

    async with open_peer(only_ask) as address:
        began = trio.current_time()
        with trio.fail_after(1_000):
            async with trio.open_nursery() as nursery:
                connection = await dial(Address(address, silence=20), nursery)
                await connection.send(text("x" * 20_000_000))
        assert trio.current_time() - began == pytest.approx(30, abs=1)


async def test_a_close_frame_that_cannot_be_sent_is_not_waited_for(autojump_clock: MockClock) -> None:
    async def say_goodbye(stream: trio.SocketStream) -> None:
        peer = WsPeer(stream)
        await peer.shake_hands()
        await trio.sleep(10)
        await peer.send(CloseConnection(code=1009))
        await trio.sleep_forever()

    async with open_peer(say_goodbye) as address:
        began = trio.current_time()
        with trio.fail_after(1_000):
            async with trio.open_nursery() as nursery:
                connection = await dial(Address(address, silence=20), nursery)
                await connection.send(text("x" * 20_000_000))
        assert trio.current_time() - began == pytest.approx(11, abs=1)
    assert connection.close_code == 1009


async def test_a_message_that_is_too_large_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "MAX_MESSAGE_CHARS", 100)

    async with open_liar(lambda _: ["x" * 101]) as address, trio.open_nursery() as nursery:
        connection = await dial(Address(address), nursery)
        await connection.send(text("{}"))
        await has_ended(connection)


async def test_a_command_larger_than_the_server_takes_is_too_large_and_the_client_goes_on() -> None:
    async with open_house(policy=AccessPolicy(limits=WireLimits(max_frame_bytes=1_000))) as house:
        url = f"ws://127.0.0.1:{house.listening.port}"
        async with connect(url, retry=Retry(first=1e-6, longest=1e-6)) as client:
            session = await client.start()
            with pytest.raises(TooLarge):
                await session.begin_turn("x" * 2_000)
            assert await session.begin_turn("A room?") == "t1-000001"
