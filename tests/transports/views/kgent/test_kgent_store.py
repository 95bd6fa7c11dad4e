"""Content store: encryption, erasure, key rotation, crashes and concurrent processes."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import astuple
from cryptography.fernet import Fernet

from footlights.notebooks.store import ContentUnavailable
from footlights_actors.sealed import CONTENT_KEYS_VARIABLE
from footlights_actors.sealed.keys import ContentKeyError, keys_from_environment, keys_from_file, new_key
from footlights_transports.views.kgent.store import ContentStore, Kept

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

FIRST = Kept("ann:diary", "t1-000001", "My secret is 🎭 blue.", "I shall tell nobody.")
SECOND = Kept("ann:diary", "t1-000002", "Promise?", "Yes.")
THIRD = Kept("ann:diary", "t1-000003", "Really?", "Really.")
OTHER = Kept("bob:diary", "t1-000001", "Mine is red.", "I see.")


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.shows("gateway-73")
async def test_content_is_read_in_order_and_only_with_a_key(tmp_path: Path) -> None:
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


async def test_stored_sessions_can_be_listed(tmp_path: Path) -> None:
    keys = [new_key()]
    store = ContentStore(tmp_path / "kept", keys)
    assert await store.sessions() == []
    for each in (OTHER, FIRST, SECOND):
        await store.keep(*astuple(each))
    assert await store.sessions() == ["ann:diary", "bob:diary"]
    await store.erase("ann:diary")
    assert await store.sessions() == ["bob:diary"]
    (tmp_path / "kept" / "cut.sealed").write_bytes(b"cut sho")
    assert await store.sessions() == ["bob:diary"], "of that one nothing is kept"
    with pytest.raises(ContentKeyError, match="of 1 sessions"):
        await ContentStore(tmp_path / "kept", [new_key()]).sessions()


async def test_a_canceled_wait_for_the_lock_changes_nothing(tmp_path: Path, quiet_clock: MockClock) -> None:
    store = ContentStore(tmp_path, [new_key()])
    await store.keep(*astuple(FIRST))
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        for wait in (partial(store.keep, *astuple(SECOND)), partial(store.erase, "ann:diary"), store.rotate):
            with pytest.raises(trio.TooSlowError), trio.fail_after(5):
                await wait()
    finally:
        os.close(folder)
    assert await store.read("ann:diary") == [FIRST]
    await store.keep(*astuple(SECOND))
    assert await store.read("ann:diary") == [FIRST, SECOND]


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


async def test_rotating_without_the_old_key_changes_nothing(tmp_path: Path) -> None:
    old = new_key()
    await ContentStore(tmp_path, [old]).keep(*astuple(FIRST))
    with pytest.raises(ContentKeyError):
        await ContentStore(tmp_path, [new_key()]).rotate()
    assert await ContentStore(tmp_path, [old]).read("ann:diary") == [FIRST]


@pytest.mark.parametrize("cut", [1, 5, 60])
async def test_a_line_cut_short_by_a_crash_is_removed(tmp_path: Path, cut: int) -> None:
    store = ContentStore(tmp_path, [new_key()])
    await store.keep(*astuple(FIRST))
    await store.keep(*astuple(SECOND))
    (file,) = files_in(tmp_path)
    file.write_bytes(file.read_bytes()[:-cut])
    left = [FIRST, SECOND] if cut == 1 else [FIRST]
    assert await store.read("ann:diary") == left
    await store.keep(*astuple(THIRD))
    assert await store.read("ann:diary") == [*left, THIRD]
    assert await store.rotate() == 1
    assert await store.read("ann:diary") == [*left, THIRD]


async def test_rotating_keeps_a_line_that_lacks_only_its_line_break(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    await store.keep(*astuple(FIRST))
    (file,) = files_in(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    await store.rotate()
    assert await store.read("ann:diary") == [FIRST]
    assert file.read_bytes().endswith(b"\n")


async def test_sessions_that_cannot_be_rotated_are_reported_at_the_end(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    for number in range(5):
        await ContentStore(tmp_path, [old]).keep(f"session {number}", "t1-000001", "Hello.", "Hello.")
    spoilt = files_in(tmp_path)[0]
    spoilt.write_bytes(b"not sealed\n")
    with pytest.raises(ContentKeyError, match="of 1 sessions; 4 are re-encrypted"):
        await ContentStore(tmp_path, [new, old]).rotate()
    assert spoilt.read_bytes() == b"not sealed\n"
    for file in files_in(tmp_path)[1:]:
        assert Fernet(new).decrypt(file.read_bytes().strip())


async def test_a_rotation_on_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ContentStore(tmp_path, [new_key()])
    await store.keep(*astuple(FIRST))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ContentUnavailable, match="No space left"):
            await store.rotate()
    assert [each.suffix for each in files_in(tmp_path)] == [".sealed"]
    assert await store.read("ann:diary") == [FIRST]


async def test_erasing_removes_the_rest_of_an_interrupted_rotation(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    for each in (FIRST, OTHER):
        await store.keep(*astuple(each))
    for file in files_in(tmp_path):
        file.with_suffix(".fresh").write_bytes(file.read_bytes())
    await store.erase("ann:diary")
    assert len(files_in(tmp_path)) == 2
    next(each for each in files_in(tmp_path) if each.suffix == ".sealed").unlink()
    await store.erase_all()
    assert files_in(tmp_path) == []


@pytest.mark.shows("gateway-81")
async def test_a_dialogue_is_deleted_when_it_is_older_than_the_setting_says(tmp_path: Path) -> None:
    now = 1_000_000.0
    key, lost = new_key(), new_key()
    store = ContentStore(tmp_path, [key], days=2, wall_clock=lambda: now)
    await ContentStore(tmp_path, [lost], wall_clock=lambda: now).keep(*astuple(OTHER))
    await store.keep(*astuple(FIRST))
    now += 86_400
    await store.keep(*astuple(SECOND))
    await store.expire()
    assert await store.read("ann:diary") == [FIRST, SECOND]
    assert len(files_in(tmp_path)) == 2
    now += 86_400 + 1
    assert await store.read("ann:diary") == [SECOND], "it is not read any more, even before it is deleted"
    (tmp_path / "left.fresh").write_bytes(b"of an interrupted rotation")
    newer = ContentStore(tmp_path, [new_key(), key], days=2, wall_clock=lambda: now)
    await newer.expire()
    (file,) = files_in(tmp_path)
    assert file.read_bytes().count(b"\n") == 1
    assert await newer.read("ann:diary") == [SECOND]
    await newer.rotate()
    now += 86_400
    await newer.expire()
    assert files_in(tmp_path) == [], "a new seal does not make it younger"


async def test_erasing_an_empty_store_erases_nothing(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "kept", [new_key()])
    assert await store.erase("ann:diary") is False
    assert await store.erase_all() == 0
    assert await store.rotate() == 0


@pytest.mark.parametrize("erases", [False, True])
async def test_another_process_may_rotate_while_this_one_keeps_and_erases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, erases: bool
) -> None:
    keys = [new_key()]
    server, tool = ContentStore(tmp_path, keys), ContentStore(tmp_path, keys)
    await server.keep(*astuple(FIRST))
    rotating, go_on = threading.Event(), threading.Event()
    really = os.fsync

    def slow(descriptor: int) -> None:
        really(descriptor)
        rotating.set()
        go_on.wait(60)

    monkeypatch.setattr(os, "fsync", slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tool.rotate)
        await trio.to_thread.run_sync(rotating.wait)
        monkeypatch.setattr(os, "fsync", really)
        if erases:
            nursery.start_soon(server.erase, "ann:diary")
        else:
            nursery.start_soon(server.keep, *astuple(SECOND))
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert await server.read("ann:diary") == ([] if erases else [FIRST, SECOND])


async def test_a_rotation_does_not_bring_back_an_erased_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ContentStore(tmp_path, [new_key()])
    for each in (FIRST, OTHER):
        await store.keep(*astuple(each))
    really = os.fsync

    def erase_the_others(descriptor: int) -> None:
        really(descriptor)
        for other in files_in(tmp_path)[2:]:
            other.unlink()

    monkeypatch.setattr(os, "fsync", erase_the_others)
    assert await store.rotate() == 1
    assert len(files_in(tmp_path)) == 1


async def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ContentStore(tmp_path / "file", [new_key()])
    with pytest.raises(ContentUnavailable, match="cannot be reached"):
        await store.keep(*astuple(FIRST))


def test_a_store_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ContentKeyError, match="no key"):
        ContentStore(tmp_path, [])
    with pytest.raises(ContentKeyError) as refused:
        ContentStore(tmp_path, ["not-a-key"])
    assert "not-a-key" not in str(refused.value)


def test_keys_come_from_a_file_the_newest_first(tmp_path: Path) -> None:
    file = tmp_path / "content.keys"
    keys = (new_key(), new_key())
    file.touch(0o600)
    file.write_text(f"# ours\n{keys[0]}\n\n  {keys[1]}\n")
    assert keys_from_file(file) == keys
    file.write_text("# none\n\n")
    with pytest.raises(ContentKeyError, match="has no key"):
        keys_from_file(file)
    file.write_bytes(b"\xff\xfe")
    for path in (file, tmp_path / "missing", os.fspath(tmp_path)):
        with pytest.raises(ContentKeyError, match="cannot be read"):
            keys_from_file(path)


@pytest.mark.shows("gateway-80")
@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_file_that_other_users_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file, key = tmp_path / "content.keys", new_key()
    file.write_text(key)
    file.chmod(mode)
    with pytest.raises(ContentKeyError, match="chmod 600") as refused:
        keys_from_file(file)
    assert key not in str(refused.value)


def test_keys_come_from_the_environment() -> None:
    keys = (new_key(), new_key())
    assert keys_from_environment({CONTENT_KEYS_VARIABLE: f"{keys[0]}, {keys[1]},"}) == keys
    with pytest.raises(ContentKeyError, match=CONTENT_KEYS_VARIABLE):
        keys_from_environment({})
