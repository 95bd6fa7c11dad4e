"""Intents: requests to the authority plane, staged while a turn runs and judged once when it ends.

An intent is a request, never a change. It copies its payload when it is made, so later changes of the original do not
affect the judgement.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson
from attrs import field, frozen

from footlights.authority.digest import NotCanonical, canonical, digest_bytes, is_digest, to_keep
from footlights.authority.values import snapshot
from footlights.checks import member
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue

MAX_REF_CHARS = 256
NOTHING_KNOWN = b"{}"
"""What the host said about a player of whom it said nothing, as JSON."""
NO_FACTS: Mapping[str, JsonValue] = MappingProxyType({})


class IntentType(StrEnum):
    """Origin of an intent."""

    TOOL_RESULT = "tool_result"
    """The result of a tool."""
    DECISION = "decision"
    """A decision of an authorized person."""
    TURN_FINALIZE = "turn_finalize"
    """The end of the turn."""


def _intent_type(value: str) -> IntentType:
    return value if type(value) is IntentType else member(IntentType, "type", value)


@frozen
class Intent:
    """A request to the authority plane. A turn stages it; the rules judge it at the end.

    `ref` identifies the tool call, decision or turn that it concerns. The ledger records it and the digest of
    `payload`, so neither may contain text of people or models. An intent without a payload may name the digest of one
    that is stored elsewhere.
    """

    type: IntentType = field(converter=_intent_type)
    ref: str
    payload: JsonValue = field(default=None, converter=snapshot)
    payload_digest: str | None = None
    session_id: str = field(default="", kw_only=True, eq=False)
    """The session of the turn. The judge sets it for the rules; the record of the turn holds it, not the intent."""
    about: Mapping[str, JsonValue] = field(default=NO_FACTS, kw_only=True, eq=False, repr=False)
    """`SessionParams.about` of that session. The judge sets it for the rules, and nothing records it."""
    checked: CheckedIntent | None = field(default=None, init=False, eq=False, repr=False)
    """Set by `check_intent`, because an intent is checked when it is staged, and judged later."""


@frozen
class CheckedIntent:
    """A valid intent's digest and size, and its payload as it was when it was checked first."""

    payload_digest: str | None
    """The digest of the payload; None if the intent has neither payload nor digest."""
    size: int
    """Its size in bytes as canonical JSON."""
    payload: bytes
    """As canonical JSON."""

    @property
    def is_plain(self) -> bool:
        """Whether nobody can change the payload, because it is no list and no dict."""
        return not self.payload.startswith((b"{", b"["))


def check_intent(intent: Intent) -> CheckedIntent:
    """Raises `InvalidCommand` for an intent that cannot be judged, and `TooLarge` for one that is nested too deeply."""
    # Types are checked at run time because host code may be untyped, and other types could not be read back.
    checked = intent.checked if type(intent) is Intent else None
    if checked is None:
        _check_type("What is staged", intent, Intent)
        checked = _check(intent)
        object.__setattr__(intent, "checked", checked)
    return checked


def for_rule(intent: Intent, session_id: str, about: Mapping[str, JsonValue]) -> Intent:
    """A copy of a checked intent, for one rule, with its payload as it was when it was checked."""
    checked = intent.checked
    assert checked is not None
    copy = _NEW(Intent)  # without the converters, which would check and copy once more
    _SET(copy, "type", intent.type)
    _SET(copy, "ref", intent.ref)
    _SET(copy, "payload", orjson.loads(checked.payload))
    _SET(copy, "payload_digest", intent.payload_digest)
    _SET(copy, "session_id", session_id)
    _SET(copy, "about", about)
    _SET(copy, "checked", checked)
    return copy


_NEW, _SET = object.__new__, object.__setattr__


def _check(intent: Intent) -> CheckedIntent:
    _check_type("An intent's ref", intent.ref, str)
    if not 0 < len(intent.ref) <= MAX_REF_CHARS:
        raise InvalidCommand(f"An intent's ref has 1 to {MAX_REF_CHARS} characters.")
    try:
        ref, payload = canonical(intent.ref), canonical(intent.payload)
    except NotCanonical as error:
        # The message omits the path, because its keys may contain text of a model.
        raise InvalidCommand(f"The intent is not plain JSON: {error.reason}.") from None
    size = len(ref) + len(payload)
    if intent.payload is None:
        return CheckedIntent(_elsewhere(intent.payload_digest), size, payload)
    found = digest_bytes(payload)
    if intent.payload_digest not in (None, found):
        raise InvalidCommand("The intent's payload_digest is not the digest of its payload.")
    return CheckedIntent(found, size, to_keep(payload))


def _elsewhere(payload_digest: str | None) -> str | None:
    if payload_digest is not None and not is_digest(payload_digest):
        raise InvalidCommand("The intent's payload_digest is not a digest.")
    return payload_digest


def _check_type(what: str, value: object, kind: type) -> None:
    if type(value) is not kind:
        raise InvalidCommand(f"{what} must be of type {kind.__name__}, and not {type(value).__name__}.")
