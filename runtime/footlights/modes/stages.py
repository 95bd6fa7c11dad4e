"""Mode decision: `determine` and `authorize`, and `decide`, which runs them after detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.checks import member
from footlights.modes.classifier import consult
from footlights.modes.detection import detect
from footlights.modes.record import Candidate, Determination, ExecutionPolicy, ModeDecision
from footlights.modes.standard import STANDARD_RULES
from footlights.params import Mode

if TYPE_CHECKING:
    from footlights.modes.classifier import Classifier
    from footlights.modes.record import Intent
    from footlights.modes.rules import IntentRules


def determine(intent: Intent) -> Determination:
    """The mode that an intent requires: execution if it meets any of the four conditions, else chat."""
    candidate = Candidate.EXECUTION if intent.conditions else Candidate.CHAT
    return Determination(candidate, intent.conditions)


def authorize(candidate: Candidate, policy: ExecutionPolicy) -> Mode:
    """The mode that is allowed: never execution under `deny`, always under `force`."""
    if policy == ExecutionPolicy.FORCE or (policy == ExecutionPolicy.AUTO and candidate == Candidate.EXECUTION):
        return Mode.EXECUTION
    return Mode.CHAT


def decide(
    message: str,
    policy: ExecutionPolicy,
    rules: IntentRules = STANDARD_RULES,
    classifier: Classifier | None = None,
) -> ModeDecision:
    """All three stages, for one message. The same message, policy and rules always give the same record.

    Raises `InvalidCommand` for a policy that does not exist.
    """
    intent = detect(message, rules)
    if classifier is not None:
        intent = consult(classifier, message, intent, rules)
    return conclude(intent, policy)


def conclude(intent: Intent, policy: ExecutionPolicy) -> ModeDecision:
    """The second and third stage, for an intent that is already known.

    Raises `InvalidCommand` for a policy that does not exist.
    """
    policy = member(ExecutionPolicy, "execution_policy", policy)
    candidate, conditions = determine(intent)
    return ModeDecision(
        intent=intent,
        candidate=candidate,
        conditions=conditions,
        policy=policy,
        mode=authorize(candidate, policy),
        confirmation=intent.confirmation if candidate is Candidate.EXECUTION else None,
    )
