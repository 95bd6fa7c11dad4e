"""The public names of a chat are these. Changing the list is a decision, not an accident."""

from __future__ import annotations

from footlights import chat

NAMES = """
    affordable BrokeOff ChatChunk ChatEvent ChatFluxConfig ChatMessage Committed CONTENT_KEYS_VARIABLE
    DialogueMode ErrorCode FLUX_TRANSITIONS FluxState FluxStep HolographicBuffer IDENTITY InvalidMessage NO_TEMPLATES
    RECOVERY Reflection SoulEvent speech_of Spoke SpokeAll standard_tier STANDARD_TEMPLATES Telling Templates
    TemplateUse thoughts_of TraceMonoid Turn TurnChain TurnReading TurnType UnlawfulTrace Watcher
"""


def test_a_chat_exports_exactly_these_names() -> None:
    assert sorted(chat.__all__) == sorted(NAMES.split())
    assert [name for name in chat.__all__ if not hasattr(chat, name)] == []
