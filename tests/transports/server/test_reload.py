"""SIGHUP: what changes in a server that runs, what waits for a restart, and what a mistake changes: nothing."""

from __future__ import annotations

import logging
import signal
import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel
import trustme
from attrs import frozen
from trio_websocket import ConnectionClosed, wrap_client_stream

from footlights_actors.sealed.keys import new_key
from footlights_transports import load_config
from footlights_transports.server.serve import Opened, serve
from tests.kit.served import open_peer, open_server, request, write_game

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

ANN, BOB, EVE = "ann-has-a-secret-token", "bob-has-a-secret-token", "eve-has-a-secret-token"


def write_tokens(folder: Path, **tokens: str) -> None:
    file = folder / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{user} {token}\n" for user, token in tokens.items()))


@frozen
class Running:
    """A server in this process that reads its settings again when it is told to."""

    opened: Opened
    hang_up: trio.MemorySendChannel[None]
    said: trio.MemoryReceiveChannel[str]

    async def reload(self) -> str:
        """What it says of that."""
        await self.hang_up.send(None)
        return await self.said.receive()

    async def status(self, token: str, path: str = "/v1/world") -> int:
        return (await request(self.opened.http_port, "GET", path, token=token))[0]


class Listener(logging.Handler):
    """Hears what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self._send, self.said = trio.open_memory_channel[str](10)

    def emit(self, record: logging.LogRecord) -> None:
        self._send.send_nowait(record.getMessage())


@pytest.fixture
def listener() -> Generator[Listener]:
    listener, log = Listener(), logging.getLogger("footlights.reload")
    log.addHandler(listener)
    yield listener
    log.removeHandler(listener)


@asynccontextmanager
async def open_running(file: Path, listener: Listener) -> AsyncGenerator[Running]:
    config = load_config(file)
    reread = partial(load_config, file, cast=config.cast, worlds=config.worlds)
    hang_up, hangups = trio.open_memory_channel[None](0)
    opened: list[Opened] = []
    ready, stop = trio.Event(), trio.Event()

    def announce(told: Opened) -> None:
        opened.append(told)
        ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, config, announce, stop, reread=reread, hangups=hangups))
        await ready.wait()
        yield Running(opened[0], hang_up, listener.said)
        stop.set()


@pytest.fixture
def game(tmp_path: Path) -> Path:
    write_tokens(tmp_path, ann=ANN, bob=BOB)
    return write_game(tmp_path, 'tokens_file = "tokens"\n')


async def test_new_tokens_get_in_and_revoked_ones_are_sent_away(game: Path, listener: Listener) -> None:
    async with open_running(game, listener) as running:
        ws_port, http_port = running.opened.ws_port, running.opened.http_port
        async with open_peer(ws_port, token=ANN) as ann, open_peer(ws_port, token=BOB) as bob:
            await ann.start()
            _, begun = await request(http_port, "POST", "/v1/sessions", {}, token=ANN)
            async with await trio.open_tcp_stream("127.0.0.1", http_port) as events:
                path = f"/v1/sessions/{begun['session_id']}/events"
                head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANN}\r\n\r\n"
                await events.send_all(head.encode())
                assert b" 200 " in await events.receive_some()
                write_tokens(game.parent, bob=BOB, eve=EVE)
                said = await running.reload()
                assert "2 tokens, 1 new and 1 revoked" in said
                with pytest.raises(ConnectionClosed) as closed:
                    await ann.receive()
                assert closed.value.reason is not None
                assert (closed.value.reason.code, closed.value.reason.reason) == (1008, "the token was revoked")
                while await events.receive_some():
                    pass
            await bob.start()
        assert [await running.status(each) for each in (ANN, BOB, EVE)] == [401, 200, 200]
        assert not [each for each in (ANN, BOB, EVE) if each in said]


@pytest.mark.parametrize("path", ["/observe/default", "/perturb/default"])
async def test_the_chat_gateway_lets_revoked_tokens_go_too(game: Path, listener: Listener, path: str) -> None:
    headers = [(b"Authorization", f"Bearer {ANN}".encode())]
    async with open_running(game, listener) as running:
        stream = await trio.open_tcp_stream("127.0.0.1", running.opened.ws_port)
        async with stream, trio.open_nursery() as nursery:
            socket = await wrap_client_stream(nursery, stream, "localhost", path, extra_headers=headers)
            write_tokens(game.parent, bob=BOB)
            await running.reload()
            with pytest.raises(ConnectionClosed):
                await socket.get_message()
            assert socket.closed is not None
            assert socket.closed.code == 1008


async def test_new_keys_of_kept_content_count_at_once(tmp_path: Path, listener: Listener) -> None:
    keys = tmp_path / "content.keys"
    keys.touch(0o600)
    keys.write_text(new_key())
    file = write_game(tmp_path, '[chat]\ncontent_folder = "kept"\ncontent_keys_file = "content.keys"\n')
    async with open_running(file, listener) as running:
        keys.write_text(f"{new_key()}\n{keys.read_text()}")
        assert "the keys of kept content were read again" in await running.reload()
        keys.chmod(0o644)
        assert "chmod 600" in await running.reload()


async def test_a_token_that_was_replaced_is_revoked(game: Path, listener: Listener) -> None:
    async with open_running(game, listener) as running, open_peer(running.opened.ws_port, token=ANN) as ann:
        write_tokens(game.parent, ann=EVE, bob=BOB)
        await running.reload()
        with pytest.raises(ConnectionClosed):
            await ann.receive()
        assert [await running.status(each) for each in (ANN, EVE)] == [401, 200]


@pytest.mark.parametrize(
    ("settings", "tokens", "why"),
    [
        ("grace = 'long'", "", "7: server.grace must be a number of seconds"),
        ("origins = ", "", "This is not TOML"),
        ("", "ann short\n", "line 1 cannot be used"),
    ],
)
async def test_a_mistake_changes_nothing_and_is_explained(
    game: Path, listener: Listener, settings: str, tokens: str, why: str
) -> None:
    async with open_running(game, listener) as running, open_peer(running.opened.ws_port, token=ANN) as ann:
        write_tokens(game.parent, eve=EVE)
        if tokens:
            (game.parent / "tokens").write_text(tokens)
        write_game(game.parent, f'tokens_file = "tokens"\n{settings}\n')
        said = await running.reload()
        assert said.startswith("nothing is reloaded, because of the settings: ")
        assert why in said
        await ann.start()
        assert [await running.status(each) for each in (ANN, EVE)] == [200, 401]


async def test_origins_roles_and_rates_change_and_the_rest_is_named_until_a_restart(
    game: Path, listener: Listener
) -> None:
    changed = """
        tokens_file = "tokens"
        origins = ["https://inn.example"]
        grace = 9
        [users.ann]
        operator = true
        [limits]
        max_sessions = 7
        [wire]
        user_commands_per_second = 0.001
        user_command_burst = 1
        max_frame_bytes = 99
    """
    async with open_running(game, listener) as running:
        write_game(game.parent, changed)
        said = await running.reload()
        assert "changed: server.origins, users.ann, wire.user_command_burst, wire.user_commands_per_second;" in said
        assert said.endswith("needs a restart: limits.max_sessions, server.grace, wire.max_frame_bytes")
        assert [await running.status(BOB) for _ in range(2)] == [200, 429]
        again = await running.reload()
        assert "changed: no setting; needs a restart: limits.max_sessions, server.grace, wire.max_frame_bytes" in again


async def test_a_server_without_tokens_takes_none_before_a_restart(tmp_path: Path, listener: Listener) -> None:
    file = write_game(tmp_path)
    async with open_running(file, listener) as running, open_peer(running.opened.ws_port) as peer:
        write_tokens(tmp_path, ann=ANN)
        write_game(tmp_path, 'tokens_file = "tokens"\n')
        assert (await running.reload()).endswith("needs a restart: server.tokens_file, tokens")
        await peer.start()


async def test_a_renewed_certificate_counts_for_the_next_handshake(tmp_path: Path, listener: Listener) -> None:
    def issue() -> ssl.SSLContext:
        authority = trustme.CA()
        certificate = authority.issue_cert("localhost")
        (tmp_path / "key.pem").touch(0o600)
        certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        return trusting

    old = issue()
    file = write_game(tmp_path, 'tls_cert = "cert.pem"\ntls_key = "key.pem"\n')
    async with open_running(file, listener) as running:
        port = running.opened.ws_port
        async with open_peer(port, tls=old) as peer:
            new = issue()
            assert "the certificate was read again" in await running.reload()
            await peer.start()
        async with open_peer(port, tls=new) as peer:
            await peer.start()
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            with pytest.raises(trio.BrokenResourceError):
                await trio.SSLStream(stream, old, server_hostname="localhost").do_handshake()


async def test_sighup_reloads_a_real_process_and_does_not_end_it(game: Path) -> None:
    async with open_server(game.parent, "--config", str(game)) as served:
        async with open_peer(served.ws_port, token=ANN) as ann:
            write_tokens(game.parent, bob=BOB, eve=EVE)
            served.process.send_signal(signal.SIGHUP)
            with trio.fail_after(60), pytest.raises(ConnectionClosed):
                await ann.receive()
        assert (await request(served.http_port, "GET", "/v1/world", token=EVE))[0] == 200
        served.process.send_signal(signal.SIGTERM)
        assert await served.ended() == 0
        log = served.complaints.read_text()
        assert "1 new and 1 revoked" in log
        assert ANN not in log
