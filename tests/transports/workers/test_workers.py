"""Workers: several processes serve the worlds of one server, and none harms another.

The processes are real, and the tests wait for what they do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import pytest
import trio
from trio_websocket import ConnectionClosed

from footlights import CommitFinal, CommitOutcome, EventType, InterruptReason, TurnFinal, TurnInterrupted, laws
from footlights.testing import only
from footlights_transports import ConfigError, load_config
from tests.kit.served import FOOTLIGHTS, open_peer, open_server, request, write_game

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.served import Served

pytestmark = [
    pytest.mark.usefixtures("interruptible"),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot pass a connection to another process"),
]

SETTINGS = 'workers = 2\ngrace = 0\n[worlds]\nnames = ["harbour", "castle"]\n[wire]\nhandshake_timeout = 2\n'
"""Of three worlds, harbour is the second worker's, and the main one and castle are the first's."""


def worker_pid(server: Served, index: int) -> int:
    """The process of a worker: a child of the router, whose arguments have its number."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(server.process.pid)], capture_output=True, text=True, check=True
    ).stdout
    (pid,) = [int(line.split()[0]) for line in listed.splitlines() if f'"index":{index}' in line]
    return pid


async def test_worlds_live_in_workers_and_each_can_die_alone(tmp_path: Path) -> None:
    settings = ("--config", str(write_game(tmp_path, SETTINGS)))
    async with open_server(tmp_path, *settings) as server, AsyncExitStack() as left_open:
        left_open.enter_context(trio.fail_after(60))
        assert "  Workers    2\n" in server.shown
        # Each world answers at its address, over both servers; over one HTTP connection no world is the wrong one.
        for world in ("", "harbour", "castle"):
            async with open_peer(server.ws_port, world=world) as peer:
                assert only(await peer.take_turn(await peer.start(), "Hello"), TurnFinal).text == "Good evening. Hello"
            address = f"/w/{world}/v1/sessions" if world else "/v1/sessions"
            assert (await request(server.http_port, "POST", address))[0] == 201
        assert {each.name for each in tmp_path.glob("*.worlds/*.ledger")} == {"harbour.ledger", "castle.ledger"}  # noqa: ASYNC240
        # What concerns all workers is added up.
        assert await request(server.http_port, "GET", "/readyz") == (200, {"status": "ok"})
        async with await trio.open_tcp_stream("127.0.0.1", server.http_port) as stream:
            await stream.send_all(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answered = b"".join([each async for each in stream])  # it ends: the next request may be for a worker
            assert answered.startswith(b"HTTP/1.1 200")
        _, metrics = await request(server.http_port, "GET", "/metrics")
        assert b'footlights_turns_total{outcome="ok"} 3.0' in metrics
        assert b"footlights_worlds 3.0" in metrics
        # A bad name, and one that the router does not read as the worker does.
        for path, code in (("/w/No/v1/world", "invalid_world"), ("/w/%68arbour/v1/world", "unknown_world")):
            assert (await request(server.http_port, "GET", path))[1]["error"]["code"] == code
        # First bytes that are slow, few or no HTTP keep nobody waiting, and cost no more than their time.
        slow = [await trio.open_tcp_stream("127.0.0.1", server.http_port) for _ in range(20)]
        for number, stream in enumerate(slow):
            left_open.push_async_exit(stream)
            await stream.send_all((b"", b"G", b"GET /w/har", b"\r\n")[number % 4])
        async with open_peer(server.ws_port) as inn, open_peer(server.ws_port, world="harbour") as harbour:
            here, there = await inn.start(), await harbour.start()
            turn_id = (await harbour.ask("begin_turn", session_id=there, input="stay"))["turn_id"]
            seen = await harbour.take_until(EventType.TOKEN_DELTA, turn_id)
            # The worker dies. The other world goes on, and this one comes back, and tells what became of the turn.
            os.kill(worker_pid(server, 1), signal.SIGKILL)
            with pytest.raises(ConnectionClosed):
                await harbour.receive()
            assert only(await inn.take_turn(here, "And now?"), TurnFinal).text == "Good evening. And now?"
        # A connection that the worker took with it is closed, and trio-websocket waits for ever for its handshake.
        while (await request(server.http_port, "GET", "/readyz"))[0] != 200:  # noqa: ASYNC110 - nothing tells
            await trio.sleep(0.1)
        after = {turn_id: seen[-1].seq}
        async with open_peer(server.ws_port, world="harbour", after=after) as harbour:
            await harbour.ask("subscribe", session_id=there, after=after)
            seen += await harbour.take_until(EventType.COMMIT_FINAL, turn_id)
        assert laws.check(seen) == []
        assert only(seen, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
        for stream in slow:
            with suppress(trio.BrokenResourceError):
                assert await stream.receive_some() == b"", "the router closes what does not become a request"
        _, metrics = await request(server.http_port, "GET", "/metrics")
        assert b'footlights_incidents_total{kind="worker_died"} 1.0' in metrics
        assert b'footlights_incidents_total{kind="router_incomplete"} 20.0' in metrics
        # SIGTERM settles the turns of all workers.
        async with open_peer(server.ws_port) as inn, open_peer(server.ws_port, world="harbour") as harbour:
            for peer in (inn, harbour):
                turn_id = (await peer.ask("begin_turn", session_id=await peer.start(), input="stay"))["turn_id"]
                await peer.take_until(EventType.TOKEN_DELTA, turn_id)
            server.process.send_signal(signal.SIGTERM)
            for peer in (inn, harbour):
                events = await peer.take_until(EventType.COMMIT_FINAL, peer.events[0].turn_id)
                assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
                assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
        assert await server.ended() == 0
        (complaint,) = server.complaints.read_text().splitlines()
        assert complaint.endswith("worker 1 died with -9, and is started again")


async def test_a_server_whose_workers_cannot_start_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "game.ledger").write_text("This is a shopping list, and no ledger at all.")
    settings = str(write_game(tmp_path, SETTINGS))
    command = [*FOOTLIGHTS, "serve", "--config", settings]
    done = await trio.run_process(command, cwd=tmp_path, capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == ["The file is not a ledger.", "A worker did not start."]


def test_workers_do_not_go_with_tls(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("")
    file = write_game(tmp_path, 'workers = 2\ntls_cert = "cert.pem"\ntls_key = "cert.pem"\n')
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    said = [each.sentence for each in refused.value.problems if each.sentence.startswith("server.workers")]
    assert len(said) == 1
    assert "Let TLS end in front, in a proxy" in said[0]
