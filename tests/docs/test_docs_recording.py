"""The recording of `footlights play`: in asciinema's format, shown as a still in the README, and of today's words."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from footlights_transports.cli.new.command import make_game
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

RECORDING: dict[str, Any] = runpy.run_path(str(ROOT / "docs/generate/recording.py"))
CAST = ROOT / "docs/recording/play.cast"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_recording_is_in_the_format_of_asciinema() -> None:
    header, *rows = [json.loads(line) for line in CAST.read_text(encoding="utf-8").splitlines()]
    assert (header["version"], header["width"], header["height"]) == (2, 80, 19)
    times = [at for at, _, _ in rows]
    assert times == sorted(times)
    assert {kind for _, kind, _ in rows} == {"o"}


def test_the_still_in_the_readme_is_the_last_picture_of_the_recording() -> None:
    assert f"<!-- generated: still -->\n\n{RECORDING['still']()}\n\n<!-- end -->" in README


def test_the_recording_shows_a_cancel_and_a_commit() -> None:
    still = RECORDING["still"]()
    assert "^C" in still
    assert re.search(r"✗ interrupted: canceled\n  ✗ nothing changed \(fail_closed c-\w{16}\)\n", still)
    assert re.search(r"✓ committed c-\w{16}\n  · boat: south; purse: 3\n", still)


def test_the_recording_shows_what_play_shows_today(tmp_path: Path) -> None:
    game = make_game("my-game", tmp_path)
    play = [sys.executable, "-m", "footlights_transports", "play"]
    said = "Take me to the south bank\n"
    done = subprocess.run(play, input=said, capture_output=True, text=True, timeout=60, cwd=game)
    lines = [line for line in done.stdout.splitlines() if "committed" not in line]  # its digest depends on the cancel
    assert len(lines) == 6
    still = RECORDING["still"]().splitlines()
    assert [line for line in lines if line not in still] == [], "Run: make recording"
    assert done.stderr.strip() in still


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("one\rtw", ["twe"]),
        ("one\b\bxy", ["oxy"]),
        ("one\r\x1b[Ktwo", ["two"]),
        ("one\x1b[2K\rtwo", ["two"]),
        ("\x1b[?2004h\x1b[1;32mone\x1b[0m\x07", ["one"]),
        ("1\r\n2\r\n3\r\n4", ["2", "3", "4"]),
    ],
)
def test_a_picture_is_what_a_terminal_shows(text: str, lines: list[str]) -> None:
    assert RECORDING["picture"](text, 3) == lines


def test_a_picture_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown control sequence"):
        RECORDING["picture"]("\x1b[5A", 3)
