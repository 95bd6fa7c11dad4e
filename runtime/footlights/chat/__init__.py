"""A chat over the core, as K-gent has it: what goes in, what comes out, what stays, and what it may take.

Pure: no trio. Only whole turns stay. Chunks and correlation ids are gone when the session is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
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

_HOMES = {
    "footlights.chat.flux_state": "FLUX_TRANSITIONS FluxState FluxStep",
    "footlights.chat.messages": "RECOVERY ChatChunk ChatEvent ChatMessage DialogueMode ErrorCode InvalidMessage",
    "footlights.chat.mirror": "HolographicBuffer Reflection Watcher",
    "footlights.chat.reading": "BrokeOff Committed SoulEvent Spoke SpokeAll TurnReading",
    "footlights.chat.record": "IDENTITY Turn TurnChain TurnType",
    "footlights.chat.remembering": "speech_of thoughts_of",
    "footlights.chat.settings": "CONTENT_KEYS_VARIABLE ChatFluxConfig",
    "footlights.chat.telling": "Telling",
    "footlights.chat.templates": "NO_TEMPLATES STANDARD_TEMPLATES Templates TemplateUse",
    "footlights.chat.tiers": "affordable standard_tier",
    "footlights.chat.trace": "TraceMonoid UnlawfulTrace",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
