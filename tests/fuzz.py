"""Fuzzing: the property tests with new examples, round after round, for as long as you say. `make fuzz MINUTES=10`.

Each round has a seed, which is printed, and which makes the same examples again: `make fuzz SEED=...` runs that
round alone. It ends at the first failure, or with the round that is running when the time is over. Other arguments
are for pytest.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time

PYTEST = ("-m", "pytest", "-q", "-x", "-m", "hypothesis", "--hypothesis-profile=fuzz")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, help="run this round alone")
    chosen, for_pytest = options.parse_known_args()
    if chosen.seed is not None:
        return run_round(chosen.seed, for_pytest)
    end = time.monotonic() + chosen.minutes * 60
    while time.monotonic() < end:
        if failed := run_round(secrets.randbelow(2**32), for_pytest):
            return failed
    print("Nothing was found.")
    return 0


def run_round(seed: int, for_pytest: list[str]) -> int:
    how_to_replay = f"seed {seed}; to replay: make fuzz SEED={seed}"
    print(how_to_replay, flush=True)
    failed = subprocess.run([sys.executable, *PYTEST, f"--hypothesis-seed={seed}", *for_pytest]).returncode
    if failed:
        print(f"Found with {how_to_replay}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
