"""Acts on notebooks: each touches the notebook of its owner, or nothing; and keys are rotated in all worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from typer.testing import CliRunner

from footlights import SessionParams, open_stage
from footlights.errors import InvalidCommand
from footlights.notebooks.entries import host_act, kept_notes
from footlights.notebooks.notebooks import Notebooks
from footlights.notebooks.store import MemoryNotes
from footlights_actors.sealed.keys import new_key
from footlights_actors.sealed.notes import SealedNotes
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.cli.commands import app
from footlights_transports.errors import Unauthorized
from tests.kit.memory import cast_with, note, start

if TYPE_CHECKING:
    from pathlib import Path

NOTE_ID = "n-t1-000001-0000abcd-1"


@pytest.mark.parametrize("owner", ["bob/kept", "", "bob:a/b", "@host", "bob~1"])
async def test_an_act_on_what_is_no_owner_is_refused_and_changes_nothing(owner: str) -> None:
    async with open_stage(cast_with(Notebooks(MemoryNotes(), consent=True))) as stage:
        await note(stage, start(stage), "Bob likes tea.")
        for act in ("agree", "withdraw", "erase"):
            commit = await stage.commit([host_act(act, owner)], "a mistake")
            assert commit.issues[0].code == "notebook_unknown"
        assert len(kept_notes(stage.world, "bob")) == 1
        assert stage.notebooks is not None
        with pytest.raises(InvalidCommand):
            await stage.notebooks.agree(stage, owner, agreed=True)


async def test_a_game_server_acts_on_notebooks_of_its_own_players_only() -> None:
    game = User("game")
    policy = AccessPolicy({"game": "g" * 16, "ann": "a" * 16}, roles={"game": {"game_server": True}})
    async with open_stage(cast_with(Notebooks(MemoryNotes(), consent=True))) as stage:
        access = SessionAccess(stage, policy)
        access.start(game, SessionParams(about={"id": "bob"}))
        for owner in ("ann", "gamer:bob", "ann:game"):
            with pytest.raises(Unauthorized, match="its own players"):
                await access.host_commit(game, [host_act("erase", owner)], "not mine")
        assert (await access.host_commit(game, [host_act("agree", "game:bob")], "mine")).commit_outcome == "ok"


async def test_keys_are_rotated_in_all_worlds(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    notes = SealedNotes(tmp_path / "notes", [old])
    for each in (notes, notes.in_world("tavern"), notes.in_world("port")):
        await each.seal("bob", NOTE_ID, "tea")
    keys = tmp_path / "keys"
    keys.write_text(f"{new}\n{old}\n")
    keys.chmod(0o600)
    rotated = await trio.to_thread.run_sync(
        lambda: CliRunner().invoke(app, ["notes", "rotate", str(tmp_path / "notes"), "--keys", str(keys)])
    )
    assert (rotated.exit_code, rotated.stdout) == (0, "3 sealed with the newest key\n")
    notes = SealedNotes(tmp_path / "notes", [new])
    for each in (notes, notes.in_world("tavern"), notes.in_world("port")):
        assert await each.read("bob") == {NOTE_ID: "tea"}
