"""Mission event, listener and payload: the input and the output of the callout policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights_transports.views.mission.pure.terms import (
    PAYLOAD_VERSION,
    Certainty,
    Classification,
    LimitScope,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    Tier,
    VoiceMode,
    least_certain,
)

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights_transports.views.mission.pure.text import TextPayload


@frozen(kw_only=True)
class MissionEvent:
    """An event of a mission, with its text and its claims."""

    mission_id: str
    event_id: str
    event_type: MissionEventType
    classification: Classification
    text: TextPayload
    certainty: Certainty = Certainty.UNKNOWN
    """How certain the text is."""
    voice_certainty: Certainty | None = None
    """How certain the voice is; by default as certain as the text."""
    mode: SpeechMode | None = None
    """The format of the voice; by default that of the matrix row."""
    evidence_refs: tuple[str, ...] = ()
    """Where the event can be checked."""
    repo_attributed: bool = False
    """Whether it makes a claim about the sources of the project."""
    system_state_claim: bool = False
    """Whether it makes a claim about the state of the system."""
    operator_ref: str | None = None
    """The operator's action to which a debrief belongs."""

    @property
    def claimed_by_voice(self) -> Certainty:
        """How certain the voice would be. The default is never more certain than the text."""
        return self.certainty if self.voice_certainty is None else self.voice_certainty

    @property
    def has_evidence(self) -> bool:
        """Whether there are refs, and the text does not deny it."""
        return self.text.names_evidence and any(ref.strip() for ref in self.evidence_refs)

    @property
    def supported_certainty(self) -> Certainty:
        """The certainty that the evidence supports: a claim without evidence is a hypothesis at best."""
        if (self.repo_attributed or self.system_state_claim) and not self.has_evidence:
            return least_certain(self.certainty, Certainty.HYPOTHESIS)
        return self.certainty


def own_name(user_id: str | None, name: str) -> str:
    """The full name of the mission that a user calls so: it begins with the user's name, as that of a session does."""
    own = "" if user_id is None else f"{user_id}:"
    return name if name.startswith(own) else f"{own}{name}"


@frozen(kw_only=True)
class Context:
    """The listener. The defaults allow no voice."""

    tier: Tier = Tier.TEXT_ONLY
    session_state: SessionState = SessionState.IDLE
    voice_mode: VoiceMode = VoiceMode.NORMAL
    tenant_id: str = "default"
    """The tenant whose budget is used. Missions of different tenants are different missions."""
    user_id: str | None = None
    """The user who owns the tenant, if the server has users. The number of tenants per user is limited."""

    def of_user(self, user_id: str | None) -> Context:
        """The same listener for a tenant of this user. Tenants of different users are different tenants."""
        if user_id is None:
            return self
        return evolve(self, user_id=user_id, tenant_id=f"{user_id}:{self.tenant_id}")


@frozen(kw_only=True)
class VoicePayload:
    """The spoken part of a payload."""

    mode: SpeechMode
    text: str
    certainty: Certainty

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {"mode": self.mode.value, "text": self.text, "certainty_class": self.certainty.value}


@frozen(kw_only=True)
class Suppression:
    """Whether the voice is suppressed, and why."""

    dedupe_key: str
    """Equal for the same words about the same kind of event in the same mission."""
    reason: SuppressionReason | None = None
    cooldown_ms: int = 0
    """The time until this reason no longer applies, if only time is needed."""
    scope: LimitScope | None = None
    """The owner of the limit that was reached. Not part of the document."""

    @property
    def suppressed(self) -> bool:
        return self.reason is not None

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {
            "suppressed": self.suppressed,
            "reason": None if self.reason is None else self.reason.value,
            "cooldown_ms": self.cooldown_ms,
            "dedupe_key": self.dedupe_key,
        }


@frozen(kw_only=True)
class UtilityPayload:
    """The outcome for an event: always its text, and its voice unless that is suppressed."""

    mission_id: str
    event_id: str
    event_type: MissionEventType
    classification: Classification
    certainty: Certainty
    """How certain the text is, given its evidence."""
    evidence_refs: tuple[str, ...]
    text: TextPayload
    voice: VoicePayload | None
    suppression: Suppression
    tenant_id: str = "default"
    """The tenant of the mission. Not part of the document."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """As `dottie.utility.v1`."""
        return {
            "contract_version": PAYLOAD_VERSION,
            "mission_id": self.mission_id,
            "event_id": self.event_id,
            "event_type": self.event_type.value,
            "classification": self.classification.value,
            "certainty_class": self.certainty.value,
            "evidence_refs": list(self.evidence_refs),
            "text_payload": {**self.text.document},
            "voice_payload": None if self.voice is None else self.voice.document,
            "suppression": self.suppression.document,
        }

    def silenced(self, reason: SuppressionReason, cooldown_ms: int) -> UtilityPayload:
        """The same payload without its voice."""
        return evolve(self, voice=None, suppression=evolve(self.suppression, reason=reason, cooldown_ms=cooldown_ms))
