"""The public test kit: for Footlights' own tests, for yours, and for any trio project.

- `cancel_everywhere(scenario)`: cancel any async function at every point it has.
- `take_turn(session, said)`, `payloads(events, kind)`, `only(events, kind)`: take a whole turn, and look at it.
- `witness()`: hold every stream to the laws; the pytest plugin `footlights.testing.plugin` does it around each test.
- `quiesced_threads()`, `Gate`: worker threads that keep step with virtual time.
- `faults`: models, tools, subscribers and ledgers that misbehave on cue.
- `streams`: Hypothesis strategies of lawful streams (needs Hypothesis, so it is not imported from here).
"""

from footlights.testing import faults
from footlights.testing.explore import Exploration, cancel_everywhere
from footlights.testing.ledger_contract import check_ledger
from footlights.testing.quiesce import Gate, quiesced_threads
from footlights.testing.reading import only, payloads, take_turn
from footlights.testing.trial import Trial
from footlights.testing.verdicts import (
    Deadlocked,
    Diverged,
    ExplorationFailed,
    HooksMoved,
    Runaway,
    TasksLeaked,
    ThreadStuck,
)
from footlights.testing.witness import LawsBroken, Witness, witness

__all__ = [
    "Deadlocked",
    "Diverged",
    "Exploration",
    "ExplorationFailed",
    "Gate",
    "HooksMoved",
    "LawsBroken",
    "Runaway",
    "TasksLeaked",
    "ThreadStuck",
    "Trial",
    "Witness",
    "cancel_everywhere",
    "check_ledger",
    "faults",
    "only",
    "payloads",
    "quiesced_threads",
    "take_turn",
    "witness",
]
