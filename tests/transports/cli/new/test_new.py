"""`footlights new`: a game that plays, serves and passes its tests, in a folder far from any checkout."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from footlights import CommitFinal, CommitOutcome
from footlights.testing import only
from footlights_transports.cli.new.command import FILES, CannotMakeGame, make_game
from tests.kit.command import footlights
from tests.kit.paths import ROOT
from tests.kit.served import FOOTLIGHTS, open_peer, open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = Path(str(files("footlights_transports.cli.new") / "template"))
BARE = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def run(folder: Path, *command: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, input=said, capture_output=True, text=True, timeout=120, env=BARE)


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    done = run(folder, *FOOTLIGHTS, "new", "my-quest")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        "my-quest is ready. Next:",
        "  cd my-quest",
        "  footlights play     talk to the ferryman",
    ]
    return folder / "my-quest"


def test_a_new_game_has_every_file_and_its_own_name(game: Path) -> None:
    assert {each.name for each in game.iterdir()} >= {
        "README.md",
        "game.toml",
        "ferry.py",
        "test_game.py",
        ".gitignore",
    }
    readme = (game / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# my-quest\n")
    assert len(readme.splitlines()) <= 20
    assert "my-game" not in "".join(each.read_text(encoding="utf-8") for each in game.iterdir() if each.is_file())


def test_a_new_game_can_be_talked_to(game: Path) -> None:
    said = "What does it cost?\nTake me to the south bank\n/why\nTo the south bank!\nTo the west bank\n/world\n"
    done = run(game, *FOOTLIGHTS, "play", said=said)
    assert (done.returncode, done.stderr) == (1, "Playing game.toml, which is in this folder.\n"), "a rule refused"
    lines = done.stdout.splitlines()
    assert "Ferryman: 2 coins for the crossing. The river does not bargain, and neither do I." in lines
    assert "  · boat: south; purse: 3" in lines
    assert "  · accepted by the rules crossing" in lines
    assert any(line.endswith("The boat is at the south bank already.") for line in lines)
    assert "  ✗ row: The river has a north bank and a south bank." in lines
    assert lines[-2:] == ["  boat: south", "  purse: 3"]


async def test_a_new_game_can_be_served(game: Path) -> None:
    async with open_server(game, "--ws-port", "0", "--http-port", "0") as served:
        assert re.search(rf"^  Settings +{re.escape(str(game / 'game.toml'))}$", served.shown, re.MULTILINE)
        assert "  Personas   ferryman\n" in served.shown
        async with open_peer(served.ws_port) as peer:
            session_id = await peer.start()
            events = await peer.take_turn(session_id, "Take me to the south bank")
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK
    assert (game / "game.ledger").exists()


def test_the_tests_of_a_new_game_pass(game: Path) -> None:
    done = run(game, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_its_settings_are_right_and_its_commits_are_not_for_git(game: Path) -> None:
    assert run(game, *FOOTLIGHTS, "serve", "--check").stdout == "game.toml: Configuration OK.\n"
    assert "*.ledger*" in (game / ".gitignore").read_text(encoding="utf-8")


def test_a_broken_game_file_is_named_with_its_line(game: Path, tmp_path: Path) -> None:
    (tmp_path / "game.toml").write_text("[models.x]\nkind = 7\n")
    done = run(tmp_path, *FOOTLIGHTS, "play", said="Hello\n")
    assert done.returncode == 2
    assert "game.toml:2: models.x.kind must be" in done.stderr
    assert done.stdout == ""


def test_the_second_tool_of_the_guide_can_be_added(tmp_path: Path) -> None:
    """As docs/how-to/build/start-a-game.md tells it: word for word, and it prints what the page says."""
    game, page = make_game("my-game", tmp_path), ROOT / "docs/how-to/build/start-a-game.md"
    guide = page.read_text(encoding="utf-8").partition("## Add a second tool")[2].partition("\n## ")[0]
    (module, settings, script, shown) = re.findall(r"^```\w+\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (game / "fishing.py").write_text(module, encoding="utf-8")
    ferry = (game / "ferry.py").read_text(encoding="utf-8")
    (game / "ferry.py").write_text(ferry.replace("    bank = re.search(", f"{script}    bank = re.search("))
    toml = (game / "game.toml").read_text(encoding="utf-8")
    for section in settings.strip().split("\n\n"):
        toml = re.sub(rf"^{re.escape(section.splitlines()[0])}\n(.+\n)+", f"{section}\n", toml, flags=re.MULTILINE)
    (game / "game.toml").write_text(toml, encoding="utf-8")

    done = run(game, *FOOTLIGHTS, "play", said="Let us fish\nTake me to the south bank\nLet us fish\n/world\n")
    assert done.stdout.startswith(shown)
    assert "  · boat: south; purse: 3" in done.stdout.splitlines()
    assert "The river has 1 fish." in done.stdout
    assert done.stdout.splitlines()[-3:] == ["  boat: south", "  fish: 1", "  purse: 3"]
    tests = run(game, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 passed" in tests.stdout, tests.stdout


def test_the_facts_of_the_guide_replace_those_of_the_template(tmp_path: Path) -> None:
    game, page = make_game("my-game", tmp_path), ROOT / "docs/how-to/build/start-a-game.md"
    guide = page.read_text(encoding="utf-8").partition("## Let him remember")[2].partition("\n## ")[0]
    (known,) = re.findall(r"^```\w+\n(def known.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    ferry = (game / "ferry.py").read_text(encoding="utf-8")
    changed = re.sub(r"^def known\(.*\n(?: .*\n)+", known, ferry, flags=re.MULTILINE)
    assert changed != ferry
    (game / "ferry.py").write_text(changed, encoding="utf-8")
    (game / "game.toml").write_text((game / "game.toml").read_text(encoding="utf-8") + "fish = 3\n", encoding="utf-8")
    assert run(game, *FOOTLIGHTS, "serve", "--check").stdout == "game.toml: Configuration OK.\n"
    done = run(game, *FOOTLIGHTS, "play", said="Take me to the south bank\n")
    assert (done.returncode, "  · boat: south; purse: 3" in done.stdout) == (0, True)
    program = "import ferry; print(ferry.known({'boat': 'north', 'fish': 3}, None)[-1])"
    assert run(game, sys.executable, "-c", program).stdout == "Fact(name='Fish left in the river', text='3')\n"


@pytest.mark.parametrize(
    ("line", "message", "kind"),
    [
        ("def broken(:", "SyntaxError: invalid syntax", "SyntaxError"),
        ("from footlights import Nope", "ImportError: cannot import name 'Nope' from 'footlights'", "ImportError"),
        ("FARES = {}['south']", "KeyError: 'south'", "KeyError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_once(line: str, message: str, kind: str, tmp_path: Path) -> None:
    game = make_game("my-game", tmp_path)
    text = (game / "ferry.py").read_text(encoding="utf-8") + line
    (game / "ferry.py").write_text(text, encoding="utf-8")
    problem = f"names the module ferry, which cannot be imported: {kind} at ferry.py:{len(text.splitlines())}."
    checked = run(game, *FOOTLIGHTS, "serve", "--check")
    assert (checked.returncode, len(checked.stderr.splitlines())) == (1, 1)
    assert checked.stderr.rstrip().endswith(problem)

    played = run(game, *FOOTLIGHTS, "play", said="Hello\n")
    assert played.returncode == 2
    assert (played.stderr.count(message), played.stderr.count(problem)) == (1, 1)
    assert line in played.stderr
    assert "importlib" not in played.stderr

    (game / "game.toml").write_text((game / "game.toml").read_text() + '[tokens]\nann = "0123456789abcdef0123"\n')
    assert message not in run(game, *FOOTLIGHTS, "play", said="Hello\n").stderr


# -- the template itself


@pytest.fixture
def importable() -> Iterator[None]:
    """The modules of the template are forgotten afterwards, as its folder is no place of this project's tests."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("ferry", None)


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(
    "name",
    [
        "test_a_crossing_moves_the_boat_and_costs_the_fare",
        "test_a_cancel_at_any_moment_moves_the_boat_and_takes_the_fare_or_does_neither",
    ],
)
def test_the_promises_of_the_template_hold(name: str) -> None:
    runpy.run_path(str(TEMPLATE / "test_game.py"))[name]()


def test_every_file_of_the_template_is_written() -> None:
    assert {each.name for each in TEMPLATE.iterdir() if each.name != "__pycache__"} == set(FILES)


# -- refusals


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "1st", "-x", "my game", "a\n", "ä", "x" * 65, "~", ".hidden"]
)
def test_a_bad_name_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    with pytest.raises(CannotMakeGame, match="letters, digits"):
        make_game(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_file", [True, False])
def test_nothing_is_overwritten(
    is_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "mine"
    there.write_text("mine") if is_file else there.mkdir()
    assert footlights(monkeypatch, "new", "mine") == 2
    assert capsys.readouterr().err == "mine exists already. Nothing was written; take another name.\n"
    assert there.read_text() == "mine" if is_file else list(there.iterdir()) == []


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(CannotMakeGame, match=r"^mine cannot be made here: No such file or directory\.$"):
        make_game("mine", tmp_path / "gone")
