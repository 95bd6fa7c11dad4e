"""Closing an event: what an operator may say about it, and the debrief that tells so.

A debrief is never surer than what it closes. It quotes what changed, with the claims and the evidence of that, unless
that broke a rule of the contract; the operator's own words have only the evidence that comes with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import InvalidCommand
from footlights_transports.views.mission.pure.payload import MissionEvent
from footlights_transports.views.mission.pure.policy import broken_rules
from footlights_transports.views.mission.pure.requests import read_callout, read_text
from footlights_transports.views.mission.pure.terms import Certainty, MissionEventType, least_certain
from footlights_transports.views.mission.pure.text import NOT_STATED, WHY_IT_MATTERS_CHARS, compose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.views.mission.pure.payload import Context

MAX_WORDS_CHARS = WHY_IT_MATTERS_CHARS - len("IMPACT: ")
"""What an operator may say: all of it is told, in one line."""
_OF_THE_WORDS = ("text_certainty", "evidence_refs")
FIELDS = (
    *("context_tier", "session_state", "voice_mode", "tenant_id"),
    *("text", *_OF_THE_WORDS, "operator_ref", "policy_ts_ms"),
)


@frozen(kw_only=True)
class Closing:
    """What an operator says when an event is closed, and who listens."""

    context: Context
    words: str | None = None
    """What came of it; without any, what had changed is told again."""
    certainty: Certainty = Certainty.UNKNOWN
    """How sure the words are."""
    evidence_refs: tuple[str, ...] = ()
    """Where the words can be checked."""
    operator_ref: str | None = None
    policy_ts_ms: int | None = None


def read_closing(fields: Mapping[str, object]) -> Closing:
    """A closing of plain JSON. Raises `InvalidCommand`."""
    for name in fields:
        if name not in FIELDS:
            raise InvalidCommand("The request has a field that is not known.")
    stated = {name: value for name, value in fields.items() if value is not None}
    words = stated.pop("text", None)
    for name in _OF_THE_WORDS:
        if words is None and name in stated:
            raise InvalidCommand(f"{name}: belongs to a text, and there is none")
    read = read_callout({"text": NOT_STATED, **stated}, "closing")
    return Closing(
        context=read.context,
        words=None if words is None else read_text("text", words, MAX_WORDS_CHARS),
        certainty=read.event.certainty,
        evidence_refs=read.event.evidence_refs,
        operator_ref=read.event.operator_ref,
        policy_ts_ms=read.policy_ts_ms,
    )


def debrief_of(trigger: MissionEvent, closing: Closing, event_id: str) -> MissionEvent:
    """What is told when an event is closed."""
    if closing.words is None:
        impact = NOT_STATED if any(broken_rules(trigger)) else trigger.text.change
        certainty, refs = trigger.supported_certainty, trigger.evidence_refs
    else:
        impact = " ".join(closing.words.split())
        certainty = least_certain(trigger.supported_certainty, closing.certainty)
        refs = closing.evidence_refs
    kind = MissionEventType.DEBRIEF, trigger.classification
    return MissionEvent(
        mission_id=trigger.mission_id,
        event_id=event_id,
        event_type=kind[0],
        classification=kind[1],
        text=compose(*kind, change="An operator has closed this.", impact=impact, evidence_refs=refs),
        certainty=certainty,
        voice_certainty=least_certain(certainty, trigger.claimed_by_voice),
        evidence_refs=refs,
        repo_attributed=trigger.repo_attributed,
        system_state_claim=trigger.system_state_claim,
        deterministic=trigger.deterministic,
        operator_ref=closing.operator_ref or f"ack:{trigger.event_id}",
    )
