"""What goes into a chat and what comes out of it: messages in, chunks and events out.

None of them is a `Turn`. A message is input; a chunk is a passing view of a turn that is still being said, and is
kept nowhere.
"""

from __future__ import annotations

import time
import uuid
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Literal

import orjson
from attrs import field, frozen

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue

MAX_CORRELATION_CHARS = 128


def _as_mode(mode: DialogueMode | str) -> DialogueMode:
    if mode not in list(DialogueMode):
        raise InvalidMessage(f"mode must be one of {', '.join(DialogueMode)}.")
    return DialogueMode(mode)


def is_correlation_id(text: str) -> bool:
    """Whether a message may have it."""
    return 0 < len(text) <= MAX_CORRELATION_CHARS and text.isprintable()


class InvalidMessage(InvalidCommand, ValueError):
    """What came in cannot be a message, or a turn. The words say what is wrong, and do not quote it."""

    code = "invalid_message"


class DialogueMode(StrEnum):
    """What somebody wants of a dialogue."""

    REFLECT = "reflect"
    """To be shown what they said from outside."""
    ADVISE = "advise"
    """To be told what to do."""
    CHALLENGE = "challenge"
    """To be contradicted."""
    EXPLORE = "explore"
    """To be led further, at length."""


class ErrorCode(StrEnum):
    """Why a dialogue failed."""

    RATE_LIMITED = "RATE_LIMITED"
    """More was asked for than may be now."""
    STREAM_TIMEOUT = "STREAM_TIMEOUT"
    """The answer took too long, or stopped coming."""
    LLM_UNAVAILABLE = "LLM_UNAVAILABLE"
    """Nobody could answer."""
    INVALID_MESSAGE = "INVALID_MESSAGE"
    """What was sent is not a message."""
    SESSION_EXPIRED = "SESSION_EXPIRED"
    """The session is over."""


RECOVERY: Mapping[ErrorCode, str] = {
    ErrorCode.RATE_LIMITED: "Wait retry_after_seconds, then send it with a new correlation_id.",
    ErrorCode.STREAM_TIMEOUT: "Retry with a shorter message.",
    ErrorCode.LLM_UNAVAILABLE: "Try again later, or check the model.",
    ErrorCode.INVALID_MESSAGE: "Fix the client's payload.",
    ErrorCode.SESSION_EXPIRED: "Reconnect.",
}
"""What a client can do about each. It ends the message of every error."""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@frozen
class ChatMessage:
    """What a user, or the system around it, says. Raises `InvalidMessage`, which is a `ValueError` too."""

    role: Literal["user", "system"]
    content: str
    """Never empty."""
    timestamp: float = field(factory=time.time)
    """Seconds since the epoch."""
    mode: DialogueMode = field(default=DialogueMode.REFLECT, converter=_as_mode)
    """What is wanted; its name will do."""
    correlation_id: str = field(factory=lambda: str(uuid.uuid4()))
    """The sender's own name for it. It comes back with every event, and is forgotten with the session."""

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
class ChatChunk:
    """A piece of an answer on its way. Nothing keeps it."""

    content: str
    sequence: int
    """Its place among all events of its dialogue."""
    final: bool
    """Whether it is the last one."""
    correlation_id: str | None
    """The message that is answered; None if it could not be read."""


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

    def to_json(self) -> str:
        """The event as one line of JSON."""
        return orjson.dumps(
            {
                "event_type": self.event_type,
                "payload": dict(self.payload),
                "sequence": self.sequence,
                "timestamp": self.timestamp,
            }
        ).decode()
