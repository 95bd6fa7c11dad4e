"""Mode decision: chat or execution, in three stages. Each stage is a pure function with its own record.

    decision = decide("Simulate 200 people", ExecutionPolicy.AUTO)
    decision.mode          # Mode.EXECUTION
    decision.document      # rule ids and values of closed sets, never a word of the message

`detect` finds what a message asks for, `determine` the mode that this requires, `authorize` the mode that is allowed.
Nothing here reads a clock, uses randomness or does I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights.modes.classifier import Classification, Classifier, heed
    from footlights.modes.detection import detect
    from footlights.modes.record import (
        Activity,
        Assistance,
        Candidate,
        Condition,
        Confirmation,
        Determination,
        ExecutionPolicy,
        Intent,
        IntentKind,
        ModeDecision,
    )
    from footlights.modes.rules import NO_HINTS, ModeHints
    from footlights.modes.stages import authorize, conclude, decide, determine
    from footlights.modes.weights import feature_named

__all__ = [
    "NO_HINTS",
    "Activity",
    "Assistance",
    "Candidate",
    "Classification",
    "Classifier",
    "Condition",
    "Confirmation",
    "Determination",
    "ExecutionPolicy",
    "Intent",
    "IntentKind",
    "ModeDecision",
    "ModeHints",
    "authorize",
    "conclude",
    "decide",
    "detect",
    "determine",
    "feature_named",
    "heed",
]

_HOMES = {
    "footlights.modes.classifier": "Classification Classifier heed",
    "footlights.modes.detection": "detect",
    "footlights.modes.record": (
        "Activity Assistance Candidate Condition Confirmation Determination ExecutionPolicy Intent IntentKind "
        "ModeDecision"
    ),
    "footlights.modes.rules": "NO_HINTS ModeHints",
    "footlights.modes.stages": "authorize conclude decide determine",
    "footlights.modes.weights": "feature_named",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
