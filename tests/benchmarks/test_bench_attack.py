"""Attack suite: finds servers that stall, leak or starve others, and attacks only this machine."""

from __future__ import annotations

import json
import os
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Message, Ping, RejectConnection, Request
from wsproto.utilities import RemoteProtocolError

from footlights_bench.attack import fairness
from footlights_bench.attack.cases.case import run_case
from footlights_bench.attack.cases.websocket import WEBSOCKET_CASES
from footlights_bench.attack.floods.bounds import FloodReport
from footlights_bench.attack.floods.run import run_flood
from footlights_bench.attack.privacy import sessions
from footlights_bench.attack.results import Result, exit_code, print_results
from footlights_bench.attack.suite import ATTACKS, NoWatch, chosen
from footlights_bench.attack.target import Address, CannotAttack, Target, loopback_address, target_from_json
from tests.kit.command import footlights

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

FLOOD = "flood/refused-small"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
MOST_LEAKED = 40


class ToyServer:
    """A server with one of three planted defects; without any, a client that sends nonsense is slowed down.

    `stall` seconds are lost once, `leak` bytes are kept of each refused frame, and the first connections take all
    `places`.
    """

    def __init__(self, *, stall: float = 0, leak: int = 0, places: int | None = None) -> None:
        self._stall = stall
        self._leak = leak
        self._places = places
        self._leaked: list[bytes] = []

    async def speak_websocket(self, stream: trio.SocketStream) -> None:
        if self._places is not None:
            self._places -= 1
        try:
            await self._talk(stream, WSConnection(ConnectionType.SERVER))
        except (trio.BrokenResourceError, RemoteProtocolError):
            pass
        finally:
            if self._places is not None:
                self._places += 1

    async def speak_http(self, stream: trio.SocketStream) -> None:
        try:
            await stream.receive_some()
            await stream.send_all(OK)
            await stream.aclose()
        except trio.BrokenResourceError:
            pass

    async def _talk(self, stream: trio.SocketStream, protocol: WSConnection) -> None:
        async for data in stream:
            protocol.receive_data(bytes(data))
            for event in protocol.events():
                match event:
                    case Request():
                        full = self._places is not None and self._places < 0
                        answer = RejectConnection(status_code=503) if full else AcceptConnection("footlights.v1")
                        await stream.send_all(protocol.send(answer))
                    case Message(data=str() as text):
                        await self._answer(stream, protocol, text)
                    case Ping():
                        await stream.send_all(protocol.send(event.response()))
                    case CloseConnection():
                        await stream.send_all(protocol.send(event.response()))
                        return
                    case _:
                        pass

    async def _answer(self, stream: trio.SocketStream, protocol: WSConnection, text: str) -> None:
        if not text.startswith("{"):
            await self._refuse()
            return
        command = json.loads(text)
        results = {
            "start": {"session_id": "s1"},
            "begin_turn": {"turn_id": "t1"},
            "finalize": {"commit_outcome": "ok"},
        }
        commit = {"event_type": "commit_final", "turn_id": "t1", "payload": {"commit_outcome": "ok"}}
        replies = [{"reply": command["id"], "ok": True, "result": results.get(command["op"], {})}]
        replies += [commit] if command["op"] == "begin_turn" else []
        await stream.send_all(b"".join(protocol.send(Message(json.dumps(reply))) for reply in replies))

    async def _refuse(self) -> None:
        stall, self._stall = self._stall, 0.0
        time.sleep(stall)  # noqa: ASYNC251
        if len(self._leaked) < MOST_LEAKED:
            self._leaked.append(b"x" * self._leak)
        await trio.sleep(0.05)


@asynccontextmanager
async def toy(server: ToyServer) -> AsyncGenerator[Target]:
    async with trio.open_nursery() as nursery:

        async def listen(handler: Callable[[trio.SocketStream], Awaitable[None]]) -> Address:
            listeners = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
            return Address(*listeners[0].socket.getsockname())

        websocket, http = await listen(server.speak_websocket), await listen(server.speak_http)
        yield Target(websocket, http, token="the-first-token", other_token="the-other-token", pid=os.getpid())
        nursery.cancel_scope.cancel()


async def flooded(server: ToyServer) -> Result:
    async with toy(server) as target:
        return await run_flood(FLOOD, target, NoWatch(), quiet=0.2, seconds=0.6)


async def test_a_server_that_stalls_is_found() -> None:
    result = await flooded(ToyServer(stall=1.0))
    assert result.verdict == "FAILED"
    assert result.failures[0].startswith("Others' ping p99 went from")


async def test_a_server_that_leaks_is_found() -> None:
    result = await flooded(ToyServer(leak=10_000_000))
    # How fast it is on this machine now is no matter of a test, and it has no other defect.
    others = [why for why in result.failures if not why.startswith("Others' ")]
    assert others
    assert all(why.startswith("The server's memory grew") for why in others)
    assert "after its warm-up" in others[0]


async def test_a_server_that_starves_the_second_owner_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "MOST", 20)
    async with toy(ToyServer(places=10)) as target:
        result = await fairness.websocket_connections("fairness/websocket-connections", target)
    (why,) = result.failures
    assert why.startswith("8 of 8 times the second owner was not served:")
    assert why.endswith("answered a handshake with 503.")


async def test_a_server_with_room_for_both_owners_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "MOST", 20)
    async with toy(ToyServer()) as target:
        result = await fairness.websocket_connections("fairness/websocket-connections", target)
    assert (result.verdict, result.measured) == ("ok", "8 served; the other owner took 20, and reached no limit")


async def test_a_server_without_access_control_is_found() -> None:
    async with toy(ToyServer()) as target:
        names = ("websocket/accept-key", "websocket/unmasked", "websocket/no-token")
        verdicts = [(await run_case(name, WEBSOCKET_CASES[name], target)).verdict for name in names]
        private = await sessions("privacy/sessions", target)
    assert verdicts == ["ok", "ok", "FAILED"]
    assert "let another owner in" in private.failures[0]


def report(**changed: Any) -> FloodReport:
    quiet = {"pings": [1.0] * 100, "http": [2.0], "late": [0.1], "turns": {"ok": 3}, "problems": {}}
    facts: dict[str, Any] = {
        "quiet": quiet,
        "flooded": quiet,
        "seconds": 1.0,
        "quiet_resident": 100,
        "resident": [100, 110, 120, 110, 110, 120, 120, 120, 130, 132],
        "waited": 0.0,
        "logged": 2_000,
        "ended": None,
    }
    flooded = {name: changed.pop(name) for name in set(changed) & set(quiet)}
    return FloodReport(**{**facts, "flooded": {**quiet, **flooded}, **changed})


def test_a_flood_within_every_bound_fails_nothing() -> None:
    assert report(pings=[25.0] * 100, http=[100.0]).failures() == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"pings": [1.0] * 98 + [26.0] * 2}, "Others' ping p99 went from 1.0 to 26.0 ms"),
        ({"pings": []}, "Others' ping p99 went from 1.0 to inf ms"),
        ({"http": [101.0]}, "Others' HTTP requests went from 2.0 to 101.0 ms"),
        ({"turns": {}}, "No turn of the bystander was committed."),
        ({"turns": {"ok": 1, "fail_closed": 2}}, "2 turns of the bystander got fail_closed."),
        ({"problems": {"its connection was closed": 1}}, "The bystander met this 1 times: its connection was closed."),
        ({"resident": [100, 100, 100, 111]}, "by 11 %; 10 % are allowed."),
        ({"resident": [210] * 10}, "twice as much is allowed."),
        ({"logged": 2_001}, "The server logged 2,001 bytes; 2,000 are allowed."),
        ({"ended": "The server's process ended with -9."}, "The server's process ended with -9."),
    ],
)
def test_a_flood_that_breaks_one_bound_says_which(changed: dict[str, Any], why: str) -> None:
    (failure,) = report(**changed).failures()
    assert why in failure


def test_a_slow_quiet_server_has_a_wider_bound() -> None:
    quiet = {"pings": [10.0], "http": [2.0], "late": [0.0], "turns": {}, "problems": {}}
    assert report(quiet=quiet, pings=[50.0]).failures() == []
    assert report(quiet=quiet, pings=[51.0]).failures() != []


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "0.0.0.0", "game.example", "127.0.0.1.nip.example", "[2001:db8::1]", "[::]"]
)
def test_only_loopback_addresses_are_attacked(host: str) -> None:
    with pytest.raises(CannotAttack, match="is not a loopback address"):
        loopback_address(f"ws://{host}:7600", scheme="ws")


@pytest.mark.parametrize(
    ("url", "host"),
    [("127.0.0.1", "127.0.0.1"), ("127.8.8.8", "127.8.8.8"), ("localhost", "127.0.0.1"), ("[::1]", "::1")],
)
def test_every_loopback_address_may_be_attacked(url: str, host: str) -> None:
    assert loopback_address(f"ws://{url}:7600/v1", scheme="ws") == Address(host, 7600)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--ws-url", "ws://192.0.2.1:1", "--http-url", "http://127.0.0.1:1"], "192.0.2.1 is not a loopback address."),
        (["--ws-url", "ws://127.0.0.1:1"], "both --ws-url and --http-url"),
        (["--pid", "1"], "Tokens and --pid are for a server that is named"),
        (["--token", "a-token-of-mine"], "Tokens and --pid are for a server that is named"),
        (["--only", "dances"], "There is no attack dances."),
    ],
)
def test_the_command_refuses_what_it_cannot_attack(
    arguments: list[str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "bench", "attack", *arguments) == 2
    assert why in capsys.readouterr().err


def test_attacks_are_chosen_by_name_and_by_family() -> None:
    assert chosen([]) == list(ATTACKS)
    assert chosen(["flood/pongs"]) == ["flood/pongs"]
    assert chosen(["slow", "flood/pongs"]) == ["flood/pongs", *(name for name in ATTACKS if name.startswith("slow/"))]


def test_a_target_can_be_sent_to_another_process() -> None:
    target = Target(Address("127.0.0.1", 1), Address("::1", 2), "a", None, pid=3, slow_persona="analyst")
    assert target_from_json(json.loads(json.dumps(target.to_json()))) == target


def test_a_failure_says_why_and_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    results = [
        Result("flood/a", "p99 < 25 ms", "p99 1 ms"),
        Result("flood/b", "p99 < 25 ms", "p99 9 s", ["It stalled."]),
    ]
    print_results(results, "footlights bench attack --quick")
    printed = capsys.readouterr().out
    assert "flood/b FAILED\n  It stalled.\n  Again: footlights bench attack --quick --only flood/b\n" in printed
    assert "2 attacks: 1 ok, 1 FAILED, 0 skipped." in printed
    assert [exit_code(results), exit_code(results[:1])] == [1, 0]
