"""Limits file: a real file that every change reaches, and that harms nothing when it is damaged."""

from __future__ import annotations

import logging
import stat
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights_transports.views.mission.announcer import Announcer
from footlights_transports.views.mission.limits_file import LimitsFile
from tests.kit.callouts import LISTENING, clock_ms, mission_event

if TYPE_CHECKING:
    from pathlib import Path


async def test_each_change_reaches_the_file(tmp_path: Path, quiet_clock: MockClock) -> None:
    file = tmp_path / "voices" / "limits.json"
    async with Announcer(clock_ms) as announcer, trio.open_nursery() as nursery:
        nursery.start_soon(LimitsFile(file, announcer, clock_ms).run)
        for number in range(1, 4):
            await announcer.announce(mission_event(f"Fire {number}."), LISTENING)
            await wait_all_tasks_blocked()
            assert orjson.loads(file.read_bytes())["tenants"] == {"default": [number, None]}
        nursery.cancel_scope.cancel()
    assert [each.name for each in file.parent.iterdir()] == ["limits.json"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_an_announcer_begins_with_what_the_file_keeps(tmp_path: Path, quiet_clock: MockClock) -> None:
    file, before, after = tmp_path / "limits.json", Announcer(clock_ms), Announcer(clock_ms)
    before.decide(mission_event("Fire."), LISTENING)
    await LimitsFile(file, before, clock_ms).write()
    LimitsFile(file, after, clock_ms)
    assert after.history.tenants == before.history.tenants
    assert len(after.history.spoken_in(("default", "heist"))) == 1


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff"])
async def test_a_damaged_file_is_a_warning_and_the_limits_begin_anew(
    tmp_path: Path, quiet_clock: MockClock, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    file, announcer = tmp_path / "limits.json", Announcer(clock_ms)
    file.write_bytes(damage)
    LimitsFile(file, announcer, clock_ms)
    assert announcer.history.tenants == {}
    assert [(each.levelno, each.getMessage().partition(":")[0]) for each in caplog.records] == [
        (logging.WARNING, "the limits of callouts begin anew")
    ]


async def test_a_file_that_cannot_be_written_is_a_warning_and_callouts_go_on(
    tmp_path: Path, quiet_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    announcer = Announcer(clock_ms)
    await LimitsFile(tmp_path / "limits.json", announcer, clock_ms).write()
    (tmp_path / "limits.json").unlink()
    (tmp_path / "limits.json").mkdir()
    await LimitsFile(tmp_path / "limits.json", announcer, clock_ms).write()
    assert {each.getMessage().partition(":")[0] for each in caplog.records} == {
        "the limits of callouts begin anew",
        "the limits of callouts cannot be kept",
    }
