"""What is kept is encrypted, comes back, can be erased, and needs a key."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from attrs import astuple

from footlights.chat import CONTENT_KEYS_VARIABLE
from footlights_actors.kgent_store import (
    ContentKeyError,
    ContentStore,
    ContentUnavailable,
    Kept,
    keys_from_environment,
    keys_from_file,
    new_key,
)

if TYPE_CHECKING:
    from pathlib import Path

FIRST = Kept("ann:diary", "t1-000001", "My secret is 🎭 blue.", "I shall tell nobody.")
SECOND = Kept("ann:diary", "t1-000002", "Promise?", "Yes.")
OTHER = Kept("bob:diary", "t1-000001", "Mine is red.", "I see.")


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def test_what_is_kept_comes_back_in_order_and_cannot_be_read_without_a_key(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "kept", [new_key()])
    for each in (FIRST, OTHER, SECOND):
        await store.keep(*astuple(each))
    assert await store.read("ann:diary") == [FIRST, SECOND]
    assert await store.read("bob:diary") == [OTHER]
    assert await store.read("nobody") == []
    files = files_in(tmp_path / "kept")
    left = b"".join(each.name.encode() + each.read_bytes() for each in files)
    for secret in ("secret", "nobody", "diary", "ann", "t1-000001"):
        assert secret.encode() not in left
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


async def test_a_session_can_be_erased_and_the_others_stay(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    for each in (FIRST, OTHER):
        await store.keep(*astuple(each))
    assert await store.erase("ann:diary") is True
    assert await store.erase("ann:diary") is False
    assert await store.read("ann:diary") == []
    assert await store.read("bob:diary") == [OTHER]
    assert await store.erase_all() == 1
    assert files_in(tmp_path) == []


async def test_keys_can_be_rotated(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    await ContentStore(tmp_path, [old]).keep(*astuple(FIRST))
    both = ContentStore(tmp_path, [new, old])
    await both.keep(*astuple(SECOND))
    with pytest.raises(ContentKeyError):
        await ContentStore(tmp_path, [new]).read("ann:diary")
    assert await both.rotate() == 1
    assert await ContentStore(tmp_path, [new]).read("ann:diary") == [FIRST, SECOND]
    with pytest.raises(ContentKeyError):
        await ContentStore(tmp_path, [old]).read("ann:diary")
    assert len(files_in(tmp_path)) == 1


async def test_rotating_without_the_old_key_leaves_all_as_it_was(tmp_path: Path) -> None:
    old = new_key()
    await ContentStore(tmp_path, [old]).keep(*astuple(FIRST))
    with pytest.raises(ContentKeyError):
        await ContentStore(tmp_path, [new_key()]).rotate()
    assert await ContentStore(tmp_path, [old]).read("ann:diary") == [FIRST]


async def test_a_line_that_a_crash_cut_short_spoils_nothing(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    await store.keep(*astuple(FIRST))
    (file,) = files_in(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:50])
    assert await store.read("ann:diary") == [FIRST]
    file.write_bytes(whole[:-1])
    await store.keep(*astuple(SECOND))
    assert await store.read("ann:diary") == [FIRST, SECOND]


async def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ContentStore(tmp_path / "file", [new_key()])
    with pytest.raises(ContentUnavailable, match="cannot be reached"):
        await store.keep(*astuple(FIRST))


def test_without_a_key_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ContentKeyError, match="no key"):
        ContentStore(tmp_path, [])
    with pytest.raises(ContentKeyError) as refused:
        ContentStore(tmp_path, ["not-a-key"])
    assert "not-a-key" not in str(refused.value)


def test_keys_come_from_a_file_the_newest_first(tmp_path: Path) -> None:
    file = tmp_path / "content.keys"
    keys = (new_key(), new_key())
    file.write_text(f"# ours\n{keys[0]}\n\n  {keys[1]}\n")
    assert keys_from_file(file) == keys
    file.write_text("# none\n\n")
    with pytest.raises(ContentKeyError, match="has no key"):
        keys_from_file(file)
    file.write_bytes(b"\xff\xfe")
    for path in (file, tmp_path / "missing", os.fspath(tmp_path)):
        with pytest.raises(ContentKeyError, match="cannot be read"):
            keys_from_file(path)


def test_keys_come_from_the_environment() -> None:
    keys = (new_key(), new_key())
    assert keys_from_environment({CONTENT_KEYS_VARIABLE: f"{keys[0]}, {keys[1]},"}) == keys
    with pytest.raises(ContentKeyError, match=CONTENT_KEYS_VARIABLE):
        keys_from_environment({})
