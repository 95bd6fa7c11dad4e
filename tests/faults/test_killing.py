"""Durable before told: a hundred processes, each killed while it commits as fast as it can."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KILLS = 100


def test_a_process_that_is_killed_leaves_nothing_half_done_and_nothing_untold() -> None:
    command = [sys.executable, str(Path(__file__).with_name("killing.py")), "--kills", str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == KILLS
    assert told["commits"] == told["turns"] > KILLS
    assert told["tool_steps"] > KILLS
    assert told["forgotten"] > KILLS, "turns whose end only the ledger could tell"
