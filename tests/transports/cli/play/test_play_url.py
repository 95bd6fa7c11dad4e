"""`footlights play --url`: the same conversation with a session on a server."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import laws, open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.cli.play.conversation import converse
from footlights_transports.cli.play.games import open_remote_game
from footlights_transports.cli.screen import Line, Screen
from tests.kit.command import footlights
from tests.kit.peers.js_peer import open_house
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from footlights import Cast
    from footlights_transports.cli.screen import Piece

PLAY = (sys.executable, "-m", "footlights_transports", "play")
TOKEN = "a-token-of-some-length"


def tavern() -> Cast:
    return tavern_cast(pace=0, load_seconds=0, tool_seconds=0)


async def played(said: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    with trio.fail_after(60):
        return await trio.run_process(
            [*PLAY, *arguments],
            stdin=said.encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, **environ},
        )


async def test_a_server_is_played_like_a_game_of_this_process() -> None:
    async with open_house(tavern()) as house:
        done = await played("Hello\nI'll take the attic\n", "--url", f"ws://127.0.0.1:{house.port}")
        assert house.stage.world["rooms"]["attic"]["guest"] == "the traveller"
        assert house.stage.open_sessions == 0
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "> Hello"
    assert sum(line.startswith("  ✓ committed c-") for line in lines) == 2


async def test_the_persona_of_a_server_has_its_name() -> None:
    async with open_house(tavern()) as house:
        done = await played("Hello\n", "--url", f"ws://127.0.0.1:{house.port}")
    assert "Innkeeper: " in done.stdout.decode()


async def test_a_server_shows_what_a_turn_changed_and_why_and_its_world() -> None:
    async with open_house(tavern()) as house:
        said = "I'll take the attic\n/why\nI want to buy the lantern\ny\n/world\n"
        done = await played(said, "--url", f"ws://127.0.0.1:{house.port}", "--persona", "innkeeper")
    lines = done.stdout.decode().splitlines()
    assert "  · asked for: tool_result of rent_room" in lines
    assert lines.count("  · rooms, attic, guest: the traveller; purse: 18; till: 33") == 2
    assert "  · purse: 3; till: 48; lantern: the traveller" in lines
    assert "  lantern: the traveller" in lines[lines.index("> /world") :]


async def test_a_refusal_of_the_server_is_shown_and_the_play_goes_on() -> None:
    policy = AccessPolicy(limits=WireLimits(commands_per_second=1e-6, command_burst=4))
    async with open_house(tavern(), policy=policy) as house:
        done = await played("Hello\n/world\n/why\nHello\n", "--url", f"ws://127.0.0.1:{house.port}")
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode().count("  ✗ rate_limited: ") == 2


async def test_a_script_plays_on_a_server_and_its_output_is_lawful() -> None:
    async with open_house(tavern()) as house:
        said = '{"say": "Hello"}\n{"say": "Any rumours?"}\n{"cancel": true}\n'
        done = await played(said, "--json", "--url", f"ws://127.0.0.1:{house.port}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert laws.check_jsonl(done.stdout.splitlines(), complete=True) == []


async def test_a_token_comes_from_the_environment() -> None:
    async with open_house(tavern(), policy=AccessPolicy({"mira": TOKEN})) as house:
        url = f"ws://127.0.0.1:{house.port}"
        refused = await played("Hello\n", "--url", url)
        done = await played("Hello\n", "--url", url, "--token-env", "MY_TOKEN", MY_TOKEN=TOKEN)
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
    assert done.returncode == 0
    assert b"committed" in done.stdout


async def test_a_persona_can_be_chosen_and_gives_the_name() -> None:
    async with open_house(tavern()) as house:
        done = await played("Hello\n", "--url", f"ws://127.0.0.1:{house.port}", "--persona", "analyst")
    assert "Analyst: " in done.stdout.decode()


async def test_a_server_that_goes_away_ends_the_play_with_one_sentence() -> None:
    done = await played("Hello\n", "--url", "ws://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"No server answers at that address.\n"


class Restarted:
    """A server that goes away when the player is asked for a line, and comes back when `lost` is called."""

    def __init__(self) -> None:
        self.port = 0
        self._is_lost = trio.Event()
        self._serving = trio.CancelScope()
        self._is_gone = trio.Event()
        self._lines = ["Hello"]
        self.lost = self._is_lost.set

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        with self._serving:
            await self._serve(task_status)
        self._is_gone.set()
        await self._is_lost.wait()
        await self._serve(trio.TASK_STATUS_IGNORED)

    async def _serve(self, task_status: trio.TaskStatus[None]) -> None:
        async with open_stage(tavern()) as stage, trio.open_nursery() as nursery:
            serve = partial(serve_ws, SessionAccess(stage), host="127.0.0.1", port=self.port)
            self.port = (await nursery.start(serve)).port
            task_status.started()

    async def receive(self, _prompt: str) -> str | None:
        self._serving.cancel()
        await self._is_gone.wait()
        return self._lines.pop() if self._lines else None


class Notes(Screen):
    def __init__(self, lost: Callable[[], None]) -> None:
        super().__init__()
        self.shown: list[str] = []
        self._lost = lost

    def show(self, piece: Piece) -> None:
        if isinstance(piece, Line):
            self.shown.append(piece.text)
            if "connection lost" in piece.text:
                self._lost()


async def test_a_lost_connection_is_told_at_once_and_so_is_the_next_one() -> None:
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            house = Restarted()
            await nursery.start(house.run)
            screen = Notes(house.lost)
            async with open_remote_game(f"ws://127.0.0.1:{house.port}") as game:
                assert await converse(game, house, screen) == 1  # the new server does not know the session
            nursery.cancel_scope.cancel()
    assert screen.shown[:2] == ["  ✗ connection lost, trying again …", "  ✓ connected again"]
    assert len([each for each in screen.shown if "connect" in each]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--url", "ws://127.0.0.1:9", "--config", "game.toml"),
        ("--config", "game.toml", "--model", "innkeeper"),
        ("--token-env", "X"),
        ("--url", "ws://127.0.0.1:9", "--token-env", "NOT_SET_ANYWHERE"),
        ("--url", "ws://127.0.0.1:9", "--trace", "traces"),
        ("--url", "http://127.0.0.1:9"),
    ],
)
def test_options_that_contradict_each_other_are_refused_in_one_sentence(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert footlights(monkeypatch, "play", *arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
