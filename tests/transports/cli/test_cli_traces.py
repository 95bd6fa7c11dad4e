"""`footlights play --trace` writes a trace, and `footlights laws` can read it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.kit.command import footlights

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FOOTLIGHTS = (sys.executable, "-m", "footlights_transports")
SAID = "Any rooms?\nrent the attic\n"


def judge(monkeypatch: pytest.MonkeyPatch, path: Path) -> int:
    return footlights(monkeypatch, "laws", str(path))


def test_a_play_can_be_traced_and_its_trace_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = tmp_path / "traces"
    done = subprocess.run(
        (*FOOTLIGHTS, "play", "--trace", str(traces)), input=SAID, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    path = traces / "interaction_trace.jsonl"
    assert judge(monkeypatch, path) == 0
    assert capsys.readouterr().out.endswith(" events, 2 turns: lawful\n")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert judge(monkeypatch, path) == 1
    assert "seq_gap" in capsys.readouterr().out


def test_a_play_that_cannot_be_traced_is_played_all_the_same(tmp_path: Path) -> None:
    in_the_way = tmp_path / "traces"
    in_the_way.write_bytes(b"mine")
    done = subprocess.run(
        (*FOOTLIGHTS, "play", "--trace", str(in_the_way)), input=SAID, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.count("committed c-") == 2
    assert done.stderr.splitlines()[0] == "The trace cannot be written: FileExistsError 17"
