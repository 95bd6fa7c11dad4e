"""Recordings: real files, which only their owner gets, for a limited time."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights_transports.views.mission import recordings as module
from footlights_transports.views.mission.recordings import Recordings
from tests.kit.callouts import TONE

if TYPE_CHECKING:
    from pathlib import Path

NOON_MS = 2_000_000_000_000


def clock_ms() -> int:
    return NOON_MS + round(trio.current_time() * 1_000)


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*.wav"))


def opened(folder: Path, seconds: float = 60) -> Recordings:
    return Recordings(folder, seconds, clock_ms)


async def test_only_its_owner_gets_a_recording(tmp_path: Path, quiet_clock: MockClock) -> None:
    recordings = opened(tmp_path / "wav")
    names = {owner: await recordings.keep(owner, TONE) for owner in ("ann", "bob", None)}
    for owner in names:
        for each, name in names.items():
            assert await recordings.read(owner, name) == (TONE if owner == each else None)
    assert await recordings.read("ann", f"../bob/{names['bob']}") is None
    assert len(files(tmp_path)) == 3
    for folder in (tmp_path / "wav").iterdir():
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


async def test_no_two_recordings_have_the_same_name(tmp_path: Path, quiet_clock: MockClock) -> None:
    recordings = opened(tmp_path)
    assert await recordings.keep("ann", TONE) != await recordings.keep("ann", TONE)


@pytest.mark.shows("callouts-60")
async def test_a_recording_expires_and_its_file_is_deleted(tmp_path: Path, quiet_clock: MockClock) -> None:
    recordings = opened(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recordings.run)
        await wait_all_tasks_blocked()
        first = await recordings.keep("ann", TONE)
        await trio.sleep(30)
        second = await recordings.keep("ann", TONE)
        await trio.sleep(30)
        await wait_all_tasks_blocked()
        assert (await recordings.read("ann", first), await recordings.read("ann", second)) == (None, TONE)
        assert files(tmp_path) == [f"ann/{second}"]
        await trio.sleep(30)
        await wait_all_tasks_blocked()
        assert files(tmp_path) == []
        third = await recordings.keep("ann", TONE)
        assert await recordings.read("ann", third) == TONE
        nursery.cancel_scope.cancel()


async def test_recordings_outlive_a_restart_and_expire_all_the_same(tmp_path: Path, quiet_clock: MockClock) -> None:
    before = opened(tmp_path)
    names = [await before.keep("ann", TONE) for _ in range(3)]
    for name, age in zip(names, (70, 50, -9), strict=True):  # the clock of the last was ahead
        os.utime(tmp_path / "ann" / name, (0, NOON_MS / 1_000 - age))
    (tmp_path / "ann" / "alarm.wav").write_bytes(TONE)
    os.utime(tmp_path / "ann" / "alarm.wav", (0, 0))
    after = opened(tmp_path)
    assert [await after.read("ann", name) for name in names] == [None, TONE, TONE]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(after.run)
        await wait_all_tasks_blocked()
        assert files(tmp_path) == sorted(f"ann/{name}" for name in (*names[1:], "alarm.wav"))
        await trio.sleep(61)
        await wait_all_tasks_blocked()
        assert files(tmp_path) == ["ann/alarm.wav"], "a file of somebody else stays"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("limit", "most"), [("MAX_FILES", 3), ("MAX_BYTES", 3 * len(TONE))])
async def test_the_owner_with_the_most_loses_the_oldest(
    tmp_path: Path, quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(module, limit, most)
    recordings = opened(tmp_path)
    bobs = await recordings.keep("bob", TONE)
    anns = [await recordings.keep("ann", TONE) for _ in range(4)]
    assert files(tmp_path) == sorted([f"bob/{bobs}", *(f"ann/{name}" for name in anns[2:])])


async def test_a_file_that_somebody_deleted_is_missing_and_harms_nothing(
    tmp_path: Path, quiet_clock: MockClock
) -> None:
    recordings = opened(tmp_path)
    name = await recordings.keep("ann", TONE)
    (tmp_path / "ann" / name).unlink()
    assert await recordings.read("ann", name) is None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recordings.run)
        await trio.sleep(61)
        nursery.cancel_scope.cancel()


async def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, quiet_clock: MockClock) -> None:
    resource = pytest.importorskip("resource")
    recordings, (soft, hard) = opened(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(TONE) - 1, hard))
    try:
        with pytest.raises(OSError, match="large"):
            await recordings.keep("ann", TONE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []
