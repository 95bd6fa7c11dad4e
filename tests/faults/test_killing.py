"""Commits are durable before they are announced: many processes, each killed while it commits at full speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("kills", [15, pytest.param(100, marks=pytest.mark.long)])
def test_a_process_that_is_killed_leaves_nothing_half_done_and_nothing_untold(kills: int) -> None:
    command = [sys.executable, str(Path(__file__).with_name("killing.py")), "--kills", str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == kills
    assert told["commits"] == told["turns"] > kills
    assert told["tool_steps"] > kills
    assert told["forgotten"] > kills, "turns whose end only the ledger could tell"
