"""Output of the server process, with every logger at its lowest level: no text of players or models, no token, no key.

Secrets are said in every place where a client or a model can say something, well and badly. Then all that the process
left behind is searched: what it printed, its log, its ledger and its traces.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
from trio_websocket import ConnectionRejected

from footlights import EventType, TurnFinal, TurnInterrupted
from footlights.authority.digest import digest
from footlights.testing import only
from tests.kit.models import openai_wire as completions
from tests.kit.models.wire_server import Answer, open_wire_server
from tests.kit.served import open_peer, open_server, request, write_game

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.peers.ws_peer import Peer
    from tests.kit.served import Served

SAID = "xyzzy-said-by-a-player"
MISSPOKEN = "xyzzy-said-wrongly"
ANSWERED = "xyzzy-answered-by-a-model"
TOKEN = "xyzzy-token-of-alice"
WRONG = "xyzzy-token-of-nobody"
KEY = "xyzzy-key-of-a-model"
SECRETS = (SAID, MISSPOKEN, ANSWERED, TOKEN, WRONG, KEY)

SETTINGS = """trace = "traces"
tokens_file = "../tokens"
[models.odo]
kind = "scripted"
script = "served_game:script"
[models.far]
kind = "openai"
name = "bard"
base_url = "{url}/v1"
key_env = "THE_KEY"
[personas.innkeeper]
"""


async def test_no_byte_that_a_server_leaves_behind_says_what_was_said(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    environ = {"FOOTLIGHTS_LOG": "debug", "THE_KEY": KEY, "PYTHONDEVMODE": "1"}
    well = Answer([*completions.said(ANSWERED), completions.END, completions.DONE])
    badly = Answer([ANSWERED], status=500)
    async with open_wire_server(well, badly) as far:
        settings = write_game(folder, SETTINGS.format(url=far.url))
        settings.write_text(settings.read_text().replace('[cast]\nmake = "served_game:make"\n', ""))
        async with open_server(folder, "--config", "game.toml", "--grace", "0", environ=environ) as server:
            async with open_peer(server.ws_port, token=TOKEN) as peer:
                await talk(peer, server)
            await talk_badly(server)
            await talk_http(server)
            server.process.send_signal(signal.SIGTERM)
            assert await server.ended() == 0
        assert far.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert far.requests[0].body["messages"][-1]["content"] == SAID
    log = server.complaints.read_text()
    left = server.shown.encode() + b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())
    assert " debug a_library: served_game.py:" in log, "the loggers were not at their loudest"
    assert (folder / "traces" / "interaction_trace.jsonl").stat().st_size > 1_000
    for secret in SECRETS:
        assert secret.encode() not in left
        assert secret.upper().encode() not in left
        assert digest(secret).encode() not in left
        assert bytes.fromhex(digest(secret)) not in left
        assert orjson.dumps(secret.encode().hex())[1:-1] not in left


async def talk(peer: Peer, server: Served) -> None:
    """In every way that the protocol has."""
    session_id = (await peer.ask("start", params={"remote_models": True}))["session_id"]
    await peer.ask("subscribe", session_id=session_id)
    assert only(await peer.take_turn(session_id, SAID), TurnFinal).text == f"Good evening. {SAID}"
    assert only(await peer.take_turn(session_id, f"fail {SAID}"), TurnInterrupted).reason == "model_error"
    for _ in range(2):
        begun = await peer.ask("begin_turn", session_id=session_id, input=SAID, params={"model": "far"})
        await peer.take_until(EventType.COMMIT_FINAL, begun["turn_id"])
    told = "".join(frame["payload"].get("text", "") for frame in peer.frames if "payload" in frame)
    assert ANSWERED in told
    staying = (await peer.ask("begin_turn", session_id=session_id, input=f"stay {SAID}"))["turn_id"]
    await peer.take_until(EventType.TOKEN_DELTA, staying)
    assert await peer.refusal(MISSPOKEN) == "invalid_command"
    assert await peer.refusal("start", **{MISSPOKEN: MISSPOKEN}) == "invalid_command"
    assert await peer.refusal("cancel", session_id=MISSPOKEN) == "unknown_session"
    assert await peer.refusal("begin_turn", session_id=session_id, input=SAID, params={"persona": MISSPOKEN})
    for bad in (MISSPOKEN, f'{{"op": "{MISSPOKEN}', f'["{MISSPOKEN}"]', MISSPOKEN.encode()):
        await peer.socket.send_message(bad)
        assert (await peer.reply(None))["ok"] is False
    await peer.socket.ping(MISSPOKEN.encode())
    await peer.socket.aclose(3000, MISSPOKEN)


async def talk_badly(server: Served) -> None:
    """Before anything was agreed on."""
    with pytest.raises(ExceptionGroup) as refused:
        async with open_peer(server.ws_port, token=WRONG):
            pytest.fail("nobody has this token")
    assert refused.group_contains(ConnectionRejected)
    head = f"Host: localhost\r\nAuthorization: Bearer {WRONG}\r\nCookie: {MISSPOKEN}\r\nOrigin: http://{MISSPOKEN}\r\n"
    upgrade = f"{head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: bearer.{TOKEN}\r\n"
    for port in (server.ws_port, server.http_port):
        for said in (
            f"GET /{MISSPOKEN}?token={TOKEN} HTTP/1.1\r\n{head}\r\n",
            f"GET /v1?{MISSPOKEN} HTTP/1.1\r\n{upgrade}\r\n",
            f"{MISSPOKEN} / HTTP/1.1\r\n\r\n",
            f"GET /v1 HTTP/1.1\r\n{MISSPOKEN}\r\n\r\n",
            f"{MISSPOKEN}\r\n\r\n",
            f"\x16\x03\x01{MISSPOKEN}",
        ):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(said.encode())
                await stream.send_eof()
                while await stream.receive_some():
                    pass


async def talk_http(server: Served) -> None:
    port = server.http_port
    assert (await request(port, "POST", "/v1/sessions", {}, token=WRONG))[0] == 401
    _, started = await request(port, "POST", "/v1/sessions", {"params": {}}, token=TOKEN)
    session = f"/v1/sessions/{started['session_id']}"
    status, begun = await request(port, "POST", f"{session}/turns", {"input": SAID}, token=TOKEN)
    assert status == 202
    turn = f"{session}/turns/{begun['turn_id']}"
    assert (await request(port, "POST", f"{turn}/finalize", token=TOKEN))[0] == 200
    assert (await request(port, "POST", f"{session}/turns", {"input": f"fail {SAID}"}, token=TOKEN))[0] == 202
    for path, body in (
        (f"{session}/turns", {MISSPOKEN: MISSPOKEN}),
        (f"{session}/turns", [MISSPOKEN]),
        (f"{session}/turns/{MISSPOKEN}/finalize", None),
        (f"/v1/sessions/{MISSPOKEN}/cancel", None),
        (f"/{MISSPOKEN}", {"input": SAID}),
    ):
        status, told = await request(port, "POST", path, body, token=TOKEN)
        assert 400 <= status < 500, path
        assert "error" in told
    status, _ = await request(port, "GET", f"{session}/events?last_event_id={MISSPOKEN}", token=WRONG)
    assert status == 401
    assert (await request(port, "DELETE", session, token=TOKEN))[0] == 204
