"""Cancellation kit: explores every point at which trio code can be cancelled. Knows trio, and nothing of Footlights.

- `cancel_everywhere(scenario)`: cancel an async function at every point.
- `fail_everywhere(scenario, OSError)`: raise an error at every await, or Ctrl-C at every line.
- `quiesced_threads()`, `Gate`: worker threads in step with virtual time.
- `footlights_kit.plugin`: a marker, an option and a clock for pytest, which loads it by itself.
"""

from footlights_kit.explore import cancel_everywhere, fail_everywhere
from footlights_kit.explorer import Exploration
from footlights_kit.quiesce import Gate, quiesced_threads
from footlights_kit.trial import Trial
from footlights_kit.verdicts import (
    CancelSwallowed,
    CleanupCut,
    Deadlocked,
    Diverged,
    ExplorationFailed,
    GraceExceeded,
    HooksMoved,
    LocksHeld,
    ResourcesLeaked,
    Runaway,
    TasksLeaked,
    ThreadStuck,
)

__all__ = [
    "CancelSwallowed",
    "CleanupCut",
    "Deadlocked",
    "Diverged",
    "Exploration",
    "ExplorationFailed",
    "Gate",
    "GraceExceeded",
    "HooksMoved",
    "LocksHeld",
    "ResourcesLeaked",
    "Runaway",
    "TasksLeaked",
    "ThreadStuck",
    "Trial",
    "cancel_everywhere",
    "fail_everywhere",
    "quiesced_threads",
]
