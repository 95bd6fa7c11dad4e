"""`footlights world patch`: a commit of the operator on a closed ledger, which audit, replay and show know as that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from typer.testing import CliRunner

from footlights import Intent, IntentType, open_stage
from footlights.authority import JsonWorld
from footlights_actors import ScriptedModel, standard_cast
from footlights_transports.cli.commands import app

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def test_a_world_edited_in_the_settings_is_offered_as_a_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, settings, fix = tmp_path / "g.ledger", tmp_path / "game.toml", tmp_path / "fix.json"
    trio.run(_open, ledger)
    game = "from footlights_actors import Say\ndef script(prompt): return [Say('Yes.')]\n"
    (tmp_path / "game_of_patches.py").write_text(game)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = '[models.odo]\nkind = "scripted"\nscript = "game_of_patches:script"\n'
    settings.write_text(f"{model}[world]\npurse = 9\n[world.inn]\nrooms = 2\n")
    offer = ["world", "patch", "--ledger", str(ledger), "--config", str(settings)]
    fix.write_text(run(app, offer).stdout)
    assert trio.run(_open, ledger) == {"purse": 1}
    done = run(app, ["world", "patch", str(fix), "--ledger", str(ledger), "--why", "edited"])
    assert done.exit_code == 0, done.output
    assert trio.run(_open, ledger) == {"purse": 9, "inn": {"rooms": 2}}
    assert run(app, offer).stdout.strip() == "[]"


def test_a_patch_needs_a_ledger(tmp_path: Path) -> None:
    assert run(app, _patch(tmp_path, '[{"op": "replace", "path": "", "value": 7}]')).exit_code == 2
    assert not (tmp_path / "g.ledger").exists()
