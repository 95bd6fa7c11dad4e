"""Development mode: `footlights play` and `footlights serve --dev` print where the host's own code failed."""

from __future__ import annotations

import logging
import re
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from footlights import EventType
from footlights.failures import report
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports.cli.development import development_mode
from footlights_transports.cli.play.games import open_local_game
from footlights_transports.cli.play.standard_io import Opening, play_here
from tests.kit.command import footlights
from tests.kit.served import open_peer, open_server

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Prompt
    from footlights_actors import Line

GAME = """
from footlights import Fact, tool
from footlights.authority import accept, every_turn
from footlights_actors import Call, Say


@tool
def rent_room(room: str) -> str:
    "Rent a room."
    return {"attic": "quiet"}[room]  # the tool's line


def innkeeper(prompt):
    if "script" in prompt.user:
        return [Say(prompt.missing)]  # the script's line
    return [Say("Done.")] if prompt.rounds or "tool" not in prompt.user else [Call("rent_room", {"room": "cellar"})]


def facts(world, _):
    return [Fact("purse", world["purse"] + "coins")]  # the facts' line


@every_turn
def no_debts(world, intents):
    return accept() if world["purse"] == "none" else world["till"]  # the rule's line
"""

SETTINGS = """
[server]
ws_port = 0
http_port = 0
[cast]
tools = ["dev_game:rent_room"]
rules = ["dev_game:no_debts"]
[models.odo]
kind = "scripted"
script = "dev_game:innkeeper"
[personas.innkeeper]
[personas.miser]
facts = "dev_game:facts"
[world]
purse = 3
"""

BUGS = [
    ("a script?", "innkeeper", "the script's line", "AttributeError: 'Prompt' object has no attribute 'missing'"),
    ("a tool?", "innkeeper", "the tool's line", "KeyError: 'cellar'"),
    ("facts?", "miser", "the facts' line", "TypeError: unsupported operand type(s) for +: 'int' and 'str'"),
    ("a rule?", "innkeeper", "the rule's line", "KeyError: 'till'"),
]


async def play_bugs(port: int) -> None:
    async with open_peer(port) as peer:
        session_id = await peer.start()
        for said, persona, _, _ in BUGS:
            begun = await peer.ask("begin_turn", session_id=session_id, input=said, params={"persona": persona})
            await peer.take_until(EventType.COMMIT_FINAL, begun["turn_id"])


@pytest.fixture
def game(tmp_path: Path) -> Path:
    (tmp_path / "dev_game.py").write_text(GAME)
    (tmp_path / "game.toml").write_text(SETTINGS)
    return tmp_path


async def test_serve_dev_prints_each_bug_once_with_the_hosts_line_and_nothing_of_ours(game: Path) -> None:
    async with open_server(game, "--config", "game.toml", "--dev") as server:
        await play_bugs(server.ws_port)
        told = server.complaints.read_text()
    for _, _, line, error in BUGS:
        assert told.count(f"# {line}\n") == 1
        assert f"    {error}\n" in told
    files = set(re.findall(r'File "([^"]+)"', told))
    assert files == {str(game / "dev_game.py")}


async def test_without_dev_only_types_and_places_are_logged(game: Path) -> None:
    async with open_server(game, "--config", "game.toml") as server:
        await play_bugs(server.ws_port)
        told = server.complaints.read_text()
    lines = GAME.splitlines()
    for _, _, line, error in BUGS:
        (number,) = [at for at, text in enumerate(lines, 1) if text.endswith(line)]
        kind, _, message = error.partition(":")
        assert f": {kind} at dev_game.py:{number}\n" in told
        assert message.strip("' ") not in told
    assert "Traceback" not in told


@pytest.mark.usefixtures("logs_as_they_were")
def test_serve_refuses_dev_with_tokens(
    game: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOOTLIGHTS_TOKENS__EDDA", "a-token-of-sixteen-or-more")
    assert footlights(monkeypatch, "serve", "--config", str(game / "game.toml"), "--dev") == 2
    told = capsys.readouterr().err
    assert told.startswith("--dev prints what exceptions say, which may quote people, so it does not go with tokens.")
    assert "a-token" not in told
    assert not (game / "game.ledger").exists()


def test_play_prints_the_traceback_beside_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def innkeeper(prompt: Prompt) -> list[Line]:
        raise LookupError(f"nothing for {prompt.user}\x1b[2J")

    (tmp_path / "lines").write_text("A room?\n")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        cast = standard_cast(ScriptedModel(innkeeper))
        play_here(Opening(lambda: open_local_game(cast), None, "", shows_bugs=True), as_json=False)
    shown, told = capfd.readouterr()
    assert "Traceback" not in shown
    assert told.startswith("t1-000001 of s1-000001 failed:\n    Traceback (most recent call last):\n")
    assert f'      File "{__file__}", line ' in told
    assert told.endswith("    LookupError: nothing for A room?\N{REPLACEMENT CHARACTER}[2J\n")
    assert told.count("failed") == 1


def test_other_lines_of_the_log_are_still_written(capfd: pytest.CaptureFixture[str]) -> None:
    out, log = StringIO(), logging.getLogger("footlights.tools")
    handler = logging.StreamHandler(out)
    logging.getLogger().addHandler(handler)
    with development_mode(out):
        report(log, "the tool rent_room failed", KeyError("cellar"))
        log.warning("the tool rent_room is slow")
    report(log, "the tool rent_room failed", KeyError("cellar"))
    logging.getLogger().removeHandler(handler)
    assert out.getvalue().splitlines() == [
        "the tool rent_room failed:",
        "    KeyError: 'cellar'",
        "the tool rent_room is slow",
        "the tool rent_room failed: KeyError at unknown place",
    ]
