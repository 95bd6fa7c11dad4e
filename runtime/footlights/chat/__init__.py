"""A chat over the core, as K-gent has it: what goes in, what comes out, what stays, and what it may take.

Pure: no trio. Only whole turns stay. Chunks and correlation ids are gone when the session is.
"""

from __future__ import annotations

from footlights.chat.allowance import Allowance
from footlights.chat.flux_state import FLUX_TRANSITIONS, FluxState, FluxStep
from footlights.chat.messages import (
    RECOVERY,
    ChatChunk,
    ChatEvent,
    ChatMessage,
    DialogueMode,
    ErrorCode,
    InvalidMessage,
)
from footlights.chat.mirror import HolographicBuffer, Reflection, Watcher
from footlights.chat.reading import BrokeOff, Committed, SoulEvent, Spoke, SpokeAll, TurnReading
from footlights.chat.record import IDENTITY, Turn, TurnChain, TurnType
from footlights.chat.remembering import speech_of, thoughts_of
from footlights.chat.settings import CONTENT_KEYS_VARIABLE, ChatFluxConfig
from footlights.chat.telling import Telling
from footlights.chat.templates import NO_TEMPLATES, STANDARD_TEMPLATES, Templates, TemplateUse
from footlights.chat.tiers import affordable, standard_tier
from footlights.chat.trace import TraceMonoid, UnlawfulTrace

__all__ = [
    "CONTENT_KEYS_VARIABLE",
    "FLUX_TRANSITIONS",
    "IDENTITY",
    "NO_TEMPLATES",
    "RECOVERY",
    "STANDARD_TEMPLATES",
    "Allowance",
    "BrokeOff",
    "ChatChunk",
    "ChatEvent",
    "ChatFluxConfig",
    "ChatMessage",
    "Committed",
    "DialogueMode",
    "ErrorCode",
    "FluxState",
    "FluxStep",
    "HolographicBuffer",
    "InvalidMessage",
    "Reflection",
    "SoulEvent",
    "Spoke",
    "SpokeAll",
    "Telling",
    "TemplateUse",
    "Templates",
    "TraceMonoid",
    "Turn",
    "TurnChain",
    "TurnReading",
    "TurnType",
    "UnlawfulTrace",
    "Watcher",
    "affordable",
    "speech_of",
    "standard_tier",
    "thoughts_of",
]
