"""Many worlds in one server: each has a stage and a ledger of its own, and all share the limits of their users."""

from __future__ import annotations

import logging
import sqlite3
import sys
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve
from trio_websocket import ConnectionRejected

from footlights import CommitFinal, CommitOutcome, EventType, InterruptReason, TurnFinal, TurnInterrupted
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.failures import leaves
from footlights.testing import only, payloads
from footlights_actors import Say, ScriptedModel
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.server.serve import _allow_open_files
from tests.kit.peers.ws_peer import HeldModel
from tests.kit.served import open_peer
from tests.kit.worlds import configured, open_worlds

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "a-token-of-sixteen-or-more"
TALKING = ScriptedModel(lambda _: (Say("Good evening."),))


async def rejection(port: int, *, token: str | None = None, world: str = "") -> int:
    """The status with which a handshake is refused."""
    with pytest.RaisesGroup(ConnectionRejected, flatten_subgroups=True, allow_unwrapped=True) as refused:
        async with open_peer(port, token=token, world=world):
            pass
    (error,) = leaves(refused.value)
    assert isinstance(error, ConnectionRejected)
    return error.status_code


async def test_worlds_share_nothing_but_the_server(tmp_path: Path) -> None:
    config = configured(tmp_path, TALKING, worlds={"names": ["harbour", "castle"]})
    async with open_worlds(config) as hosted:
        sessions: dict[str, str] = {}
        for world in ("", "harbour", "castle"):
            async with open_peer(hosted.ws_port, world=world) as peer:
                sessions[world] = await peer.start()
                assert only(await peer.take_turn(sessions[world], "Hello"), TurnFinal).text == "Good evening."
        assert len(set(sessions.values())) == 1, "each world counts for itself"
        assert hosted.names == {"main", "harbour", "castle"}
        status, told = await hosted.ask("GET", "/w/castle/v1/sessions/nobody/ledger")
        assert (status, told["error"]["code"]) == (404, "unknown_session")
        _, metrics = await hosted.ask("GET", "/metrics")
        assert b'footlights_turns_total{outcome="ok"} 3.0' in metrics
        assert b"footlights_worlds 3.0" in metrics
    for ledger in (tmp_path / "inn.ledger", *(tmp_path / "inn.worlds" / f"{each}.ledger" for each in sessions if each)):
        with sqlite3.connect(ledger) as opened:
            assert opened.execute("SELECT count(*) FROM commits").fetchone() == (1,)
        opened.close()


async def test_the_main_world_has_a_name_too(tmp_path: Path) -> None:
    async with open_worlds(configured(tmp_path, TALKING, worlds={})) as hosted:
        _, begun = await hosted.ask("POST", "/v1/sessions")
        status, _ = await hosted.ask("POST", f"/w/main/v1/sessions/{begun['session_id']}/turns", {"input": "Hello"})
        assert status == 202
        assert hosted.names == {"main"}
    assert not (tmp_path / "inn.worlds").exists()


@pytest.mark.parametrize(
    ("method", "path", "refused"),
    [
        ("POST", "/w/nowhere/v1/sessions", (404, "unknown_world")),
        ("GET", "/w/nowhere/v1/world", (404, "unknown_world")),
        ("POST", "/w/..%2F..%2Fetc/v1/sessions", (400, "invalid_world")),
        ("POST", "/w/Harbour/v1/sessions", (400, "invalid_world")),
        ("GET", "/w//livez", (400, "invalid_world")),
        ("GET", "/w/harbour/readyz", (404, "unknown_world")),
        ("GET", "/w/harbour", (404, "invalid_command")),
    ],
)
async def test_a_world_that_is_none_is_refused_before_anything_is_written(
    tmp_path: Path, method: str, path: str, refused: tuple[int, str]
) -> None:
    async with open_worlds(configured(tmp_path, TALKING, worlds={"names": ["harbour"]})) as hosted:
        status, told = await hosted.ask(method, path)
        assert (status, told["error"]["code"]) == refused
        assert await rejection(hosted.ws_port, world="nowhere") == 404
    ledgers = {each.name for each in tmp_path.glob("**/*.ledger")}  # noqa: ASYNC240 - a test
    assert ledgers <= {"inn.ledger", "harbour.ledger"}


async def test_without_a_token_no_world_is_opened(tmp_path: Path) -> None:
    config = configured(tmp_path, TALKING, worlds={"max_on_demand": 10})
    config = evolve(config, policy=AccessPolicy({"ann": TOKEN}))
    async with open_worlds(config) as hosted:
        assert (await hosted.ask("POST", "/w/arena/v1/sessions"))[0] == 401
        assert await rejection(hosted.ws_port, world="arena") == 401
        assert hosted.names == {"main"}
        assert (await hosted.ask("POST", "/w/arena/v1/sessions", token=TOKEN))[0] == 201
        assert hosted.names == {"main", "arena"}


async def test_clients_create_worlds_within_the_limit_and_reading_creates_none(tmp_path: Path) -> None:
    config = configured(tmp_path, TALKING, worlds={"max_on_demand": 2, "names": ["harbour"]})
    async with open_worlds(config) as hosted:
        assert (await hosted.ask("GET", "/w/arena-1/v1/world"))[0] == 404
        for world in ("arena-1", "arena-2", "harbour"):
            assert (await hosted.ask("POST", f"/w/{world}/v1/sessions"))[0] == 201
        status, told = await hosted.ask("POST", "/w/arena-3/v1/sessions")
        assert (status, told["error"]["code"]) == (503, "busy")
        assert "worlds.max_on_demand" in told["error"]["message"]
        assert hosted.names == {"main", "arena-1", "arena-2", "harbour"}
    async with open_worlds(config) as hosted:
        assert (await hosted.ask("GET", "/w/arena-1/v1/world"))[0] == 200, "it was created once"


async def test_no_more_worlds_are_open_at_once_than_allowed(tmp_path: Path) -> None:
    config = configured(tmp_path, TALKING, worlds={"max_on_demand": 9, "max_open": 1})
    async with open_worlds(config) as hosted:
        assert (await hosted.ask("POST", "/w/one/v1/sessions"))[0] == 201
        status, told = await hosted.ask("POST", "/w/two/v1/sessions")
        assert (status, told["error"]["message"]) == (503, "There are 1 open worlds (worlds.max_open).")
        assert (await hosted.ask("POST", "/v1/sessions"))[0] == 201


async def test_a_user_has_one_limit_in_all_worlds(tmp_path: Path) -> None:
    limits = WireLimits(max_sessions_per_user=2, max_open_turns_per_user=1, max_connections_per_user=2)
    config = configured(tmp_path, HeldModel(), worlds={"names": ["harbour"]})
    config = evolve(config, policy=AccessPolicy({"ann": TOKEN}, limits=limits))
    async with (
        open_worlds(config) as hosted,
        open_peer(hosted.ws_port, token=TOKEN) as inn,
        open_peer(hosted.ws_port, token=TOKEN, world="harbour") as harbour,
    ):
        assert await rejection(hosted.ws_port, token=TOKEN, world="harbour") == 503
        here, there = await inn.start(), await harbour.start()
        assert await harbour.refusal("start") == "busy"
        await inn.ask("begin_turn", session_id=here, input="Hello")
        assert await harbour.refusal("begin_turn", session_id=there, input="Hello") == "busy"
        await inn.ask("close", session_id=here)
        await harbour.ask("begin_turn", session_id=there, input="Hello")


async def test_a_world_that_nobody_uses_is_closed_and_comes_back(tmp_path: Path) -> None:
    # In real time, because the server and its clients are: a hundredth of a second.
    config = configured(tmp_path, TALKING, worlds={"names": ["harbour"], "idle_seconds": 0.01})
    async with open_worlds(config) as hosted:
        async with open_peer(hosted.ws_port, world="harbour") as peer:
            session_id = await peer.start()
            turn = await peer.take_turn(session_id, "Hello")
            epoch = hosted.world("harbour").access.stage.epoch
            await peer.ask("close", session_id=session_id)
            await trio.sleep(0.05)
            assert hosted.names == {"main", "harbour"}, "a client is connected"
        with trio.fail_after(10):
            while "harbour" in hosted.names:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.01)
        seen = {turn[-1].turn_id: turn[-2].seq}
        async with open_peer(hosted.ws_port, world="harbour", after=seen) as peer:
            await peer.ask("subscribe", session_id=session_id, after=seen, terminal_seen=list(seen))
            (last,) = await peer.take_until(EventType.COMMIT_FINAL, turn[-1].turn_id)
            assert payloads([last], CommitFinal)[0].commit_digest == only(turn, CommitFinal).commit_digest
            assert hosted.world("harbour").access.stage.epoch == epoch + 1


async def test_a_world_whose_ledger_fails_harms_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "inn.worlds").mkdir()
    (tmp_path / "inn.worlds" / "harbour.ledger").write_text("This is a shopping list, and no ledger at all.")
    config = configured(tmp_path, TALKING, worlds={"names": ["harbour", "castle"]})
    async with open_worlds(config) as hosted:
        for _ in range(2):
            status, told = await hosted.ask("POST", "/w/harbour/v1/sessions")
            assert (status, told["error"]["code"]) == (503, "busy")
            assert told["error"]["message"].startswith("This world cannot be opened now: ledger_")
        for path in ("/w/castle/v1/sessions", "/v1/sessions"):
            assert (await hosted.ask("POST", path))[0] == 201
        assert (await hosted.ask("GET", "/readyz"))[0] == (await hosted.ask("GET", "/w/castle/readyz"))[0] == 200
    assert [each.getMessage()[:24] for each in caplog.records if each.levelno >= logging.ERROR] == [
        "the world harbour failed"
    ] * 2


async def test_the_stop_signal_settles_the_turns_of_all_worlds(tmp_path: Path) -> None:
    config = configured(tmp_path, HeldModel(), worlds={"names": ["harbour"]})
    async with (
        open_worlds(config) as hosted,
        open_peer(hosted.ws_port) as inn,
        open_peer(hosted.ws_port, world="harbour") as harbour,
    ):
        for peer in (inn, harbour):
            session_id = await peer.start()
            turn_id = (await peer.ask("begin_turn", session_id=session_id, input="Hello"))["turn_id"]
            await peer.take_until(EventType.TOKEN_DELTA, turn_id)
        assert hosted.worlds.open_turns == 2
        hosted.stop.set()
        for peer in (inn, harbour):
            events = await peer.take_until(EventType.COMMIT_FINAL, peer.events[0].turn_id)
            assert only(events, TurnInterrupted).reason is InterruptReason.SHUTDOWN
            assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
    for ledger in (tmp_path / "inn.ledger", tmp_path / "inn.worlds" / "harbour.ledger"):
        with SqliteReader(ledger) as reader:
            assert audit(reader).ok


async def test_many_who_name_a_closed_world_at_once_open_it_once(tmp_path: Path) -> None:
    config = configured(tmp_path, TALKING, worlds={"names": ["harbour"]})
    async with open_worlds(config) as hosted, trio.open_nursery() as nursery:
        statuses: list[int] = []

        async def start() -> None:
            statuses.append((await hosted.ask("POST", "/w/harbour/v1/sessions"))[0])

        for _ in range(20):
            nursery.start_soon(start)
        while len(statuses) < 20:
            await trio.lowlevel.checkpoint()
        assert set(statuses) == {201}
        assert hosted.world("harbour").access.stage.epoch == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_server_of_many_worlds_may_open_as_many_files_as_the_system_allows() -> None:
    import resource

    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before, 512), most))
        _allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
