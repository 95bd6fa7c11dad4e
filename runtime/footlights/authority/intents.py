"""What a turn asks the authority plane to do: intents, staged while it runs and judged once when it ends.

An intent is a request, never a change. It owns a copy of its payload from the moment it is made, so what is
judged is what was staged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.authority.digest import NotCanonical, canonical, digest_bytes, is_digest
from footlights.authority.values import snapshot
from footlights.checks import member
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_REF_CHARS = 256


class IntentType(StrEnum):
    """What an intent comes from."""

    TOOL_RESULT = "tool_result"
    """A tool came back, and what it found should count."""
    DECISION = "decision"
    """Somebody who may decide has decided."""
    TURN_FINALIZE = "turn_finalize"
    """The turn is over, and this is what should remain of it."""


def _intent_type(value: str) -> IntentType:
    return member(IntentType, "type", value)


@frozen
class Intent:
    """A request to the authority plane. A turn stages it; the rules judge it at the end.

    `ref` says which tool call, decision or turn it is about, in the words of whoever staged it. It is kept in the
    ledger, and so is the digest of `payload`: neither may be something that people or models said. An intent
    without a payload may name the digest of one that is kept elsewhere.
    """

    type: IntentType = field(converter=_intent_type)
    ref: str
    payload: JsonValue = field(default=None, converter=snapshot)
    payload_digest: str | None = None
    session_id: str = field(default="", kw_only=True, eq=False)
    """The session in whose turn it was staged: filled in for the rules when it is judged, whoever staged it. It is
    recorded with the turn, and not with the intent."""


@frozen
class CheckedIntent:
    """What the runtime found out about an intent."""

    payload_digest: str | None
    """What the ledger will keep of the payload: None if the intent has neither payload nor digest."""
    size: int
    """The bytes that it takes as canonical JSON."""


def check_intent(intent: Intent) -> CheckedIntent:
    """Raises `InvalidCommand` for an intent that cannot be judged, and `TooLarge` for one that nests too deep."""
    # Whoever stages one need not be typed, and what is not a string here could never be read back.
    _check_type("What is staged", intent, Intent)
    _check_type("An intent's ref", intent.ref, str)
    if not 0 < len(intent.ref) <= MAX_REF_CHARS:
        raise InvalidCommand(f"An intent's ref has 1 to {MAX_REF_CHARS} characters.")
    try:
        ref, payload = canonical(intent.ref), canonical(intent.payload)
    except NotCanonical as error:
        # Its path stays out of the message, because the keys on it may be a model's words.
        raise InvalidCommand(f"The intent is not plain JSON: {error.reason}.") from None
    size = len(ref) + len(payload)
    if intent.payload is None:
        return CheckedIntent(_elsewhere(intent.payload_digest), size)
    found = digest_bytes(payload)
    if intent.payload_digest not in (None, found):
        raise InvalidCommand("The intent's payload_digest is not the digest of its payload.")
    return CheckedIntent(found, size)


def _elsewhere(payload_digest: str | None) -> str | None:
    if payload_digest is not None and not is_digest(payload_digest):
        raise InvalidCommand("The intent's payload_digest is not a digest.")
    return payload_digest


def _check_type(what: str, value: object, kind: type) -> None:
    if type(value) is not kind:
        raise InvalidCommand(f"{what} must be of type {kind.__name__}, and not {type(value).__name__}.")
