"""The harness for embedding works and its numbers add up. How large they are is a benchmark's matter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from footlights_bench.embedding.frames import play_frames
from footlights_bench.embedding.guest import guest_stage
from footlights_bench.embedding.suite import run_embedding
from footlights_bench.lib.scripts import cast_of, paced
from footlights_transports import StageThread
from tests.kit.command import footlights

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SUBJECTS = {
    "frames, 5 turns, a thread of its own",
    "frames, 5 turns, trio's guest",
    "calls to a stage thread, 5 turns",
}
AIMS = {"work of a frame, p99 / in silence", "frame to frame, p99 / in silence"}


def test_a_quick_run_prints_every_figure_and_writes_it_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "embed.json"
    assert run_embedding(StageThread, quick=True, json_path=path) == 0
    printed = capsys.readouterr()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["bench"] == "embed"
    assert written["quick"] is True
    assert {figure["subject"] for figure in written["figures"]} == SUBJECTS
    assert {figure["name"] for figure in written["figures"] if figure["aim"] is not None} == AIMS
    for figure in written["figures"]:
        assert figure["value"] > 0
        assert figure["name"] in printed.out
    assert "trio's guest" in printed.err


def test_the_command_measures_a_stage_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "bench", "embed", "--quick") == 0
    assert "begin_turn_soon, p99" in capsys.readouterr().out


def test_every_frame_works_takes_events_and_waits_for_the_next() -> None:
    done: list[str] = []
    frames = play_frames(3, lambda: done.append("took"), lambda due: done.append("waited"))
    assert done == ["took", "waited"] * 3
    assert len(frames.work) == len(frames.between) == 3
    # The beginning of the next frame comes after the end of the work.
    assert all(work <= between for work, between in zip(frames.work, frames.between, strict=True))


def test_a_guest_speaks_in_the_time_that_frames_leave_over() -> None:
    with guest_stage(cast_of(paced), players=3) as guest:
        guest.begin_turns()
        while not guest.came:
            play_frames(1, list, guest.wait_until)
        guest.end_turns()
        speakers = {event.session_id for event in guest.came}
        guest.take_events()
        assert guest.came == []
    assert len(speakers) == 3
