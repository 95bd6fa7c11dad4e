"""Privacy of the chat gateway: every byte that a server leaves behind, with all loggers at debug, is searched.

No word of what was said and no correlation id is in any of it. With consent what was said is there once, sealed;
without consent, or after it was erased, it is not there at all.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
import trio

from footlights.authority.digest import digest
from footlights_actors.sealed.keys import new_key
from footlights_transports.views.kgent.store import ContentStore
from tests.kit.peers.kgent_peer import Client, connect_to, only
from tests.kit.peers.ws_peer import read_until_end, shake_hands
from tests.kit.served import open_server, write_game

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "xyzzy-token-of-alice"
SAID = "xyzzy-said-in-private"
AGREED = "xyzzy-said-with-consent"
MISSPOKEN = "xyzzy-said-wrongly"
CORRELATION = "xyzzy-correlation"
SECRETS = (SAID, AGREED, MISSPOKEN, CORRELATION, TOKEN)

SETTINGS = """trace = "traces"
tokens_file = "../tokens"
[chat]
content_folder = "kept"
content_keys_file = "../content.keys"
"""


def everything_in(folder: Path) -> bytes:
    return b"".join(each.name.encode() + each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())


async def talk(port: int) -> None:
    """Use every feature of the gateway, with valid and invalid input."""
    async with (
        connect_to(port, "/observe/default", token=TOKEN) as observer,
        connect_to(port, "/perturb/default", token=TOKEN) as sender,
        connect_to(port, "/perturb/default?session=diary&keep_content=1", token=TOKEN) as consenting,
    ):
        assert only(await dialogue(sender, observer, SAID, "1"), "message")
        assert only(await dialogue(sender, observer, f"fail {SAID}", "2"), "message")[0]["template"] == "fallback"
        assert only(await dialogue(consenting, observer, AGREED, "3"), "message")
        for wrong in (MISSPOKEN, f'{{"action": "{MISSPOKEN}"}}', f'{{"version": "1.0.0", "{MISSPOKEN}": 1}}'):
            await sender.socket.send_message(wrong)
        await sender.send(MISSPOKEN, mode=MISSPOKEN, correlation_id=CORRELATION)
        await sender.hear(CORRELATION)
        await sender.send(f"stay {SAID}", correlation_id=f"{CORRELATION}-4")
        await observer.socket.send_message(MISSPOKEN)
    query = f"?correlation_id={CORRELATION}-1&after=1&correlation_id={CORRELATION}-none"
    async with connect_to(port, f"/observe/default{query}", token=TOKEN) as observer:
        await observer.hear(f"{CORRELATION}-1", after=1)
        await observer.hear(f"{CORRELATION}-none")


async def misbehave(ws_port: int, http_port: int) -> None:
    """Make every kind of failing connection: refused, cut off, lost. None of it may be quoted."""
    for path in (
        f"/observe/default?correlation_id={CORRELATION}&after={MISSPOKEN}",
        f"/observe/default?session={MISSPOKEN}&correlation_id={CORRELATION}",
        f"/perturb/default?{MISSPOKEN}=1",
        f"/perturb/{MISSPOKEN}",
        f"/{MISSPOKEN}",
    ):
        refused = await answer_to(ws_port, path)
        assert b" 404 " in refused or b" 400 " in refused
        assert b" 101 " not in await answer_to(http_port, path)
    assert b" 401 " in await answer_to(ws_port, "/perturb/default", token=f"{TOKEN}-{MISSPOKEN}")
    secret = MISSPOKEN.encode()
    whole = bytes((0x81, 0x80 | len(secret))) + bytes(4) + secret
    for hurt in (
        b"\x81\xff" + (1 << 20).to_bytes(8, "big") + bytes(4) + secret,  # longer than a frame may be
        b"\x81\x82" + bytes(4) + b"\xff\xfe" + whole,  # no UTF-8
        b"\xf1" + whole[1:],  # no WebSocket
        whole[:-3],  # and gone in the middle of it
    ):
        for path in ("/perturb/default", f"/observe/default?correlation_id={CORRELATION}"):
            async with await trio.open_tcp_stream("127.0.0.1", ws_port) as stream:
                assert b" 101 " in await shake_hands(stream, request_for(path))
                await stream.send_all(hurt)
                await stream.send_eof()
                await read_until_end(stream)


def request_for(path: str, token: str = TOKEN) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer "
        f"{token}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()


async def answer_to(port: int, path: str, token: str = TOKEN) -> bytes:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        return await shake_hands(stream, request_for(path, token))


async def dialogue(sender: Client, observer: Client, said: str, name: str) -> list[dict[str, object]]:
    await sender.send(said, correlation_id=f"{CORRELATION}-{name}")
    return await observer.hear(f"{CORRELATION}-{name}")


@pytest.mark.shows("gateway-72")
async def test_a_server_leaves_no_text_of_a_chat_behind(tmp_path: Path) -> None:
    folder, key = tmp_path / "server", new_key()
    folder.mkdir()
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    (tmp_path / "content.keys").touch(0o600)
    (tmp_path / "content.keys").write_text(f"{key}\n")
    write_game(folder, SETTINGS)
    environ = {"FOOTLIGHTS_LOG": "debug", "PYTHONDEVMODE": "1", "TMPDIR": str(folder), "HOME": str(folder)}
    async with open_server(folder, "--config", "game.toml", "--grace", "0", environ=environ) as server:
        with trio.fail_after(60):
            await talk(server.ws_port)
            await misbehave(server.ws_port, server.http_port)
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
    left = server.shown.encode() + everything_in(folder)
    assert b" debug a_library: served_game.py:" in left, "the loggers were not at their loudest"
    assert (folder / "traces" / "interaction_trace.jsonl").stat().st_size > 1_000
    for secret in (*SECRETS, key):
        assert secret.encode() not in left
        assert secret.encode().hex().encode() not in left
        assert digest(secret).encode() not in left
        assert bytes.fromhex(digest(secret)) not in left
    store = ContentStore(folder / "kept", [key])
    (kept,) = await store.read("alice:diary")
    assert (kept.said, kept.answered) == (AGREED, f"Good evening. {AGREED}")
    assert len(list((folder / "kept").iterdir())) == 1, "nothing is kept of those who did not agree"
    assert await store.erase("alice:diary")
    assert list((folder / "kept").iterdir()) == []
