"""Commit record: what the ledger keeps of one commit, of a turn or of the host, with its digest and that of the
session's previous record.

The digest of a record can be recomputed from its fields, and the records of a session prove that none is missing or
altered between two others. A record holds no time, nothing random, and no text of people or models, unless tools or
rules of the host put it into an intent or a change.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

import orjson
from attrs import evolve, frozen

from footlights.authority.artifacts import Artifact, news_ext
from footlights.authority.digest import NotCanonical, canonical, digest, digest_bytes
from footlights.authority.intents import IntentType
from footlights.authority.patch import from_json, to_json
from footlights.errors import FootlightsError, InvalidCommand, RegistrationError, TooLarge
from footlights.events import CommitFinal, CommitOutcome, Issue

if TYPE_CHECKING:
    from enum import StrEnum

    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue

_E = TypeVar("_E", bound="StrEnum")


@frozen
class IntentEntry:
    """An intent without its payload."""

    type: IntentType
    ref: str
    payload_digest: str | None


@frozen
class Verdict:
    """The verdict of one rule: the codes of its issues, empty if it accepted."""

    rule: str
    codes: tuple[str, ...]


@frozen(kw_only=True)
class CommitRecord:
    """The decision about one turn, and its digest."""

    session_id: str
    turn_id: str
    outcome: CommitOutcome
    issues: tuple[Issue, ...]
    """The reasons why it failed closed. Empty if the outcome is ok."""
    intents: tuple[IntentEntry, ...]
    """Empty if the turn was interrupted, because its intents were discarded."""
    verdicts: tuple[Verdict, ...]
    """The verdict of each rule, in the order of the rule book."""
    changes: tuple[PatchOp, ...]
    """The changes of the world. Empty unless the outcome is ok."""
    artifacts: tuple[Artifact, ...] = ()
    """The artifacts of the commit. Empty unless the outcome is ok."""
    world_before: str
    """The digest of the world in which the turn was judged."""
    world_after: str
    """The digest of the world after the turn."""
    previous: str | None
    """The commit_digest of the session's previous commit."""
    mode_decision: dict[str, JsonValue] | None = None
    """The decision about the turn's mode, if there was one: ids and values of closed sets. Also recorded for an
    interrupted turn."""
    why: str | None = None
    """The host's own words for a commit that it made itself. None for a turn."""
    commit_digest: str = ""
    """The digest of all fields above, set by `sealed`."""
    commit_id: str = ""
    """A short id of the commit, made from its digest."""

    @cached_property
    def written(self) -> bytes:
        """The whole record as canonical JSON, as the ledger stores it. May raise `NotCanonical` unless it is sealed."""
        return canonical(record_to_json(self))


def sealed(record: CommitRecord) -> CommitRecord:
    """The record with its digest and id computed from the other fields. May raise `NotCanonical`."""
    return seal(evolve(record), canonical([to_json(op) for op in record.changes]))


def seal(record: CommitRecord, changes: bytes) -> CommitRecord:
    """Set the digest and the id of a record that nobody else has yet. `changes` are its own, as canonical JSON.

    Writing was half of the work of a commit. So the record is written once, in two pieces, between which the digest and
    the id have their place: the bytes are those of `canonical(digested_json(record))` and of `written`. What came from
    outside was checked before, so only that is written by `canonical`.
    """
    artifacts = b",".join([canonical({"ref": each.ref, **each.document}) for each in record.artifacts])
    front = b'{"artifacts":[%b],"authoritative":true,"changes":%b,' % (artifacts, changes)
    decision = record.mode_decision
    members: dict[str, object] = {
        "intents": [
            {"payload_digest": entry.payload_digest, "ref": entry.ref, "type": entry.type} for entry in record.intents
        ],
        "issues": [issue_json(issue) for issue in record.issues],
        **({} if decision is None else {"mode_decision": orjson.Fragment(canonical(decision))}),
        "outcome": record.outcome,
        "previous": record.previous,
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "verdicts": [{"codes": verdict.codes, "rule": verdict.rule} for verdict in record.verdicts],
        **({} if record.why is None else {"why": record.why}),
        "world_after": record.world_after,
        "world_before": record.world_before,
    }
    try:
        back = orjson.dumps(members)[1:]
    except TypeError:
        canonical(digested_json(record))  # raises `NotCanonical` with the place
        raise
    commit_digest = digest_bytes(front + back)
    commit_id = f"c-{commit_digest[:16]}"
    names = f'"commit_digest":"{commit_digest}","commit_id":"{commit_id}",'
    object.__setattr__(record, "commit_digest", commit_digest)
    object.__setattr__(record, "commit_id", commit_id)
    object.__setattr__(record, "written", front + names.encode() + back)
    return record


def recompute_digest(record: CommitRecord) -> str:
    """The digest that the record must have, independent of its `commit_digest`. May raise `NotCanonical`."""
    return digest(digested_json(record))


def digested_json(record: CommitRecord) -> dict[str, JsonValue]:
    """The digested part of a record as JSON. `mode_decision` and `why` are omitted if they are None."""
    optional: dict[str, JsonValue] = {"mode_decision": record.mode_decision, "why": record.why}
    return {
        "authoritative": True,
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "outcome": record.outcome.value,
        "issues": [issue_json(issue) for issue in record.issues],
        "intents": [
            {"type": entry.type.value, "ref": entry.ref, "payload_digest": entry.payload_digest}
            for entry in record.intents
        ],
        "verdicts": [{"rule": verdict.rule, "codes": list(verdict.codes)} for verdict in record.verdicts],
        "changes": [to_json(op) for op in record.changes],
        "artifacts": [{"ref": each.ref, **each.document} for each in record.artifacts],
        "world_before": record.world_before,
        "world_after": record.world_after,
        "previous": record.previous,
        **{name: value for name, value in optional.items() if value is not None},
    }


def issue_json(issue: Issue) -> dict[str, JsonValue]:
    return {"code": issue.code, "message": issue.message, "ref": issue.ref}


def commit_final(record: CommitRecord) -> CommitFinal:
    """The `commit_final` payload of a record."""
    return CommitFinal(
        commit_digest=record.commit_digest,
        commit_outcome=record.outcome,
        issues=record.issues,
        artifact_refs=tuple([each.ref for each in record.artifacts]),
        commit_id=record.commit_id,
        ext=news_ext(record.artifacts) if record.artifacts else None,
    )


# -- reading and writing


class InvalidRecord(FootlightsError):
    """Data is not a record. The message names the invalid member and quotes nothing."""

    code = "invalid_record"


def record_to_json(record: CommitRecord) -> dict[str, JsonValue]:
    """The whole record as JSON, with its digest and id."""
    return {**digested_json(record), "commit_digest": record.commit_digest, "commit_id": record.commit_id}


def record_from_json(value: JsonValue) -> CommitRecord:
    """The inverse of `record_to_json`. It does not check the digest; `recompute_digest` does.

    Raises `InvalidRecord` for anything that `record_to_json` could not have written.
    """
    given = value if isinstance(value, dict) else {}
    optional = [name for name, kind in (("mode_decision", dict), ("why", str)) if isinstance(given.get(name), kind)]
    record = _members(value, "record", *_RECORD, *optional)
    _check_authoritative(record)
    return CommitRecord(
        session_id=_text(record, "session_id"),
        turn_id=_text(record, "turn_id"),
        outcome=_choice(record, "outcome", CommitOutcome),
        issues=tuple(issue_from_json(each) for each in _items(record, "issues")),
        intents=tuple(_intent(each) for each in _items(record, "intents")),
        verdicts=tuple(_verdict(each) for each in _items(record, "verdicts")),
        changes=tuple(change_from_json(each) for each in _items(record, "changes")),
        artifacts=tuple(_artifact(each) for each in _items(record, "artifacts")),
        world_before=_text(record, "world_before"),
        world_after=_text(record, "world_after"),
        previous=_text_or_none(record, "previous"),
        mode_decision=cast("dict[str, JsonValue] | None", record.get("mode_decision")),
        why=cast("str | None", record.get("why")),
        commit_digest=_text(record, "commit_digest"),
        commit_id=_text(record, "commit_id"),
    )


_RECORD = (
    "authoritative", "session_id", "turn_id", "outcome", "issues", "intents", "verdicts", "changes", "artifacts",
    "world_before", "world_after", "previous", "commit_digest", "commit_id",
)  # fmt: skip


def issue_from_json(value: JsonValue) -> Issue:
    """Raises `InvalidRecord`."""
    issue = _members(value, "issue", "code", "message", "ref")
    return Issue(_text(issue, "code"), _text(issue, "message"), _text_or_none(issue, "ref"))


def _intent(value: JsonValue) -> IntentEntry:
    intent = _members(value, "intent", "type", "ref", "payload_digest")
    return IntentEntry(
        _choice(intent, "type", IntentType), _text(intent, "ref"), _text_or_none(intent, "payload_digest")
    )


def _verdict(value: JsonValue) -> Verdict:
    verdict = _members(value, "verdict", "rule", "codes")
    codes = [code for code in _items(verdict, "codes") if isinstance(code, str)]
    if len(codes) != len(_items(verdict, "codes")):
        raise InvalidRecord("A verdict's codes are strings.")
    return Verdict(_text(verdict, "rule"), tuple(codes))


def change_from_json(value: JsonValue) -> PatchOp:
    """Raises `InvalidRecord`."""
    try:
        change = from_json(value)
    except InvalidCommand as error:
        raise InvalidRecord(str(error)) from None
    if to_json(change).keys() != cast("dict[str, JsonValue]", value).keys():
        raise InvalidRecord("A change has the members of its operation, and no others.")
    return change


def _artifact(value: JsonValue) -> Artifact:
    document = dict(_members(value, "artifact", "ref", *_ARTIFACT))
    ref = document.pop("ref")
    artifact = artifact_from_json(document)
    if artifact.ref != ref:
        raise InvalidRecord("An artifact is named by its digest.")
    return artifact


_ARTIFACT = ("authoritative", "kind", "data")


def artifact_from_json(value: JsonValue) -> Artifact:
    """The artifact of a document. Raises `InvalidRecord`, also if the document has no digest."""
    document = _members(value, "artifact", *_ARTIFACT)
    _check_authoritative(document)
    try:
        artifact = Artifact(_text(document, "kind"), document["data"])
        _ = artifact.ref
    except (RegistrationError, NotCanonical, TooLarge) as error:
        raise InvalidRecord(str(error)) from None
    return artifact


def _check_authoritative(members: dict[str, JsonValue]) -> None:
    if members["authoritative"] is not True:
        raise InvalidRecord("What a ledger keeps is authoritative.")


def _members(value: JsonValue, what: str, *names: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise InvalidRecord(f"A {what} is an object with the members {', '.join(names)}.")
    return value


def _items(parent: dict[str, JsonValue], name: str) -> list[JsonValue]:
    items = parent[name]
    if not isinstance(items, list):
        raise InvalidRecord(f"{name!r} is a list.")
    return items


def _text(parent: dict[str, JsonValue], name: str) -> str:
    text = parent[name]
    if not isinstance(text, str):
        raise InvalidRecord(f"{name!r} is a string.")
    return text


def _text_or_none(parent: dict[str, JsonValue], name: str) -> str | None:
    return None if parent[name] is None else _text(parent, name)


def _choice(parent: dict[str, JsonValue], name: str, kind: type[_E]) -> _E:
    try:
        return kind(_text(parent, name))
    except ValueError:
        raise InvalidRecord(f"{name!r} is one of {', '.join(kind)}.") from None
