"""The closed sets of the callout contract `dottie.prompt_style.v1`."""

from __future__ import annotations

from enum import IntEnum, StrEnum

CONTRACT_ID = "dottie.prompt_style.v1"
"""The rules that callouts keep."""
PAYLOAD_VERSION = "dottie.utility.v1"
"""The shape in which they are told."""


class MissionEventType(StrEnum):
    """What happened in a mission."""

    STATE_CHANGE = "state_change"
    """Something is no longer as it was."""
    THREAT_UPDATE = "threat_update"
    """Something may go wrong, or has."""
    TIMER_UPDATE = "timer_update"
    """Time is passing, or is up."""
    ACTION_REQUIRED = "action_required"
    """Somebody has to do something."""
    DEBRIEF = "debrief"
    """What came of something that an operator did."""


class Classification(StrEnum):
    """How much it matters."""

    INFO = "info"
    """Good to know."""
    WARN = "warn"
    """Look at it."""
    CRITICAL = "critical"
    """Look at it now."""
    ACTION = "action"
    """Do something about it now."""


class Certainty(StrEnum):
    """How sure one is, the surest first."""

    CONFIRMED = "confirmed"
    """It was seen."""
    REASONED = "reasoned"
    """It follows from what was seen."""
    HYPOTHESIS = "hypothesis"
    """It would explain what was seen."""
    UNKNOWN = "unknown"
    """Nobody said."""

    @property
    def rank(self) -> int:
        """Greater is surer."""
        return _RANKS[self]


_RANKS = {certainty: rank for rank, certainty in enumerate(reversed(Certainty))}


def least_certain(*claims: Certainty) -> Certainty:
    """The least sure of these."""
    return min(claims, key=lambda claim: claim.rank)


class Tier(IntEnum):
    """How much of the player's surroundings is shared."""

    TEXT_ONLY = 0
    """Nothing is ever spoken."""
    AWARE = 1
    """Callouts may be spoken, while the session is active."""


class SessionState(StrEnum):
    """Where the session that would hear it is."""

    IDLE = "idle"
    """Nobody listens."""
    REQUESTING = "requesting"
    """It is being opened."""
    ACTIVE = "active"
    """Somebody listens."""
    STOPPING = "stopping"
    """It is being closed."""
    ERROR = "error"
    """It broke."""


class VoiceMode(StrEnum):
    """What the listener wants to hear."""

    OFF = "off"
    """Nothing."""
    CRITICAL_ONLY = "critical_only"
    """What is critical, or asks for action."""
    NORMAL = "normal"
    """Everything that the matrix allows."""
    DND = "dnd"
    """Nothing, for now."""


class SpeechMode(StrEnum):
    """How it is spoken."""

    CALLOUT = "callout"
    """A shout across the room."""
    BRIEFING = "briefing"
    """What to do, and why."""
    DEBRIEF = "debrief"
    """What came of it."""


class LimitScope(StrEnum):
    """Whose limit keeps a callout from being spoken."""

    MISSION = "mission"
    """The mission has spoken enough for now."""
    MISSIONS = "missions"
    """The tenant speaks in as many missions as there is room for. Those that speak already go on."""
    TENANT = "tenant"
    """The tenant has spoken enough for a day."""
    USER = "user"
    """The user speaks for as many tenants as there is room for today. Those that have spoken go on."""
    SERVER = "server"
    """There is no room for another tenant today."""


class SuppressionReason(StrEnum):
    """Why a callout is not spoken, in the order in which it is checked. A callout has the first that applies."""

    CONTEXT_INELIGIBLE = "context_ineligible"
    """No row of the matrix lets it be spoken, or it is a debrief of nothing that an operator did."""
    CONTRACT_VIOLATION = "contract_violation"
    """It breaks a rule of the contract: the voice surer than the text, a line empty or too long, nothing to say."""
    MISSING_EVIDENCE = "missing_evidence"
    """It claims something without evidence, and its row allows no mere hypothesis."""
    DEDUPE_COOLDOWN = "dedupe_cooldown"
    """The same was spoken a moment ago."""
    MISSION_RATE_LIMITED = "mission_rate_limited"
    """The mission has told enough that is not urgent."""
    VOICE_RATE_LIMITED = "voice_rate_limited"
    """The mission has spoken enough for a minute, or its tenant speaks in too many missions at once."""
    VOICE_BUDGET_EXCEEDED = "voice_budget_exceeded"
    """The tenant has spoken enough for a day, or there is no room for another tenant, of its user or at all."""
    VOICE_BACKEND_ERROR = "voice_backend_error"
    """The voice failed, is too busy, or has failed so often that it is left alone for a while."""
