"""Closed sets of the callout contract `dottie.prompt_style.v1`."""

from __future__ import annotations

from enum import IntEnum, StrEnum

PAYLOAD_VERSION = "dottie.utility.v1"
"""The `contract_version` of every payload."""


class MissionEventType(StrEnum):
    """What happened in a mission."""

    STATE_CHANGE = "state_change"
    """The state of something changed."""
    THREAT_UPDATE = "threat_update"
    """Something failed, or may fail."""
    TIMER_UPDATE = "timer_update"
    """Time is running, or has run out."""
    ACTION_REQUIRED = "action_required"
    """A person has to act."""
    DEBRIEF = "debrief"
    """The outcome of something that an operator did."""


class Classification(StrEnum):
    """How urgent an event is."""

    INFO = "info"
    """For information."""
    WARN = "warn"
    """Needs attention."""
    CRITICAL = "critical"
    """Needs attention now."""
    ACTION = "action"
    """Needs action now."""


class Certainty(StrEnum):
    """How certain a claim is, the most certain first."""

    CONFIRMED = "confirmed"
    """It was observed."""
    REASONED = "reasoned"
    """It follows from what was observed."""
    HYPOTHESIS = "hypothesis"
    """It would explain what was observed."""
    UNKNOWN = "unknown"
    """Not stated."""

    @property
    def rank(self) -> int:
        """Greater is more certain."""
        return _RANKS[self]


_RANKS = {certainty: rank for rank, certainty in enumerate(reversed(Certainty))}


HEDGES = {
    Certainty.CONFIRMED: "",
    Certainty.REASONED: "Probably: ",
    Certainty.HYPOTHESIS: "Possibly: ",
    Certainty.UNKNOWN: "Not confirmed: ",
}
"""Words in front of everything that a voice says, so that what is less certain sounds less certain."""


def least_certain(*claims: Certainty) -> Certainty:
    """The least certain of these."""
    return min(claims, key=lambda claim: claim.rank)


class Tier(IntEnum):
    """How much of the player's context is shared."""

    TEXT_ONLY = 0
    """Nothing is spoken."""
    AWARE = 1
    """Callouts may be spoken while the session is active."""


class SessionState(StrEnum):
    """The state of the listening session."""

    IDLE = "idle"
    """Not listening."""
    REQUESTING = "requesting"
    """Being opened."""
    ACTIVE = "active"
    """Listening."""
    STOPPING = "stopping"
    """Being closed."""
    ERROR = "error"
    """Failed."""


class VoiceMode(StrEnum):
    """What the listener wants to hear."""

    OFF = "off"
    """Nothing."""
    CRITICAL_ONLY = "critical_only"
    """Events that are critical or need action."""
    NORMAL = "normal"
    """Everything that the matrix allows."""
    DND = "dnd"
    """Nothing for now (do not disturb)."""


class SpeechMode(StrEnum):
    """The format of a spoken text."""

    CALLOUT = "callout"
    """One short announcement."""
    BRIEFING = "briefing"
    """What to do, and why."""
    DEBRIEF = "debrief"
    """The outcome of an action."""


class LimitScope(StrEnum):
    """The owner of the limit that suppresses a callout."""

    MISSION = "mission"
    """The mission has used its rate."""
    MISSIONS = "missions"
    """The tenant speaks in too many missions. Missions that spoke within the last minute may go on."""
    TENANT = "tenant"
    """The tenant has used its daily budget."""
    USER = "user"
    """The user speaks for too many tenants. Tenants that have spoken today may go on."""
    SERVER = "server"
    """Too many tenants speak on this server today. Tenants that have spoken today may go on."""


class SuppressionReason(StrEnum):
    """Why a callout is not spoken, in the order of the checks. A callout has the first reason that applies."""

    CONTEXT_INELIGIBLE = "context_ineligible"
    """No row of the matrix allows it, or it is a debrief without an operator's action."""
    CONTRACT_VIOLATION = "contract_violation"
    """It breaks a rule of the contract: the voice more certain than the text, a line empty or too long, no words."""
    MISSING_EVIDENCE = "missing_evidence"
    """It makes a claim without evidence, and its row does not allow a hypothesis."""
    DEDUPE_COOLDOWN = "dedupe_cooldown"
    """The same callout was spoken a moment ago."""
    MISSION_RATE_LIMITED = "mission_rate_limited"
    """The mission has spoken enough events that are not urgent."""
    VOICE_RATE_LIMITED = "voice_rate_limited"
    """The mission has spoken enough for a minute, or its tenant speaks in too many missions at once."""
    VOICE_BUDGET_EXCEEDED = "voice_budget_exceeded"
    """The tenant has spoken enough for a day, or its user or the server has too many tenants today."""
    VOICE_BACKEND_ERROR = "voice_backend_error"
    """The voice failed, is busy, or is paused after too many failures."""
