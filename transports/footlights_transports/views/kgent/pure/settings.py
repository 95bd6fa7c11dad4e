"""How a chat is streamed."""

from __future__ import annotations

from math import isfinite

from attrs import frozen

from footlights.errors import RegistrationError
from footlights.models.budget import BudgetConfig, BudgetTier

CONTENT_KEYS_VARIABLE = "FOOTLIGHTS_CONTENT_KEYS"
"""The environment variable with the keys of what is kept beyond its session, with commas between them."""

_LEAST_ENTROPY = BudgetConfig().entropy_for_tier(BudgetTier.WHISPER)


@frozen(kw_only=True)
class ChatFluxConfig:
    """How dialogues are streamed. Times are seconds. Raises `RegistrationError` for what makes no sense."""

    emit_thoughts: bool = False
    """Whether each chunk of a completed dialogue is a THOUGHT turn in the trace, before its SPEECH."""
    buffer_chunks: int = 5
    """So many pieces of text are joined into one chunk."""
    stream_timeout: float = 30.0
    """An answer that is not whole so long after its dialogue began is broken off. Waiting for turns that began before
    it, whoever began them, is no part of that."""
    entropy_budget: float = 0.10
    """What one dialogue may take: one whose tier costs more gets a smaller tier."""
    heartbeat_interval: float = 5.0
    """An observer that was sent nothing for so long is sent a ping."""
    session_tokens: int = 40_000
    """What a session may have said to it at once, after it was silent."""
    session_tokens_seconds: float = 600.0
    """How long it takes until a session that has used them all has them all again."""
    messages_per_minute: float = 60.0
    """What one client may send in the long run: all that show one token, or one connection where there are none."""
    message_burst: int = 10
    """What it may send at once, after it was silent."""
    max_waiting_dialogues: int = 16
    """Dialogues of one session that wait for the one before."""

    def __attrs_post_init__(self) -> None:
        for name in ("buffer_chunks", "session_tokens", "message_burst", "max_waiting_dialogues"):
            if getattr(self, name) < 1:
                raise RegistrationError(f"{name} must be at least 1.")
        for name in ("stream_timeout", "heartbeat_interval", "session_tokens_seconds", "messages_per_minute"):
            if not (getattr(self, name) > 0 and isfinite(getattr(self, name))):
                raise RegistrationError(f"{name} must be more than 0.")
        if not self.entropy_budget >= _LEAST_ENTROPY:
            raise RegistrationError(f"entropy_budget must be {_LEAST_ENTROPY} or more: a whisper takes that much.")
