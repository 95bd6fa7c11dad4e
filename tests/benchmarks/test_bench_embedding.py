"""Embedding suite: frames work and wait, and a guest runs between them. Tests check no performance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.embed.frames import play_frames
from suites.embed.guest import guest_stage
from suites.lib.scripts import cast_of, paced

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.conftest import QuickRun

SUBJECTS = {
    "frames, 5 turns, a thread of its own",
    "frames, 5 turns, trio's guest",
    "a game with 3 NPCs",
    "a server with 3 idle sessions",
    "a reload of 20 commits, 5 players barge in",
}
AIMS = {
    "work of a frame, p99 / in silence",
    "frame to frame, p99 / in silence",
    "first token of one, p99",
    "processor time in a second",
    "decided",
}


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("embed")
    assert run.subjects == SUBJECTS
    assert {name for _, name in run.aims} == AIMS
    found = {figure["name"]: figure["value"] for figure in run.figures}
    assert {"poll of all, p99", "begin_turn, p99", "3 commands, together, p99"} <= found.keys()
    assert {name for name, value in found.items() if value <= 0} <= {"frames missed", "processor time in a second"}
    assert "trio's guest" in run.err


def test_every_frame_works_takes_events_and_waits() -> None:
    done: list[str] = []
    frames = play_frames(3, lambda: done.append("took"), lambda due: done.append("waited"))
    assert done == ["took", "waited"] * 3
    assert len(frames.work) == len(frames.between) == 3
    # The beginning of the next frame comes after the end of the work.
    assert all(work <= between for work, between in zip(frames.work, frames.between, strict=True))


def test_a_guest_runs_between_the_frames() -> None:
    with guest_stage(cast_of(paced), players=3) as guest:
        guest.begin_turns()
        while not guest.came:
            play_frames(1, list, guest.wait_until)
        guest.end_turns()
        speakers = {event.session_id for event in guest.came}
        guest.take_events()
        assert guest.came == []
    assert len(speakers) == 3
