"""Cancellation kit: explores every point at which trio code can be cancelled. Knows trio, and nothing of Footlights.

- `cancel_everywhere(scenario)`: cancel an async function at every point.
- `quiesced_threads()`, `Gate`: worker threads in step with virtual time.
"""

from footlights_kit.explore import Exploration, cancel_everywhere
from footlights_kit.quiesce import Gate, quiesced_threads
from footlights_kit.trial import Trial
from footlights_kit.verdicts import (
    Deadlocked,
    Diverged,
    ExplorationFailed,
    HooksMoved,
    Runaway,
    TasksLeaked,
    ThreadStuck,
)

__all__ = [
    "Deadlocked",
    "Diverged",
    "Exploration",
    "ExplorationFailed",
    "Gate",
    "HooksMoved",
    "Runaway",
    "TasksLeaked",
    "ThreadStuck",
    "Trial",
    "cancel_everywhere",
    "quiesced_threads",
]
