"""Callouts as others ask for them: plain JSON in which almost everything may be missing.

What is missing has one default each, in `DEFAULTS`. No default makes a callout surer, and by default nothing is
spoken: who wants a voice says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from attrs import frozen

from footlights.errors import InvalidCommand
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    Tier,
    VoiceMode,
)
from footlights_transports.views.mission.pure.text import NOT_STATED, TextPayload, compose, compose_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.wire.values import Reader

MAX_TEXT_CHARS = 4_000
"""Of a text, whatever is then made of it."""
MAX_REF_CHARS = 256
MAX_REFS = 32

DEFAULTS: Mapping[str, object] = {
    "mode": None,
    "event_type": MissionEventType.STATE_CHANGE,
    "classification": Classification.INFO,
    "mission_id": "unassigned",
    "event_id": None,
    "context_tier": Tier.TEXT_ONLY,
    "session_state": SessionState.IDLE,
    "voice_mode": VoiceMode.NORMAL,
    "text_certainty": Certainty.UNKNOWN,
    "voice_certainty": None,
    "repo_attributed": False,
    "system_state_claim": False,
    "evidence_refs": (),
    "operator_ref": None,
    "deterministic": True,
    "tenant_id": "default",
    "dry_run": False,
    "policy_ts_ms": None,
}
"""What each field is when it is missing or null."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@frozen(kw_only=True)
class CalloutRequest:
    """What somebody wants to be told."""

    event: MissionEvent
    context: Context
    dry_run: bool = False
    """Only say what would be done."""
    policy_ts_ms: int | None = None
    """When it is to be decided, for replays."""


def read_callout(fields: Mapping[str, object], event_id: str) -> CalloutRequest:
    """A request with `text`, or with `text_payload` and its four lines. Raises `InvalidCommand`.

    `event_id` is what the event is called if the request does not say.
    """
    for name in fields:
        if name not in DEFAULTS and name not in ("text", "text_payload"):
            raise InvalidCommand("The callout has a field that is not known.")
    given = {name: _field(fields, name, reader) for name, reader in _READERS.items()}
    event = MissionEvent(
        mission_id=given["mission_id"],
        event_id=given["event_id"] or event_id,
        event_type=given["event_type"],
        classification=given["classification"],
        text=_text(fields, given),
        certainty=given["text_certainty"],
        voice_certainty=given["voice_certainty"],
        mode=given["mode"],
        evidence_refs=given["evidence_refs"],
        repo_attributed=given["repo_attributed"],
        system_state_claim=given["system_state_claim"],
        operator_ref=given["operator_ref"],
        deterministic=given["deterministic"],
    )
    context = Context(
        tier=given["context_tier"],
        session_state=given["session_state"],
        voice_mode=given["voice_mode"],
        tenant_id=given["tenant_id"],
    )
    return CalloutRequest(event=event, context=context, dry_run=given["dry_run"], policy_ts_ms=given["policy_ts_ms"])


def read_id(name: str, value: object) -> str:
    """An id of a mission or an event. Raises `InvalidCommand`."""
    return cast("str", _read(name, value, _identifier))


def read_text(name: str, value: object, max_chars: int) -> str:
    """A text that is not blank, and not too long. Raises `InvalidCommand`."""
    return cast("str", _read(name, value, _bounded(max_chars)))


def _field(fields: Mapping[str, object], name: str, reader: Reader) -> Any:
    value = fields.get(name)
    return DEFAULTS[name] if value is None else _read(name, value, reader)


def _read(name: str, value: object, reader: Reader) -> Any:
    try:
        return reader(value, None)
    except Unfit as error:
        raise InvalidCommand(f"{name}: {error}") from None


def _text(fields: Mapping[str, object], given: Mapping[str, Any]) -> TextPayload:
    plain, lines = fields.get("text"), fields.get("text_payload")
    if (plain is None) == (lines is None):
        raise InvalidCommand("text: is missing" if plain is None else "text_payload: is there beside text")
    kind = given["event_type"], given["classification"]
    if lines is None:
        return compose_plain(*kind, _read("text", plain, _bounded(MAX_TEXT_CHARS)), given["evidence_refs"])
    if type(lines) is not dict:
        raise InvalidCommand("text_payload: must be an object")
    missing = compose(*kind, change=NOT_STATED, evidence_refs=given["evidence_refs"])
    return _text_payload(cast("dict[str, object]", lines), missing)


def _text_payload(lines: Mapping[str, object], missing: TextPayload) -> TextPayload:
    stated = missing.document
    for name, line in lines.items():
        if name not in stated:
            raise InvalidCommand("text_payload: has a field that is not known")
        if line is not None:
            stated[name] = _read(f"text_payload.{name}", line, _bounded(MAX_TEXT_CHARS))
    return TextPayload(**stated)


# -- what a single field may be


def _bounded(max_chars: int) -> Reader:
    def read(value: object, _: object) -> str:
        text = values.name(value)
        if not text.strip():
            raise Unfit("must not be blank")
        if len(text) > max_chars:
            raise Unfit(f"must not have more than {max_chars} characters")
        return text

    return read


def _identifier(value: object, _: object) -> str:
    if _ID.fullmatch(values.text(value)) is None:
        raise Unfit("must be 1 to 128 letters, digits or . _ : @ - and begin with a letter or digit")
    return cast("str", value)


def _tier(value: object, _: object) -> Tier:
    if type(value) is not int or value not in (0, 1):
        raise Unfit("must be 0 or 1")
    return Tier(value)


def _refs(value: object, _: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise Unfit("must be a list")
    refs = cast("list[object]", value)
    if len(refs) > MAX_REFS:
        raise Unfit(f"must not have more than {MAX_REFS} entries")
    return tuple(_bounded(MAX_REF_CHARS)(ref, None) for ref in refs)


_READERS: Mapping[str, Reader] = {
    "mode": values.member_of(SpeechMode),
    "event_type": values.member_of(MissionEventType),
    "classification": values.member_of(Classification),
    "mission_id": _identifier,
    "event_id": _identifier,
    "context_tier": _tier,
    "session_state": values.member_of(SessionState),
    "voice_mode": values.member_of(VoiceMode),
    "text_certainty": values.member_of(Certainty),
    "voice_certainty": values.member_of(Certainty),
    "repo_attributed": values.flag,
    "system_state_claim": values.flag,
    "evidence_refs": _refs,
    "operator_ref": _bounded(MAX_REF_CHARS),
    "deterministic": values.flag,
    "tenant_id": _identifier,
    "dry_run": values.flag,
    "policy_ts_ms": values.natural,
}
