"""`make fuzz`: what it finds can be found again."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "fuzz.py"
PROPERTY = """
from hypothesis import given, strategies as st

seen = []

@given(st.integers())
def test_it(number):
    seen.append(number)
    assert len(seen) < 20, f"seen: {seen[:20]}"
"""


def run_fuzz(*arguments: str) -> str:
    done = subprocess.run([sys.executable, FUZZ, *arguments], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_the_seed_that_it_prints_replays_what_it_found(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(PROPERTY)
    shutil.copy(FUZZ.with_name("conftest.py"), tmp_path)
    first = run_fuzz("--minutes", "1", str(path))
    found = re.search(r"Found with seed (\d+); to replay: make fuzz SEED=\1\n", first)
    assert found is not None, first
    replayed = run_fuzz("--seed", found[1], str(path))
    assert examples(replayed) == examples(first) != []


def examples(printed: str) -> list[str]:
    return re.findall(r"seen: \[.*\]", printed)[:1]
