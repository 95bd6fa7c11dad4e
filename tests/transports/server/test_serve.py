"""`footlights serve`: it starts, serves, stops on a signal, and starts again.

The processes are real, and the tests wait for what they do: there is no other way to test a signal.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import warnings
from collections import Counter
from typing import TYPE_CHECKING

import httpx2
import pytest
import trio
import trustme
from attrs import evolve
from trio_websocket import ConnectionClosed

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    LedgerUnavailable,
    TurnFinal,
    TurnInterrupted,
    laws,
)
from footlights.authority import LedgerInUse
from footlights.authority.ledger.names import ledger_at
from footlights.testing import only, payloads
from footlights_actors import standard_cast
from footlights_transports import Config, load_config
from footlights_transports.cli import serve as cli_serve
from footlights_transports.errors import WIRE_CODES
from footlights_transports.server.logs import RedactingFormatter, set_up_logs
from footlights_transports.server.serve import CannotServe, Opened, serve, serve_here
from tests.kit.command import footlights
from tests.kit.paths import ROOT
from tests.kit.peers.http_peer import HttpGuest, taken
from tests.kit.peers.kgent_peer import connect_to
from tests.kit.peers.ws_peer import HeldModel
from tests.kit.served import FOOTLIGHTS, open_peer, open_server, request, write_game

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import StreamEvent

pytestmark = pytest.mark.usefixtures("interruptible")

OPERATE = ROOT / "docs" / "how-to" / "operate" / "operate.md"
TOKEN = "a-token-of-sixteen-or-more"
TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}

_IN_USE = "Port {} of 127.0.0.1 is in use. Choose another with --ws-port or --http-port: 0 is any free one."


def configured(folder: Path, **options: object) -> Config:
    """A server in a folder, on any free ports."""
    given = {"ws_port": 0, "http_port": 0, "ledger": str(folder / "inn.ledger"), **options}
    return load_config(options={("server", name): value for name, value in given.items()})


def with_model(model: HeldModel, config: Config) -> Config:
    return evolve(config, cast=standard_cast(model))


class Running:
    """A server in this process."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.ready = trio.Event()
        self.ended = trio.Event()
        self.opened = Opened(0, 0, 0)

    def announce(self, opened: Opened) -> None:
        self.opened = opened
        self.ready.set()

    async def run(self, config: Config) -> None:
        await serve(config, self.announce, self.stop)
        self.ended.set()


# -- in this process


async def test_turns_may_finish_after_the_stop_signal_but_nothing_begins(tmp_path: Path, nursery: trio.Nursery) -> None:
    model, running = HeldModel(), Running()
    nursery.start_soon(running.run, with_model(model, configured(tmp_path, grace=3600.0)))
    await running.ready.wait()
    async with open_peer(running.opened.ws_port) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="Hello"))["turn_id"]
        await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        running.stop.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await peer.refusal("start") == "session_closed"
        assert await peer.refusal("begin_turn", session_id=session_id, input="And now?") == "session_closed"
        for port in (running.opened.ws_port, running.opened.http_port):
            with pytest.raises(OSError, match="connect"):
                await trio.open_tcp_stream("127.0.0.1", port)
        model.may_go_on.set()
        events = await peer.take_until(EventType.COMMIT_FINAL, turn_id)
        assert only(events, TurnFinal).text == "Well, good evening."
        assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK
        with pytest.raises(ConnectionClosed):
            await peer.receive()
        assert peer.notices == [], "the session may be gone back to when the server has come back"
    await running.ended.wait()


async def test_turns_that_do_not_finish_in_time_are_interrupted_and_announced(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    running = Running()
    nursery.start_soon(running.run, with_model(HeldModel(), configured(tmp_path, grace=0.0)))
    await running.ready.wait()
    async with open_peer(running.opened.ws_port) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="Hello"))["turn_id"]
        await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        running.stop.set()
        events = await peer.take_until(EventType.COMMIT_FINAL, turn_id)
    assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
    await running.ended.wait()


async def test_a_subscriber_over_http_gets_the_end_of_every_turn(tmp_path: Path, nursery: trio.Nursery) -> None:
    running = Running()
    nursery.start_soon(running.run, with_model(HeldModel(), configured(tmp_path, grace=0.0)))
    await running.ready.wait()
    port = running.opened.http_port
    _, started = await request(port, "POST", "/v1/sessions")
    session = f"/v1/sessions/{started['session_id']}"
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(f"GET {session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert (await request(port, "POST", f"{session}/turns", {"input": "Hello"}))[0] == 202
        got = b""
        while b"token_delta" not in got:
            got += await stream.receive_some()
        running.stop.set()
        while more := await stream.receive_some():
            got += more
    assert got.index(b'"turn_interrupted"') < got.index(b'"commit_final"')
    assert b"event: ended" not in got
    await running.ended.wait()


async def test_the_guide_for_operators_names_every_metric_and_every_code(tmp_path: Path, nursery: trio.Nursery) -> None:
    running = Running()
    nursery.start_soon(running.run, configured(tmp_path))
    await running.ready.wait()
    _, told = await request(running.opened.http_port, "GET", "/metrics")
    running.stop.set()
    names = {line.split()[2] for line in told.decode().splitlines() if line.startswith("# TYPE ")}
    names = {name for name in names if not name.endswith("_created")}
    guide = OPERATE.read_text(encoding="utf-8")
    assert len(names) > 15
    assert {name for name in names if f"`{name}" not in guide} == set()
    assert set(re.findall(r"`(footlights_\w+)", guide)) == names
    assert {code for code in WIRE_CODES if f"| `{code}` |" not in guide} == set()


async def test_both_servers_speak_tls(tmp_path: Path, nursery: trio.Nursery) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    (tmp_path / "key.pem").touch(0o600)
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    client = ssl.create_default_context()
    authority.configure_trust(client)
    running = Running()
    files = {"tls_cert": str(tmp_path / "cert.pem"), "tls_key": str(tmp_path / "key.pem")}
    config = configured(tmp_path, **files)
    nursery.start_soon(running.run, config)
    await running.ready.wait()
    async with open_peer(running.opened.ws_port, tls=client) as peer:
        await peer.start()
    assert " wss://127.0.0.1:" in cli_serve.summary(config, running.opened)
    running.stop.set()


@pytest.mark.parametrize("taken", ["ws_port", "http_port"])
async def test_a_port_that_is_taken_is_reported_in_a_sentence(tmp_path: Path, taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        with pytest.raises(CannotServe) as refused:
            await serve(configured(tmp_path, **{taken: port}), lambda _: None, trio.Event())
    assert str(refused.value) == _IN_USE.format(port)


async def test_an_address_that_is_not_ours_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text(f"alice {TOKEN}")
    config = configured(tmp_path, host="192.0.2.1", tokens_file=str(tmp_path / "tokens"))
    with pytest.raises(CannotServe, match=r"^Cannot listen on 192\.0\.2\.1, port 0: "):
        await serve(config, lambda _: None, trio.Event())


async def test_a_ledger_that_is_in_use_is_reported_as_it_is(tmp_path: Path) -> None:
    config = configured(tmp_path)
    async with ledger_at(config.ledger) as ledger:
        await ledger.begin_epoch(config.cast.world)
        with pytest.raises(LedgerInUse):
            await serve(config, lambda _: None, trio.Event())


async def test_a_ledger_that_cannot_be_made_is_reported_in_a_sentence(tmp_path: Path) -> None:
    config = configured(tmp_path, ledger=str(tmp_path / "nowhere" / "inn.ledger"))
    with pytest.raises(LedgerUnavailable, match="nowhere"):
        await serve(config, lambda _: None, trio.Event())


async def test_whatever_else_fails_ends_the_server(tmp_path: Path) -> None:
    def announce(_: Opened) -> None:
        raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as failed:
        await serve(configured(tmp_path), announce, trio.Event())
    assert failed.group_contains(ZeroDivisionError)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_the_handlers_are_as_they_were(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    serve_here(configured(tmp_path), lambda _: os.kill(os.getpid(), number))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_threads_switch_often_while_it_serves_and_then_as_before(tmp_path: Path) -> None:
    before, during = sys.getswitchinterval(), list[float]()

    def announce(_: Opened) -> None:
        during.append(sys.getswitchinterval())
        os.kill(os.getpid(), signal.SIGTERM)

    serve_here(configured(tmp_path), announce)
    assert during == [pytest.approx(0.0002)]
    assert sys.getswitchinterval() == before


def test_a_sigint_that_is_ignored_when_it_starts_stays_ignored(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    during: list[object] = []

    def announce(_: Opened) -> None:
        during.append(signal.getsignal(signal.SIGINT))
        os.kill(os.getpid(), signal.SIGTERM)

    serve_here(configured(tmp_path), announce)
    assert during == [signal.SIG_IGN]


# -- what is printed


def test_where_things_are_is_printed(tmp_path: Path) -> None:
    shown = cli_serve.summary(configured(tmp_path, trace=str(tmp_path / "traces")), Opened(1, 2, 1)).splitlines()
    assert shown[:6] == [
        "Footlights is open. Ctrl-C closes it.",
        "  Personas   innkeeper, analyst",
        "  WebSocket  ws://127.0.0.1:1/v1",
        "  HTTP       http://127.0.0.1:2/v1",
        f"  Ledger     {tmp_path / 'inn.ledger'} (new)",
        f"  Traces     {tmp_path / 'traces'}",
    ]
    assert shown[6:8] == ["Try one of these, which Ctrl-C ends:", "  footlights play --url ws://127.0.0.1:1"]
    assert shown[8].startswith("  s=http://127.0.0.1:2/v1/sessions/")
    assert '{"input": "Hello"}' in shown[8]  # fits every game


def test_with_tokens_the_line_to_try_takes_one_and_tells_none(tmp_path: Path) -> None:
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text(f"alice {TOKEN}")
    config = configured(tmp_path, host="::1", tokens_file=str(tmp_path / "tokens"))
    shown = cli_serve.summary(config, Opened(1, 2, 1))
    assert 'curl -s -H "Authorization: Bearer $TOKEN" -X POST http://[::1]:2/v1/sessions' in shown
    assert "footlights play --url ws://[::1]:1 --token-env NAME" in shown
    assert TOKEN not in shown


# -- the command


@pytest.mark.usefixtures("logs_as_they_were")
class TestCommand:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))

    def test_good_settings_are_told_to_be_good(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert footlights(monkeypatch, "serve", "--check") == 0
        assert footlights(monkeypatch, "serve", "--check", "--config", str(write_game(tmp_path))) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown == ["The settings: Configuration OK.", f"{tmp_path}/game.toml: Configuration OK."]

    def test_bad_settings_are_explained(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = str(write_game(tmp_path, "grace = 'long'\n"))
        assert footlights(monkeypatch, "serve", "--check", "--config", file, "--ws-port", "-1") == 1
        sentences = (
            "--ws-port: server.ws_port must be a port: a whole number from 0 to 65535.\n"
            f"{file}:6: server.grace must be a number of seconds, 0 or more.\n"
        )
        assert capsys.readouterr() == ("", sentences)
        assert footlights(monkeypatch, "serve", "--config", file, "--ws-port", "-1") == 2
        assert capsys.readouterr() == ("", sentences)

    def test_a_ledger_that_cannot_be_used_is_found_by_a_check(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nowhere, other = tmp_path / "no" / "x.ledger", tmp_path / "other"
        other.write_text("a file that is no ledger")
        for options, code in ((["--check"], 1), ([], 2)):
            assert footlights(monkeypatch, "serve", *options, "--ledger", str(nowhere)) == code
            sentence = f"The ledger {nowhere} cannot be made: there is no such folder. Make it, or name another.\n"
            assert capsys.readouterr() == ("", sentence)
        assert footlights(monkeypatch, "serve", "--check", "--ledger", str(other)) == 1
        assert capsys.readouterr() == ("", f"{other}: The file is not a ledger.\n")

    def test_a_port_in_use_is_reported_in_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            assert footlights(monkeypatch, "serve", "--ws-port", port, "--http-port", "0") == 2
        assert capsys.readouterr() == (
            "",
            _IN_USE.format(port) + "\n",
        )

    def test_a_level_that_there_is_not_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("FOOTLIGHTS_LOG", "loud")
        assert footlights(monkeypatch, "serve") == 2
        assert capsys.readouterr() == ("", "FOOTLIGHTS_LOG must be one of debug, info, warning, error.\n")

    def test_a_failure_is_reported_without_its_message(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "failing_game.py").write_text(
            "from footlights_actors import ScriptedModel, standard_cast\n"
            "class Flood:\n"
            "    def view(self): raise ZeroDivisionError('do not quote me')\n"
            "    changed = digest = view\n"
            "def make(): return standard_cast(ScriptedModel(lambda _: []), world=Flood())\n"
        )
        (tmp_path / "game.toml").write_text("cast.make = 'failing_game:make'")
        assert footlights(monkeypatch, "serve", "--config", "game.toml", "--ws-port", "0", "--http-port", "0") == 1
        told = capsys.readouterr().err
        assert told == "The server failed: ZeroDivisionError at failing_game.py:3\n"


def test_of_records_of_libraries_only_the_place_is_logged() -> None:
    error = ZeroDivisionError("do not quote me")
    thrown = (type(error), error, None)
    theirs = logging.LogRecord("hypercorn.error", logging.ERROR, "/x/asgi.py", 7, "said %s", ("xyzzy",), thrown)
    ours = logging.LogRecord("footlights.ws", logging.INFO, "/x/ws.py", 7, "failed: %s", ("busy",), None)
    written = RedactingFormatter().format
    assert written(theirs).endswith(" hypercorn.error: asgi.py:7 (ZeroDivisionError at unknown place)")
    assert written(ours).endswith(" info footlights.ws: failed: busy")


@pytest.mark.usefixtures("logs_as_they_were")
def test_an_uncaught_exception_is_logged_without_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("warning", sys.stderr)
    dying = threading.Thread(target=lambda: 1 / 0)
    dying.start()
    dying.join()

    class Lost:
        def __del__(self) -> None:
            raise ZeroDivisionError("do not quote me")

    Lost()
    sys.unraisablehook(type("Unknown", (), {"exc_value": None})())
    died, lost, unknown = capsys.readouterr().err.splitlines()
    assert " error footlights.process: a thread died: ZeroDivisionError at test_serve.py:" in died
    assert " error footlights.process: lost: ZeroDivisionError at test_serve.py:" in lost
    assert unknown.endswith(" error footlights.process: lost: unknown")


@pytest.mark.usefixtures("logs_as_they_were")
def test_a_warning_of_python_is_logged_by_its_place_and_a_forgotten_await_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logs("warning", sys.stderr)

    async def rent() -> None:
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("do not quote me", UserWarning, stacklevel=1)
        rent()  # type: ignore[unused-coroutine]
    quoted, forgotten = capsys.readouterr().err.splitlines()
    assert re.search(r" warning footlights.process: UserWarning at test_serve.py:\d+$", quoted)
    assert re.search(r": RuntimeWarning at test_serve.py:\d+ \(a coroutine was not awaited: write await ", forgotten)


# -- as a process


async def test_without_arguments_it_is_a_tavern_and_the_line_that_it_prints_works(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    async with open_server(tmp_path, "--ws-port", "0", "--http-port", "0") as server:
        assert f"  Ledger     {tmp_path}/footlights.ledger (new)\n" in server.shown
        line = server.shown.splitlines()[-1]
        shell = await trio.lowlevel.open_process(["sh", "-c", f"exec 2>&1; {line}"], stdout=subprocess.PIPE)
        assert shell.stdout is not None
        said = b""
        with trio.fail_after(60):
            while b'"commit_final"' not in said:
                more = await shell.stdout.receive_some()
                assert more, said
                said += more
            shell.terminate()
            server.process.send_signal(signal.SIGTERM)
            assert await server.ended() == 0
            await shell.wait()
        await shell.stdout.aclose()
        assert b'"turn_final"' in said
        assert server.complaints.read_text() == ""


async def test_the_ledger_of_another_game_is_named_as_that_and_no_patch_is_offered(tmp_path: Path) -> None:
    (tmp_path / "my_inn.py").write_text("def odo(prompt): return []")
    file, model = tmp_path / "game.toml", '[models.odo]\nkind = "scripted"\nscript = "my_inn:odo"\n[world]\n'
    for world in ("purse = 20\nboat = 1", "purse = 5\niron = 3\nshoes = 0"):
        file.write_text(f"{model}{world}")
        async with open_server(tmp_path, "--config", "game.toml", "--ws-port", "0", "--http-port", "0") as server:
            warned = server.complaints.read_text()
    assert "game.ledger may be the ledger of another game" in warned
    assert "world patch" not in warned


async def test_an_edited_world_that_the_ledger_does_not_use_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "my_inn.py").write_text("def odo(prompt): return []")
    file, model = tmp_path / "game.toml", '[models.odo]\nkind = "scripted"\nscript = "my_inn:odo"\n[world]\n'
    warned: list[str] = []
    for world in ("purse = 20", "purse = 20", "purse = 50"):
        file.write_text(f"{model}{world}")
        async with open_server(tmp_path, "--config", "game.toml", "--ws-port", "0", "--http-port", "0") as server:
            assert (await request(server.http_port, "GET", "/v1/world"))[1] == {"world": {"purse": 20}}
            warned.append(server.complaints.read_text())
    assert warned[:2] == ["", ""]
    assert " warning footlights.worlds: The initial world of the settings ([world], cast.world_file or " in warned[2]
    assert "is not used: game.ledger took in another one" in warned[2]
    assert "use another ledger (--ledger PATH)" in warned[2]
    assert "50" not in warned[2].partition(" warning ")[2]
    command = 'footlights world patch --ledger game.ledger --config game.toml --why "..."'
    assert command in warned[2]
    checked = await trio.run_process(
        [*FOOTLIGHTS, "serve", "--check"], cwd=tmp_path, capture_stdout=True, capture_stderr=True
    )
    assert checked.stdout == b"game.toml: Configuration OK.\n"
    assert command in checked.stderr.decode()
    patched = await trio.run_process([*FOOTLIGHTS, *shlex.split(command)[1:]], cwd=tmp_path, capture_stdout=True)
    assert patched.stdout.startswith(b"committed ")
    async with open_server(tmp_path, "--config", "game.toml", "--ws-port", "0", "--http-port", "0") as server:
        assert (await request(server.http_port, "GET", "/v1/world"))[1] == {"world": {"purse": 50}}
        assert server.complaints.read_text() == warned[2]  # nothing was added
    checked = await trio.run_process([*FOOTLIGHTS, "serve", "--check"], cwd=tmp_path, capture_stderr=True)
    assert checked.stderr == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_is_announced_and_after_a_restart_nothing_is_repeated(
    tmp_path: Path, number: signal.Signals
) -> None:
    settings = ("--config", str(write_game(tmp_path)), "--grace", "0")
    async with open_server(tmp_path, *settings) as server:
        async with open_peer(server.ws_port) as peer:
            session_id = await peer.start()
            turn_id = (await peer.ask("begin_turn", session_id=session_id, input="stay"))["turn_id"]
            await peer.take_until(EventType.TOKEN_DELTA, turn_id)
            server.process.send_signal(number)
            events = await peer.take_until(EventType.COMMIT_FINAL, turn_id)
        assert await server.ended() == 0
        assert server.complaints.read_text() == ""
        assert server.process.stdout is not None
        assert (await server.process.stdout.receive_some()).decode().splitlines() == [
            "Footlights closes. 1 turn runs, and may do so for 0 s. Ctrl-C again ends it at once.",
            "Footlights is closed.",
        ]
    assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
    seen = {turn_id: events[-2].seq}
    async with open_server(tmp_path, *settings) as server, open_peer(server.ws_port, after=seen) as peer:
        assert f"  Ledger     {tmp_path}/game.ledger (continued)\n" in server.shown
        await peer.ask("subscribe", session_id=session_id, after=seen, terminal_seen=[turn_id])
        (last,) = await peer.take_until(EventType.COMMIT_FINAL, turn_id)
        assert last.payload == evolve(only(events, CommitFinal), dropped_seq_ranges=last.payload.dropped_seq_ranges)
        assert only(await peer.take_turn(session_id, "Hello again"), TurnFinal).text == "Good evening. Hello again"


async def test_after_a_kill_the_turn_is_reported_as_cut_short(tmp_path: Path) -> None:
    settings = ("--config", str(write_game(tmp_path)))
    async with open_server(tmp_path, *settings) as server, open_peer(server.ws_port) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="stay"))["turn_id"]
        events = await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        server.process.kill()
        with pytest.raises(ConnectionClosed):
            await peer.receive()
    seen = {turn_id: events[-1].seq}
    async with open_server(tmp_path, *settings) as server, open_peer(server.ws_port, after=seen) as peer:
        await peer.ask("subscribe", session_id=session_id, after=seen)
        events += await peer.take_until(EventType.COMMIT_FINAL, turn_id)
    assert laws.check(events) == []
    assert only(events, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED


async def test_a_subscriber_over_http_gets_one_end_of_every_turn_however_often_the_server_is_killed(
    tmp_path: Path,
) -> None:
    settings = ("--config", str(write_game(tmp_path)))
    events: list[StreamEvent] = []
    last_event_id: str | None = None
    session_id = ""
    killed_at = (EventType.TURN_ACCEPTED, EventType.TOKEN_DELTA, EventType.TURN_FINAL, EventType.COMMIT_FINAL)
    for last in (*killed_at, None):
        async with open_server(tmp_path, *settings) as server, httpx2.AsyncClient() as client:
            client.base_url = f"http://127.0.0.1:{server.http_port}"
            if not session_id:
                session_id = taken(await client.post("/v1/sessions"), 201)["session_id"]
            guest = HttpGuest(client, session_id)
            async with guest.follow(last_event_id) as stream:
                before = {event.turn_id for event in events}
                said = "stay" if last is EventType.TOKEN_DELTA else "A room?"
                turn_id = await guest.begin_turn(said)
                async for event in stream:
                    events.append(event)
                    last_event_id = stream.last_event_id
                    if event.turn_id == turn_id and event.event_type in (last, EventType.COMMIT_FINAL):
                        break
                server.process.kill()
        assert turn_id not in before
    assert laws.check(events) == []
    ends = Counter(event.turn_id for event in events if event.event_type in TERMINAL)
    commits = Counter(event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL)
    assert ends == commits == Counter({event.turn_id for event in events})
    assert len(ends) == len(killed_at) + 1
    assert any(each.reason is InterruptReason.RUNTIME_RESTART for each in payloads(events, TurnInterrupted))


async def test_a_client_that_names_an_unseen_turn_after_a_kill_gets_its_end_over_http(
    tmp_path: Path,
) -> None:
    settings = ("--config", str(write_game(tmp_path)))
    async with open_server(tmp_path, *settings) as server, httpx2.AsyncClient() as client:
        client.base_url = f"http://127.0.0.1:{server.http_port}"
        session_id = taken(await client.post("/v1/sessions"), 201)["session_id"]
        guest = HttpGuest(client, session_id)
        async with guest.follow() as stream:
            last_event_id = stream.last_event_id
        turn_id = await guest.begin_turn("stay")
        server.process.kill()
    async with open_server(tmp_path, *settings) as server, httpx2.AsyncClient() as client:
        client.base_url = f"http://127.0.0.1:{server.http_port}"
        guest = HttpGuest(client, session_id)
        async with guest.follow(last_event_id, f"?begun={turn_id}") as stream:
            events = [event async for event in stream.until_commit(turn_id)]
    assert laws.check(events) == []
    assert only(events, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED


async def test_a_signal_ends_it_with_0_whatever_outlives_the_grace(tmp_path: Path) -> None:
    settings = ("--config", str(write_game(tmp_path)), "--grace", "0")
    async with open_server(tmp_path, *settings) as server, trio.open_nursery() as nursery:
        port, stay = server.http_port, {"message": "stay"}
        _, started = await request(port, "POST", "/v1/sessions")
        session = f"/v1/sessions/{started['session_id']}"
        await request(port, "GET", f"{session}/chat")
        await request(port, "GET", f"/api/mission-board/{started['session_id']}/events")
        _, begun = await request(port, "POST", f"{session}/turns", {"input": "stay"})
        nursery.start_soon(request, port, "GET", f"{session}/events")
        nursery.start_soon(request, port, "POST", f"{session}/turns/{begun['turn_id']}/finalize")
        for run in (stay, {**stay, "stream": False}, {**stay, "session_id": "inn"}):
            nursery.start_soon(request, port, "POST", "/api/chat", run)
        async with (
            connect_to(server.ws_port, "/observe/default"),
            connect_to(server.ws_port, "/perturb/default") as talker,
        ):
            await talker.send("stay")
            while b'open_turns{state="performing"} 5.0' not in (await request(port, "GET", "/metrics"))[1]:
                await trio.lowlevel.checkpoint()
            server.process.send_signal(signal.SIGTERM)
            assert await server.ended() == 0
        assert server.complaints.read_text() == ""


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    settings = ("--config", str(write_game(tmp_path)), "--grace", "3600")
    async with open_server(tmp_path, *settings) as server, open_peer(server.ws_port) as peer:
        session_id = await peer.start()
        turn_id = (await peer.ask("begin_turn", session_id=session_id, input="stay"))["turn_id"]
        await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        server.process.send_signal(signal.SIGINT)
        while (await peer.reply(await peer.send("start")))["ok"]:
            await trio.lowlevel.checkpoint()
        server.process.send_signal(signal.SIGINT)
        assert await server.ended() == -signal.SIGINT


async def test_two_servers_do_not_share_a_ledger(tmp_path: Path) -> None:
    settings = ("--config", str(write_game(tmp_path)))
    async with open_server(tmp_path, *settings) as server:
        done = await trio.run_process(
            [*FOOTLIGHTS, "serve", *settings], cwd=tmp_path, capture_stdout=True, capture_stderr=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.decode().splitlines() == [
            f"{tmp_path}/game.ledger is open in another stage. One stage at a time may open it."
        ]
        assert (await request(server.http_port, "GET", "/healthz"))[0] == 200
