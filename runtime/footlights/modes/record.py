"""What is written down about a request: what it asks for, what that takes, and what was allowed.

Every string in these records is a rule's id, a classifier's id or a value of a closed set. No word of the message is
ever in them, so they can be kept, shown and logged.
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
    """Words: an answer, an explanation, an opinion."""
    EXECUTION = "execution"
    """Work: something has to be run before it can be answered."""


class Activity(StrEnum):
    """What the standard rules can recognise. A host's own rules may name others."""

    SEARCH = "search"
    """Find or read documents."""
    SIMULATE = "simulate"
    """Run a simulation."""
    EVALUATE = "evaluate"
    """Analyse, compare or measure."""
    GENERATE = "generate"
    """Make a cohort, a report, a table."""
    CHANGE = "change"
    """Alter something that is kept."""
    DELETE = "delete"
    """Delete or overwrite something that is kept."""
    TOOL = "tool"
    """Use a tool that the message names."""
    UNNAMED = "unnamed"
    """Run something, without saying what."""


class Condition(StrEnum):
    """Why a request would require execution. Any one is enough."""

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
    """It does not say what to work on."""
    DESTRUCTIVE = "destructive"
    """It deletes or overwrites something."""
    DIFFERENT_PATHS = "different_paths"
    """It offers a choice between different kinds of work."""


class Candidate(StrEnum):
    """The mode that a request calls for, whatever is allowed."""

    CHAT = "chat_candidate"
    """It can be answered in words."""
    EXECUTION = "execution_candidate"
    """It would require execution."""


class ExecutionPolicy(StrEnum):
    """What the endpoint or the client allows."""

    DENY = "deny"
    """Never execute; say what could be run."""
    AUTO = "auto"
    """Execute what calls for it."""
    FORCE = "force"
    """Execute, whatever was asked."""


class Assistance(StrEnum):
    """What became of a classifier's answer."""

    USED = "used"
    """It decided."""
    ABSTAINED = "abstained"
    """It had no opinion; the rules decided."""
    OVERRULED = "overruled"
    """The message itself forbids execution, and no classifier may lift that."""
    FAILED = "failed"
    """It raised, or its answer made no sense; the rules decided."""


@frozen(kw_only=True)
class Intent:
    """The first stage: what a message asks for."""

    kind: IntentKind
    """Words or work."""
    activities: tuple[str, ...] = ()
    """What work, in the order of the message."""
    rule_ids: tuple[str, ...] = ()
    """The rules that found a request."""
    negated: tuple[str, ...] = ()
    """The rules that found something the message forbids or takes back."""
    mentioned: tuple[str, ...] = ()
    """The rules that found something the message only talks about."""
    vetoes: tuple[str, ...] = ()
    """The rules that found a ban on any execution."""
    conditions: tuple[Condition, ...] = ()
    """What the requests take, in the order of `Condition`."""
    confirmation: Confirmation | None = None
    """Why one should ask first."""
    classifier: str | None = None
    """The id of the classifier that was asked."""
    assistance: Assistance | None = None
    """What became of its answer."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """The record as plain JSON."""
        return {
            "kind": self.kind.value,
            "activities": [str(each) for each in self.activities],
            "rule_ids": list(self.rule_ids),
            "negated": list(self.negated),
            "mentioned": list(self.mentioned),
            "vetoes": list(self.vetoes),
            "classifier": self.classifier,
            "assistance": None if self.assistance is None else self.assistance.value,
        }


class Determination(NamedTuple):
    """The second stage: the mode that the intent calls for, and why."""

    candidate: Candidate
    conditions: tuple[Condition, ...]


@frozen(kw_only=True)
class ModeDecision:
    """All three stages of one request."""

    intent: Intent
    """What was asked."""
    candidate: Candidate
    """What that calls for."""
    conditions: tuple[Condition, ...]
    """Why."""
    policy: ExecutionPolicy
    """What was allowed."""
    mode: Mode
    """What the turn runs in, from its first event to its last."""
    confirmation: Confirmation | None
    """Why one should ask before executing; nothing else is a reason to ask."""

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
