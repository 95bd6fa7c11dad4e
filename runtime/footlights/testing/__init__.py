"""Public test kit: for the tests of Footlights, of its hosts, and of any trio project.

- `cancel_everywhere(scenario)`, `fail_everywhere(scenario, error)` and all else of `footlights_kit`.
- `take_turn(session, said)`, `payloads(events, kind)`, `only(events, kind)`: run a whole turn, and inspect it.
- `witness()`: check every stream against the laws; the pytest plugin `footlights.testing.plugin` does so in each test.
- `check_ledger(open_ledger)`: check any ledger against the contract of `footlights.Ledger`.
- `faults`: models, tools, subscribers and ledgers that fail on cue.
- `streams`: Hypothesis strategies of lawful streams (needs Hypothesis, so it is not imported here).
"""

from footlights.testing import faults
from footlights.testing.ledger_contract import check_ledger
from footlights.testing.turn_helpers import only, payloads, take_turn
from footlights.testing.witness import LawsBroken, Witness, witness
from footlights_kit import (
    CancelSwallowed,
    CleanupCut,
    Deadlocked,
    Diverged,
    Exploration,
    ExplorationFailed,
    Gate,
    GraceExceeded,
    HooksMoved,
    LocksHeld,
    ResourcesLeaked,
    Runaway,
    TasksLeaked,
    ThreadStuck,
    Trial,
    cancel_everywhere,
    fail_everywhere,
    quiesced_threads,
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
    "LawsBroken",
    "LocksHeld",
    "ResourcesLeaked",
    "Runaway",
    "TasksLeaked",
    "ThreadStuck",
    "Trial",
    "Witness",
    "cancel_everywhere",
    "check_ledger",
    "fail_everywhere",
    "faults",
    "only",
    "payloads",
    "quiesced_threads",
    "take_turn",
    "witness",
]
