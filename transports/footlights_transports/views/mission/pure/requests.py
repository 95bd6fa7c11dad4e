"""Requests: a callout, or the closing of an event, read from plain JSON.

Most fields may be missing; `DEFAULTS` has the default of each. No default makes a callout more certain, and the
defaults allow no voice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, frozen

from footlights.errors import InvalidCommand
from footlights.params import TurnParams
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.views.mission.pure.payload import Context, MissionEvent, own_name
from footlights_transports.views.mission.pure.policy import broken_rules
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    Tier,
    VoiceMode,
    least_certain,
)
from footlights_transports.views.mission.pure.text import (
    NOT_STATED,
    WHY_IT_MATTERS_CHARS,
    TextPayload,
    compose,
    compose_plain,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights.wire.values import Reader

MAX_TEXT_CHARS = 4_000
"""Of a text, before it is laid out in lines."""
MAX_REF_CHARS = 256
MAX_REFS = 32
MAX_WORDS_CHARS = WHY_IT_MATTERS_CHARS - len("IMPACT: ")
"""Of an operator's words about a closed event: they go into one line, uncut."""

LISTENER_FIELDS = ("context_tier", "session_state", "voice_mode", "tenant_id")
_EVENT_FIELDS = (
    "mission_id", "event_type", "classification", "voice_certainty", "mode", "evidence_refs", "repo_attributed",
    "system_state_claim", "operator_ref",
)  # fmt: skip
"""The fields of a request that have the same names in its event."""
_WORDS_FIELDS = ("text_certainty", "evidence_refs")
_CLOSING_FIELDS = (*LISTENER_FIELDS, *_WORDS_FIELDS, "operator_ref", "policy_ts_ms")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@frozen(kw_only=True)
class CalloutRequest:
    """A request to call out an event."""

    event: MissionEvent
    context: Context
    dry_run: bool = False
    """Whether to decide only: nothing is spoken, and no limit is used up."""
    policy_ts_ms: int | None = None
    """The time of the decision, for replays."""

    def of_user(self, user_id: str | None) -> CalloutRequest:
        """The same request of this user, whose missions and tenants are the user's own."""
        mission_id = own_name(user_id, self.event.mission_id)
        return evolve(self, event=evolve(self.event, mission_id=mission_id), context=self.context.of_user(user_id))


@frozen(kw_only=True)
class Closing:
    """A request to close an event."""

    context: Context
    words: str | None = None
    """The operator's words about the outcome; without them the debrief repeats what had changed."""
    certainty: Certainty = Certainty.UNKNOWN
    """How certain the words are."""
    evidence_refs: tuple[str, ...] = ()
    """Where the words can be checked."""
    operator_ref: str | None = None
    policy_ts_ms: int | None = None


def read_callout(fields: Mapping[str, object], event_id: str) -> CalloutRequest:
    """A request with `text`, or with `text_payload` and its four lines. Raises `InvalidCommand`.

    `event_id` is the default for the id of the event.
    """
    if not fields.keys() <= {*DEFAULTS, "text", "text_payload"}:
        raise InvalidCommand("The callout has a field that is not known.")
    given = _given(fields, DEFAULTS)
    event = MissionEvent(
        event_id=given["event_id"] or event_id,
        text=_text(fields, given),
        certainty=given["text_certainty"],
        **{name: given[name] for name in _EVENT_FIELDS},
    )
    return CalloutRequest(
        event=event, context=_context(given), dry_run=given["dry_run"], policy_ts_ms=given["policy_ts_ms"]
    )


def read_listener(fields: Mapping[str, object]) -> Context:
    """The listener that these fields describe. Raises `InvalidCommand`."""
    return _context(_given(fields, LISTENER_FIELDS))


def read_closing(fields: Mapping[str, object]) -> Closing:
    """A request to close an event. Raises `InvalidCommand`."""
    if not fields.keys() <= {*_CLOSING_FIELDS, "text"}:
        raise InvalidCommand("The request has a field that is not known.")
    words = fields.get("text")
    for name in _WORDS_FIELDS:
        if words is None and fields.get(name) is not None:
            raise InvalidCommand(f"{name}: belongs to a text, and there is none")
    given = _given(fields, _CLOSING_FIELDS)
    return Closing(
        context=_context(given),
        words=None if words is None else read_value("text", words, _bounded(MAX_WORDS_CHARS)),
        certainty=given["text_certainty"],
        evidence_refs=given["evidence_refs"],
        operator_ref=given["operator_ref"],
        policy_ts_ms=given["policy_ts_ms"],
    )


def debrief_of(trigger: MissionEvent, closing: Closing, event_id: str) -> MissionEvent:
    """The debrief of a closed event. It is never more certain than the event.

    It quotes what changed, with the claims and the evidence of the event, unless the event broke a rule of the
    contract. An operator's words have only the evidence that comes with them.
    """
    if closing.words is None:
        impact = NOT_STATED if any(broken_rules(trigger)) else trigger.text.change
        certainty, refs = trigger.supported_certainty, trigger.evidence_refs
    else:
        impact = " ".join(closing.words.split())
        certainty = least_certain(trigger.supported_certainty, closing.certainty)
        refs = closing.evidence_refs
    kind = MissionEventType.DEBRIEF, trigger.classification
    return MissionEvent(
        mission_id=trigger.mission_id,
        event_id=event_id,
        event_type=kind[0],
        classification=kind[1],
        text=compose(*kind, change="An operator has closed this.", impact=impact, evidence_refs=refs),
        certainty=certainty,
        voice_certainty=least_certain(certainty, trigger.claimed_by_voice),
        evidence_refs=refs,
        repo_attributed=trigger.repo_attributed,
        system_state_claim=trigger.system_state_claim,
        operator_ref=closing.operator_ref or f"ack:{trigger.event_id}",
    )


def read_id(name: str, value: object) -> str:
    """The id of a mission or an event. Raises `InvalidCommand`."""
    return cast("str", read_value(name, value, _identifier))


def read_value(name: str, value: object, reader: Reader) -> Any:
    """The value of a field. Raises `InvalidCommand`."""
    try:
        return reader(value, None)
    except Unfit as error:
        raise InvalidCommand(f"{name}: {error}") from None


def _given(fields: Mapping[str, object], names: Collection[str]) -> dict[str, Any]:
    """The values of these fields, with their defaults."""
    return {
        name: default if (value := fields.get(name)) is None else read_value(name, value, reader)
        for name, (default, reader) in _FIELDS.items()
        if name in names
    }


def _context(given: Mapping[str, Any]) -> Context:
    return Context(
        tier=given["context_tier"],
        session_state=given["session_state"],
        voice_mode=given["voice_mode"],
        tenant_id=given["tenant_id"],
    )


def _text(fields: Mapping[str, object], given: Mapping[str, Any]) -> TextPayload:
    plain, lines = fields.get("text"), fields.get("text_payload")
    if (plain is None) == (lines is None):
        raise InvalidCommand("text: is missing" if plain is None else "text_payload: is there beside text")
    kind, refs = (given["event_type"], given["classification"]), given["evidence_refs"]
    if lines is None:
        return compose_plain(*kind, read_value("text", plain, _bounded(MAX_TEXT_CHARS)), refs)
    if type(lines) is not dict:
        raise InvalidCommand("text_payload: must be an object")
    stated = compose(*kind, change=NOT_STATED, evidence_refs=refs).document
    for name, line in cast("dict[str, object]", lines).items():
        if name not in stated:
            raise InvalidCommand("text_payload: has a field that is not known")
        if line is not None:
            stated[name] = read_value(f"text_payload.{name}", line, _bounded(MAX_TEXT_CHARS))
    return TextPayload(**stated)


def read_answers(body: Mapping[str, Any]) -> Mapping[str, bool]:
    """Answers to what waits for an approval, by its id. Raises `InvalidCommand`."""
    if set(body) != {"approvals"} or not body["approvals"]:
        raise InvalidCommand('approvals: must be there, and nothing else: {"approvals": {"a-000001": true}}')
    return TurnParams(approvals=body["approvals"]).approvals


# -- fields


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


_FIELDS: Mapping[str, tuple[object, Reader]] = {
    "mode": (None, values.member_of(SpeechMode)),
    "event_type": (MissionEventType.STATE_CHANGE, values.member_of(MissionEventType)),
    "classification": (Classification.INFO, values.member_of(Classification)),
    "mission_id": ("unassigned", _identifier),
    "event_id": (None, _identifier),
    "context_tier": (Tier.TEXT_ONLY, _tier),
    "session_state": (SessionState.IDLE, values.member_of(SessionState)),
    "voice_mode": (VoiceMode.NORMAL, values.member_of(VoiceMode)),
    "text_certainty": (Certainty.UNKNOWN, values.member_of(Certainty)),
    "voice_certainty": (None, values.member_of(Certainty)),
    "repo_attributed": (False, values.flag),
    "system_state_claim": (False, values.flag),
    "evidence_refs": ((), _refs),
    "operator_ref": (None, _bounded(MAX_REF_CHARS)),
    "tenant_id": ("default", _identifier),
    "dry_run": (False, values.flag),
    "policy_ts_ms": (None, values.natural),
}
"""The default of each field, for one that is missing or null, and its reader."""

DEFAULTS: Mapping[str, object] = {name: default for name, (default, _) in _FIELDS.items()}
