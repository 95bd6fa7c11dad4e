"""A callout: what is known when it is asked for, and what became of it."""

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
    """What happened, and how it would be told."""

    mission_id: str
    event_id: str
    event_type: MissionEventType
    classification: Classification
    text: TextPayload
    certainty: Certainty = Certainty.UNKNOWN
    """How sure the text is."""
    voice_certainty: Certainty | None = None
    """How sure the voice is; without it as sure as the text."""
    mode: SpeechMode | None = None
    """How it is spoken; without it as its row of the matrix says."""
    evidence_refs: tuple[str, ...] = ()
    """Where it can be checked."""
    repo_attributed: bool = False
    """Whether it claims something about the sources of the project."""
    system_state_claim: bool = False
    """Whether it claims something about the state of the system."""
    operator_ref: str | None = None
    """What an operator did, or what came of it, to which a debrief belongs."""
    deterministic: bool = True
    """Whether the same inputs would have given the same text."""

    @property
    def claimed_by_voice(self) -> Certainty:
        """How sure the voice would be. A default never makes it surer than the text."""
        return self.certainty if self.voice_certainty is None else self.voice_certainty

    @property
    def has_evidence(self) -> bool:
        """Whether there are refs, and the text does not say that there are none."""
        return self.text.names_evidence and any(ref.strip() for ref in self.evidence_refs)

    @property
    def supported_certainty(self) -> Certainty:
        """How sure one may be with this evidence: without any, a claim that needs some is a hypothesis at best."""
        if (self.repo_attributed or self.system_state_claim) and not self.has_evidence:
            return least_certain(self.certainty, Certainty.HYPOTHESIS)
        return self.certainty


@frozen(kw_only=True)
class Context:
    """Who would hear it, and where. What is not known keeps it silent."""

    tier: Tier = Tier.TEXT_ONLY
    session_state: SessionState = SessionState.IDLE
    voice_mode: VoiceMode = VoiceMode.NORMAL
    tenant_id: str = "default"
    """Whose budget it is spoken from. Missions of different tenants are different missions."""
    user_id: str | None = None
    """Whose tenant it is, if users are told apart: each has room for so many."""

    def of_user(self, user_id: str | None) -> Context:
        """The same for a tenant of this user's. Tenants of different users are different tenants."""
        if user_id is None:
            return self
        return evolve(self, user_id=user_id, tenant_id=f"{user_id}:{self.tenant_id}")


@frozen(kw_only=True)
class VoicePayload:
    """What is spoken."""

    mode: SpeechMode
    text: str
    certainty: Certainty

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {"mode": self.mode.value, "text": self.text, "certainty_class": self.certainty.value}


@frozen(kw_only=True)
class Suppression:
    """Whether it is not spoken, and why."""

    dedupe_key: str
    """The same for the same words about the same kind of event in the same mission."""
    reason: SuppressionReason | None = None
    cooldown_ms: int = 0
    """After how long this reason will be gone, if time alone helps."""
    scope: LimitScope | None = None
    """Whose limit it is, if it is one of speaking. It is no part of the document."""

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
    """What became of an event: its text, always; its voice, unless it is suppressed."""

    mission_id: str
    event_id: str
    event_type: MissionEventType
    classification: Classification
    certainty: Certainty
    """How sure the text is, in the light of its evidence."""
    evidence_refs: tuple[str, ...]
    text: TextPayload
    voice: VoicePayload | None
    suppression: Suppression
    tenant_id: str = "default"
    """Whose it is. It is no part of the document."""

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

    def silenced(self, reason: SuppressionReason, cooldown_ms: int = 0) -> UtilityPayload:
        """The same without its voice."""
        suppression = evolve(self.suppression, reason=reason, cooldown_ms=cooldown_ms)
        return evolve(self, voice=None, suppression=suppression)
