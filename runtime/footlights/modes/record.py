"""Records of the three stages: what a request asks for, what that requires, and what was allowed.

Every string in a record is the id of a rule, feature or classifier, or a value of a closed set. A record holds no word
of the message, so it can be stored, shown and logged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from attrs import frozen

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights.params import Mode


class IntentKind(StrEnum):
    """What a message asks for."""

    CONVERSATIONAL = "conversational"
    """A conversation: an answer, an explanation, an opinion."""
    EXECUTION = "execution"
    """Work: something must be executed before the request can be answered."""


class Activity(StrEnum):
    """Kinds of work."""

    SEARCH = "search"
    """Find or read documents."""
    SIMULATE = "simulate"
    """Run a simulation."""
    EVALUATE = "evaluate"
    """Analyse, compare or measure."""
    GENERATE = "generate"
    """Make a cohort, a report, a table."""
    CHANGE = "change"
    """Change something that is kept."""
    DELETE = "delete"
    """Delete or overwrite something that is kept."""
    TOOL = "tool"
    """Use a tool that the message names."""
    UNNAMED = "unnamed"
    """Run something, without saying what."""


class Condition(StrEnum):
    """Conditions under which a request requires execution. Any one is enough."""

    WORK_REQUESTED = "work_requested"
    """A simulation, search or analysis is requested."""
    TOOLS_NEEDED = "tools_needed"
    """Tools or engines must be invoked."""
    ARTIFACTS = "artifacts"
    """Artifacts will be generated or modified."""
    SEVERAL_PASSES = "several_passes"
    """It cannot be fulfilled in a single pass."""


class Confirmation(StrEnum):
    """The only reasons to ask before executing."""

    AMBIGUOUS = "ambiguous"
    """The message does not say what to work on."""
    DESTRUCTIVE = "destructive"
    """The request deletes or overwrites something."""
    DIFFERENT_PATHS = "different_paths"
    """The request offers a choice between different kinds of work."""


class Candidate(StrEnum):
    """The mode that a request requires, before authorization."""

    CHAT = "chat_candidate"
    """The request can be answered in text."""
    EXECUTION = "execution_candidate"
    """The request requires execution."""


class ExecutionPolicy(StrEnum):
    """What the endpoint or the client allows."""

    DENY = "deny"
    """Never execute; explain what could be executed."""
    AUTO = "auto"
    """Execute requests that require it."""
    FORCE = "force"
    """Execute every request."""


class Assistance(StrEnum):
    """How the answer of a classifier was used."""

    USED = "used"
    """The answer decided."""
    ABSTAINED = "abstained"
    """The classifier abstained; the rules decided."""
    OVERRULED = "overruled"
    """The message forbids execution, which no classifier can lift."""
    FAILED = "failed"
    """The classifier raised, or its answer was invalid; the rules decided."""


@frozen(kw_only=True)
class Intent:
    """Record of the first stage: what a message asks for."""

    kind: IntentKind
    """Conversation or work."""
    activities: tuple[str, ...] = ()
    """The kinds of work, in the order of the message."""
    rule_ids: tuple[str, ...] = ()
    """The rules that took something out of the message, and the hints of the host that applied; or `approval`."""
    vetoes: tuple[str, ...] = ()
    """The rules that matched a ban on any execution."""
    score: int | None = None
    """How far the clause that asks most clearly is from chat; positive for work, None without one."""
    features: tuple[str, ...] = ()
    """The features of that clause that weigh most, as references: `feature_named` gives their names."""
    conditions: tuple[Condition, ...] = ()
    """The conditions that the requests meet, in the order of `Condition`."""
    confirmation: Confirmation | None = None
    """The reason to ask before executing."""
    classifier: str | None = None
    """The id of the classifier that was asked."""
    assistance: Assistance | None = None
    """How its answer was used."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """The record as plain JSON."""
        return {
            "kind": self.kind.value,
            "activities": [str(each) for each in self.activities],
            "rule_ids": list(self.rule_ids),
            "vetoes": list(self.vetoes),
            "score": self.score,
            "features": list(self.features),
            "classifier": self.classifier,
            "assistance": None if self.assistance is None else self.assistance.value,
        }


class Determination(NamedTuple):
    """Record of the second stage: the mode that the intent requires, and why."""

    candidate: Candidate
    conditions: tuple[Condition, ...]


@frozen(kw_only=True)
class ModeDecision:
    """Record of all three stages for one request."""

    intent: Intent
    """What the message asks for."""
    candidate: Candidate
    """The mode that this requires."""
    conditions: tuple[Condition, ...]
    """Why it requires that mode."""
    policy: ExecutionPolicy
    """What the endpoint or the client allows."""
    mode: Mode
    """The mode of the turn, from its first event to its last."""
    confirmation: Confirmation | None
    """The reason to ask before executing, if there is one."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """The record as plain JSON: ids and values of closed sets, never a word of the message."""
        return {
            "intent": self.intent.document,
            "candidate": self.candidate.value,
            "conditions": [each.value for each in self.conditions],
            "policy": self.policy.value,
            "mode": self.mode.value,
            "confirmation": None if self.confirmation is None else self.confirmation.value,
        }
