"""Settings of the chat gateway."""

from __future__ import annotations

from math import isfinite

from attrs import frozen

from footlights.errors import RegistrationError
from footlights.models.budget import BudgetConfig, BudgetTier

_LEAST_ENTROPY = BudgetConfig().entropy_for_tier(BudgetTier.WHISPER)


@frozen(kw_only=True)
class ChatFluxConfig:
    """Settings of the chat gateway: how dialogues are streamed and limited. The K-gent protocol names the class.

    Times are seconds. Raises `RegistrationError` for an invalid value.
    """

    emit_thoughts: bool = False
    """Whether each chunk of a completed dialogue is a THOUGHT turn in the trace, before its SPEECH."""
    buffer_chunks: int = 5
    """Pieces of text that are joined into one chunk. The first words and those that wait for 100 ms are not held back
    for more."""
    tools: bool = False
    """Whether a dialogue may use the tools of its persona."""
    stream_timeout: float = 30.0
    """Deadline of an answer, from when its dialogue begins. The time that it waits for earlier turns of the session
    does not count."""
    entropy_budget: float = 0.10
    """The most that one dialogue may cost: one whose tier costs more gets a smaller tier."""
    heartbeat_interval: float = 5.0
    """An observer to which nothing was sent for so long is sent a ping."""
    session_tokens: int = 40_000
    """Output tokens that a session may use at once, after a pause."""
    session_tokens_seconds: float = 600.0
    """How long it takes until a session that has used all of them has all of them again."""
    messages_per_minute: float = 60.0
    """Messages that one client may send in the long run: one user if there are tokens, otherwise one connection."""
    message_burst: int = 10
    """Messages that it may send at once, after a pause."""
    max_waiting_dialogues: int = 16
    """Dialogues of one conversation that may wait for the one before."""

    def __attrs_post_init__(self) -> None:
        for name in ("buffer_chunks", "session_tokens", "message_burst", "max_waiting_dialogues"):
            if getattr(self, name) < 1:
                raise RegistrationError(f"{name} must be at least 1.")
        for name in ("stream_timeout", "heartbeat_interval", "session_tokens_seconds", "messages_per_minute"):
            if not (getattr(self, name) > 0 and isfinite(getattr(self, name))):
                raise RegistrationError(f"{name} must be more than 0.")
        if not self.entropy_budget >= _LEAST_ENTROPY:
            raise RegistrationError(f"entropy_budget must be {_LEAST_ENTROPY} or more: a whisper takes that much.")
