"""Raised events: what the rules and the tools of a game call out.

A rule commits one as an artifact:

    siren = RaisedEvent(THREAT_UPDATE, CRITICAL, CONFIRMED, "The siren sounds.", next_action="Leave by the window now.")
    return accept(patch.replace("/siren", "on"), artifacts=[siren.artifact])

A tool stages one as an intent, `context.request_commit(siren.intent(context.tool_call_id))`, and the rule
`raise_events` commits it. So an event is called out when its turn is committed, and never if the turn is interrupted
or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import asdict, field, frozen

from footlights.authority.artifacts import Artifact
from footlights.authority.intents import Intent, IntentType
from footlights.authority.rules import accept
from footlights_transports.views.mission.pure.terms import Certainty, Classification, MissionEventType
from footlights_transports.views.mission.pure.text import NOT_STATED

if TYPE_CHECKING:
    from footlights.authority.rules import Ruling

KIND = "mission.event"
"""The kind of the artifacts."""


@frozen
class RaisedEvent:
    """An event of the game. Its words are the game's own: they must not quote people or models.

    Raises `ValueError` and `TypeError` for what it cannot be.
    """

    event_type: MissionEventType = field(converter=MissionEventType)
    classification: Classification = field(converter=Classification)
    certainty: Certainty = field(converter=Certainty)
    change: str
    """What is different now: one sentence."""
    impact: str = NOT_STATED
    """What that means for the mission, and what is at risk."""
    next_action: str = NOT_STATED
    """What to do, to what, and by when."""
    evidence: tuple[str, ...] = field(default=(), converter=tuple[str, ...], kw_only=True)
    """Where it can be checked, besides the turn and its commit."""
    operator_ref: str | None = field(default=None, kw_only=True)
    """The operator's action to which a debrief belongs."""

    def __attrs_post_init__(self) -> None:
        refs = self.evidence if self.operator_ref is None else (*self.evidence, self.operator_ref)
        if not all(type(each) is str for each in (self.change, self.impact, self.next_action, *refs)):
            raise TypeError("The words of an event must be strings.")

    @property
    def artifact(self) -> Artifact:
        """The artifact that commits it."""
        return Artifact(KIND, self._document)

    def intent(self, ref: str) -> Intent:
        """The intent of a tool call that `raise_events` commits."""
        return Intent(IntentType.TOOL_RESULT, ref, {KIND: self._document})

    @property
    def _document(self) -> dict[str, Any]:
        plain = {"event_type": self.event_type.value, "classification": self.classification.value}
        return {**asdict(self), **plain, "certainty": self.certainty.value, "evidence": list(self.evidence)}


def raise_events(_: object, intents: tuple[Intent, ...]) -> Ruling:
    """Rule that commits the events which tools have raised."""
    documents = [each.payload for each in intents if each.type is IntentType.TOOL_RESULT]
    return accept(artifacts=[Artifact(KIND, each[KIND]) for each in documents if type(each) is dict and KIND in each])


def raised(artifact: Artifact) -> RaisedEvent | None:
    """The event that an artifact raises; None if it is of another kind or shape."""
    if artifact.kind != KIND or not isinstance(artifact.data, dict):
        return None
    try:
        return RaisedEvent(**artifact.data)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - it checks
    except (TypeError, ValueError):
        return None
