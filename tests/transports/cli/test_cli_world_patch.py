"""`footlights world patch`: a commit of the operator on a closed ledger, which audit, replay and show know as that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
import trio
from attrs import evolve
from typer.testing import CliRunner

from footlights import Intent, IntentType, open_stage
from footlights.authority import JsonWorld, RuleBook, accept, patch
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports.cli.commands import app
from footlights_transports.config.config import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

    from footlights.authority import PatchOp
    from footlights.events import JsonValue

run = CliRunner().invoke


async def _open(path: Path) -> object:
    cast = standard_cast(ScriptedModel(lambda _: []), world=JsonWorld({"purse": 1}))
    async with open_stage(cast, ledger=path) as stage:
        return stage.world


def _patch(folder: Path, operations: str) -> list[str]:
    (folder / "fix.json").write_text(operations)
    return ["world", "patch", str(folder / "fix.json"), "--ledger", str(folder / "g.ledger"), "--why", "lost purse"]


def test_an_operator_patches_a_closed_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "g.ledger"
    trio.run(_open, ledger)
    result = run(app, _patch(tmp_path, '[{"op": "replace", "path": "/purse", "value": 7}]'))
    assert result.exit_code == 0, result.output
    assert trio.run(_open, ledger) == {"purse": 7}
    assert run(app, ["audit", str(ledger)]).exit_code == 0
    assert "identical" in run(app, ["replay", str(ledger)]).output
    assert "@operator" in run(app, ["ledger", "show", str(ledger)]).output
    shown = run(app, ["ledger", "show", str(ledger), "1"]).output
    assert "lost purse" in shown
    assert "no rule judged it" in shown


def test_a_commit_of_the_host_is_shown_as_what_it_is(tmp_path: Path) -> None:
    async def play() -> None:
        cast = standard_cast(ScriptedModel(lambda _: []), world=JsonWorld({"purse": 1}))
        async with open_stage(cast, ledger=tmp_path / "g.ledger") as stage:
            await stage.commit([Intent(IntentType.DECISION, "quest")], "the well is clean")
            session = stage.start()
            await session.finalize(session.begin_turn("Hello?")).wait()

    trio.run(play)
    ledger = str(tmp_path / "g.ledger")
    assert run(app, ["audit", ledger]).exit_code == 0
    first, second = [line for line in run(app, ["ledger", "show", ledger]).output.splitlines() if "t1-000001" in line]
    assert "@host" in first
    assert "@host" not in second
    assert "the well is clean" in run(app, ["ledger", "show", ledger, "1"]).output


def test_a_patch_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    trio.run(_open, tmp_path / "g.ledger")
    for bad in ('[{"op": "remove", "path": "/sword"}]', "[]", "{", '[{"op": "fly"}]'):
        result = run(app, _patch(tmp_path, bad))
        assert result.exit_code == 2, result.output
    assert trio.run(_open, tmp_path / "g.ledger") == {"purse": 1}


class Game:
    """A ledger that began with {"purse": 1, "inn": {"rooms": 2}}, and settings whose world may be edited."""

    def __init__(self, folder: Path) -> None:
        (folder / "game_of_patches.py").write_text(
            "from footlights_actors import Say\ndef script(prompt): return [Say('Yes.')]\n"
        )
        self.ledger, self.settings = folder / "g.ledger", folder / "game.toml"
        self.write("purse = 1\ninn.rooms = 2")
        self.open()

    def write(self, world: str) -> None:
        model = '[models.odo]\nkind = "scripted"\nscript = "game_of_patches:script"\n'
        self.settings.write_text(f"{model}[world]\n{world}\n")

    def open(self, *played: PatchOp) -> tuple[JsonValue, bool]:
        """The world of a stage on the ledger after this was played, and whether it warns of the settings' world."""
        return trio.run(self._open, played)

    async def _open(self, played: tuple[PatchOp, ...]) -> tuple[JsonValue, bool]:
        cast = evolve(load_config(self.settings).cast, rules=RuleBook({"play": lambda *_: accept(*played)}))
        async with open_stage(cast, ledger=self.ledger) as stage:
            if played:
                await stage.commit([Intent(IntentType.DECISION, "play")], "played")
            return stage.world.copy(), stage.ignores_world

    def patch(self, *options: str) -> Result:
        return run(app, ["world", "patch", "--ledger", str(self.ledger), "--config", str(self.settings), *options])

    def offered(self) -> object:
        return orjson.loads(self.patch().stdout)

    def checks(self) -> bool:
        is_same = "identical" in run(app, ["replay", str(self.ledger)]).output
        return is_same and run(app, ["audit", str(self.ledger)]).exit_code == 0


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Game:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Game(tmp_path)


def test_an_edited_world_is_shown_as_a_patch_and_committed_with_a_reason(game: Game) -> None:
    game.write("purse = 9\ninn.beds = 4")
    edit = [
        {"op": "add", "path": "/inn/beds", "value": 4},
        {"op": "remove", "path": "/inn/rooms"},
        {"op": "replace", "path": "/purse", "value": 9},
    ]
    assert game.offered() == edit
    assert game.open() == ({"purse": 1, "inn": {"rooms": 2}}, True)
    done = game.patch("--why", "more beds")
    assert done.exit_code == 0, done.output
    assert game.open() == ({"purse": 9, "inn": {"beds": 4}}, False)
    shown = run(app, ["ledger", "show", str(game.ledger), "1"]).output
    assert "more beds" in shown
    assert "no rule judged it" in shown
    assert game.checks()


def test_what_players_did_after_an_edit_was_committed_stays(game: Game) -> None:
    game.write("purse = 9\ninn.rooms = 2")
    game.patch("--why", "richer")
    assert game.open(patch.replace("/purse", 5), patch.replace("/inn/rooms", 1)) == (
        {"purse": 5, "inn": {"rooms": 1}},
        False,
    )
    assert game.offered() == []
    again = game.patch("--why", "richer")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "took in this world already" in again.stderr
    game.write("purse = 9\ninn.rooms = 2\nday = 1")  # the next edit has only what is new in it
    assert game.offered() == [{"op": "add", "path": "/day", "value": 1}]
    game.patch("--why", "days")
    assert game.open() == ({"purse": 5, "inn": {"rooms": 1}, "day": 1}, False)
    game.write("purse = 1\ninn.rooms = 2\nday = 1")  # back to where it began: an edit like any other
    assert game.open()[1]
    assert game.checks()


def test_an_edit_beside_what_players_changed_is_no_conflict(game: Game) -> None:
    game.open(patch.replace("/inn/rooms", 1), patch.add("/inn/guest", "Ann"))
    game.write("purse = 9\ninn.rooms = 2\ninn.beds = 4")
    assert game.patch("--why", "more").exit_code == 0
    assert game.open() == ({"purse": 9, "inn": {"rooms": 1, "guest": "Ann", "beds": 4}}, False)


@pytest.mark.parametrize(
    ("played", "edit", "places", "kept", "edited"),
    [
        (patch.replace("/purse", 5), "purse = 9\ninn.rooms = 2", "/purse", 5, 9),
        (patch.remove("/purse"), "purse = 9\ninn.rooms = 2", "/purse", None, 9),
        (patch.replace("/purse", 5), "inn.rooms = 2", "/purse", 5, None),
        (patch.replace("/purse", {"coins": 1}), "purse.gold = 1\ninn.rooms = 2", "/purse", {"coins": 1}, {"gold": 1}),
    ],
)
def test_a_conflict_is_said_before_anything_is_committed(
    game: Game, played: PatchOp, edit: str, places: str, kept: JsonValue, edited: JsonValue
) -> None:
    before, _ = game.open(played)
    game.write(edit)
    shown = game.patch()
    assert shown.exit_code == 0
    assert f"changed since in the ledger too: {places}." in shown.stderr
    refused = game.patch("--why", "richer")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"changed since in the ledger too: {places}." in refused.stderr
    assert "--conflicts ledger" in refused.stderr
    assert "--conflicts settings" in refused.stderr
    assert game.open() == (before, True)
    for choice, purse in (("ledger", kept), ("settings", edited)):
        copy = game.ledger.read_bytes()
        done = game.patch("--why", "richer", "--conflicts", choice)
        assert done.exit_code == 0, done.output
        world, warns = game.open()
        assert isinstance(world, dict)
        assert (world.get("purse"), world["inn"], warns) == (purse, {"rooms": 2}, False)
        assert game.checks()
        game.ledger.write_bytes(copy)


def test_a_patch_by_hand_takes_no_edit_in(game: Game) -> None:
    game.write("purse = 9\ninn.rooms = 2")
    fix = game.settings.with_name("fix.json")
    fix.write_text('[{"op": "replace", "path": "/purse", "value": 9}]')
    assert run(app, ["world", "patch", str(fix), "--ledger", str(game.ledger), "--why", "lost"]).exit_code == 0
    assert game.open() == ({"purse": 9, "inn": {"rooms": 2}}, True)
    assert game.offered() == []  # the ledger has it already, which is no conflict
    assert game.patch("--why", "as in the ledger").exit_code == 0
    assert game.open() == ({"purse": 9, "inn": {"rooms": 2}}, False)
    assert game.checks()


def test_a_patch_needs_a_ledger(tmp_path: Path) -> None:
    assert run(app, _patch(tmp_path, '[{"op": "replace", "path": "", "value": 7}]')).exit_code == 2
    assert not (tmp_path / "g.ledger").exists()
