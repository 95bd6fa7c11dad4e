"""Chat messages and chat events: the input and the output of a dialogue.

Neither is a `Turn`: only completed turns are recorded.
"""

from __future__ import annotations

import time
import uuid
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import orjson
from attrs import field, frozen

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue
    from footlights.models.budget import BudgetTier

MAX_CORRELATION_CHARS = 128
_NO_ANSWERS: Mapping[str, bool] = MappingProxyType({})


def _as_mode(mode: DialogueMode | str) -> DialogueMode:
    if mode not in list(DialogueMode):
        raise InvalidMessage(f"mode must be one of {', '.join(DialogueMode)}.")
    return DialogueMode(mode)


def is_correlation_id(text: str) -> bool:
    """Whether a message may have this correlation id."""
    return 0 < len(text) <= MAX_CORRELATION_CHARS and text.isprintable()


class InvalidMessage(InvalidCommand, ValueError):
    """A message or a turn is invalid. The text says why and quotes nothing of it."""

    code = "invalid_message"


class DialogueMode(StrEnum):
    """What the user wants of a dialogue."""

    REFLECT = "reflect"
    """To hear what they said in other words, and one question."""
    ADVISE = "advise"
    """One recommendation, and its reason."""
    CHALLENGE = "challenge"
    """The strongest objection."""
    EXPLORE = "explore"
    """Three different directions, at length."""


@frozen
class Manner:
    """How an answer in one mode is asked of a model."""

    temperature: float
    instruction: str


MANNERS: Mapping[DialogueMode, Manner] = {
    DialogueMode.REFLECT: Manner(0.7, "Give back in your own words what was said, and ask one question about it."),
    DialogueMode.ADVISE: Manner(0.3, "Give one recommendation, and the reason for it."),
    DialogueMode.CHALLENGE: Manner(0.7, "Raise the strongest objection to what was said."),
    DialogueMode.EXPLORE: Manner(1.0, "Offer three directions that differ from each other."),
}
"""For every persona that has none of its own for the mode."""


class ErrorCode(StrEnum):
    """Why a dialogue failed."""

    RATE_LIMITED = "RATE_LIMITED"
    """A limit of the client or the session was exceeded."""
    STREAM_TIMEOUT = "STREAM_TIMEOUT"
    """The answer took too long, or stopped coming."""
    LLM_UNAVAILABLE = "LLM_UNAVAILABLE"
    """No model and no template could answer."""
    INVALID_MESSAGE = "INVALID_MESSAGE"
    """The frame is not a valid message."""
    SESSION_EXPIRED = "SESSION_EXPIRED"
    """The session is over."""


RECOVERY: Mapping[ErrorCode, str] = {
    ErrorCode.RATE_LIMITED: "Wait retry_after_seconds, then send it with a new correlation_id.",
    ErrorCode.STREAM_TIMEOUT: "Retry with a shorter message.",
    ErrorCode.LLM_UNAVAILABLE: "Try again later, or check the model.",
    ErrorCode.INVALID_MESSAGE: "Fix the client's payload.",
    ErrorCode.SESSION_EXPIRED: "Reconnect.",
}
"""Advice to the client for each code. It ends the message of every error."""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@frozen
class ChatMessage:
    """A message of a user or of the system around it. Raises `InvalidMessage`, which is a `ValueError` too."""

    role: Literal["user", "system"]
    content: str
    """Never empty."""
    timestamp: float = field(factory=time.time)
    """Seconds since the epoch."""
    mode: DialogueMode = field(default=DialogueMode.REFLECT, converter=_as_mode)
    """The mode, or its name."""
    correlation_id: str = field(factory=lambda: str(uuid.uuid4()))
    """Chosen by the sender. Every event of the dialogue repeats it, and it is forgotten with the session."""
    approvals: Mapping[str, bool] = field(default=_NO_ANSWERS, hash=False, kw_only=True)
    """Answers to what waits for an approval, by its id."""

    def __attrs_post_init__(self) -> None:
        if self.role not in ("user", "system"):
            raise InvalidMessage("role must be user or system.")
        if not isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidMessage("content must be a string.")
        if not _is_unicode(self.content):
            raise InvalidMessage("content must be valid Unicode.")
        if not self.content.strip():
            raise InvalidMessage("ChatMessage content cannot be empty.")
        if not isfinite(self.timestamp):
            raise InvalidMessage("timestamp must be a number.")
        if not is_correlation_id(self.correlation_id):
            raise InvalidMessage(f"correlation_id must be 1 to {MAX_CORRELATION_CHARS} printable characters.")


@frozen
class SoulEvent:
    """Order for one answer, from a conversation to its responder. It is never sent."""

    message: ChatMessage
    tier: BudgetTier
    """What the answer may cost."""
    event_type: Literal["DIALOGUE_TURN"] = "DIALOGUE_TURN"


EventKind = Literal["chunk", "message", "error", "done"]


@frozen
class ChatEvent:
    """One event of a dialogue, as it is sent. `done` is always the last."""

    event_type: EventKind
    payload: Mapping[str, JsonValue]
    """A message has a `turn_id` in it, an error a `code`; all have the `correlation_id`."""
    sequence: int
    """Counts up from 1, without a gap."""
    timestamp: float = field(factory=time.time)
    """Seconds since the epoch; never less than that of the event before."""

    def encode(self) -> bytes:
        """The event as one line of JSON, which is one WebSocket message."""
        return orjson.dumps(
            {
                "event_type": self.event_type,
                "payload": dict(self.payload),
                "sequence": self.sequence,
                "timestamp": self.timestamp,
            }
        )
