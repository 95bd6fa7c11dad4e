"""`footlights content`: stored chats can be listed, read, erased and encrypted again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio
from typer.testing import CliRunner

from footlights_actors.sealed.keys import new_key
from footlights_transports.cli.commands import app
from footlights_transports.views.kgent.store import ContentStore

if TYPE_CHECKING:
    from pathlib import Path

SAID = "xyzzy-said-in-private"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "content.keys"
    file.touch(0o600)
    file.write_text(f"{new_key()}\n")
    return file


@pytest.fixture
def kept(tmp_path: Path, keys: Path) -> Path:
    """Two dialogues of one session, and one of another."""
    folder = tmp_path / "kept"
    store = ContentStore(folder, keys.read_text().split())

    async def keep() -> None:
        await store.keep("alice:diary", "t1-000001", SAID, "Well.")
        await store.keep("alice:diary", "t1-000002", "And now?", "Now sleep.")
        await store.keep("bob:diary", "t1-000003", "Hello", "Good evening.")

    trio.run(keep)
    return folder


def content(command: str, *arguments: object) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(app, ["content", command, *map(str, arguments)])
    return result.exit_code, result.stdout.splitlines(), result.stderr


def test_what_is_kept_can_be_named_and_read(kept: Path, keys: Path) -> None:
    assert content("sessions", kept, "--keys", keys) == (0, ["alice:diary", "bob:diary"], "")
    status, lines, _ = content("read", kept, "alice:diary", "--keys", keys)
    assert (status, [json.loads(line) for line in lines]) == (
        0,
        [
            {"turn_id": "t1-000001", "said": SAID, "answered": "Well."},
            {"turn_id": "t1-000002", "said": "And now?", "answered": "Now sleep."},
        ],
    )
    assert content("read", kept, "nobody:diary", "--keys", keys) == (1, [], "")


def test_a_session_is_erased_and_the_others_stay(kept: Path, keys: Path) -> None:
    assert content("erase", kept, "alice:diary", "--keys", keys) == (0, ["1 session erased"], "")
    assert content("erase", kept, "alice:diary", "--keys", keys) == (1, ["0 sessions erased"], "")
    assert content("sessions", kept, "--keys", keys) == (0, ["bob:diary"], "")


def test_everything_is_erased_only_if_that_is_said(kept: Path, keys: Path) -> None:
    assert content("erase", kept, "--keys", keys)[0] == 2
    assert content("erase", kept, "alice:diary", "--all", "--keys", keys)[0] == 2
    assert len(list(kept.iterdir())) == 2
    assert content("erase", kept, "--all", "--keys", keys) == (0, ["2 sessions erased"], "")
    assert list(kept.iterdir()) == []


def test_keys_are_rotated_and_the_old_one_is_needed_no_more(
    kept: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (newest,), _ = content("new-key")
    keys.write_text(f"{newest}\n{keys.read_text()}")
    assert content("rotate", kept, "--keys", keys) == (0, ["2 sessions encrypted with the newest key"], "")
    monkeypatch.setenv("FOOTLIGHTS_CONTENT_KEYS", newest)
    assert content("sessions", kept)[1] == ["alice:diary", "bob:diary"]


def test_without_a_matching_key_nothing_is_shown_or_lost(
    kept: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {each.name: each.read_bytes() for each in kept.iterdir()}
    monkeypatch.delenv("FOOTLIGHTS_CONTENT_KEYS", raising=False)
    status, lines, complaint = content("read", kept, "alice:diary")
    assert (status, lines) == (2, [])
    assert complaint == "The variable FOOTLIGHTS_CONTENT_KEYS has no key, and content is kept only encrypted.\n"
    keys.write_text(f"{new_key()}\n")
    for command in (["sessions", kept], ["read", kept, "alice:diary"], ["rotate", kept]):
        status, lines, complaint = content(str(command[0]), *command[1:], "--keys", keys)
        assert (status, lines) == (2, [])
        assert "key" in complaint
        assert keys.read_text().strip() not in complaint
    assert {each.name: each.read_bytes() for each in kept.iterdir()} == before
