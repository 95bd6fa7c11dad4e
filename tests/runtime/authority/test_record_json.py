"""A record that was written reads back as the same record, and nothing else reads as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
import rfc8785
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights.authority import (
    Artifact,
    CommitRecord,
    IntentEntry,
    IntentType,
    Verdict,
    canonical,
    digest,
    patch,
    recompute_digest,
    sealed,
)
from footlights.authority.record import InvalidRecord, digested_json, record_from_json, record_to_json
from footlights.events import CommitOutcome, Issue

if TYPE_CHECKING:
    from footlights.events import JsonValue

# The second kind looks like the place where a seal is put in.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["intents", ',"intents":[', '":']
)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1000, 1000) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
changes = (
    st.builds(patch.add, texts, values)
    | st.builds(patch.replace, texts, values)
    | st.builds(patch.test, texts, values)
    | st.builds(patch.remove, texts)
    | st.builds(patch.move, texts, texts)
    | st.builds(patch.copy, texts, texts)
)


def some(each: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(each, max_size=3).map(tuple)


records = st.builds(
    CommitRecord,
    session_id=texts,
    turn_id=texts,
    outcome=st.sampled_from(CommitOutcome),
    issues=some(st.builds(Issue, texts, texts, st.none() | texts)),
    intents=some(st.builds(IntentEntry, st.sampled_from(IntentType), texts, st.none() | digests)),
    verdicts=some(st.builds(Verdict, texts, some(texts))),
    changes=some(changes),
    artifacts=some(st.builds(Artifact, st.sampled_from(["receipt", "deed.v2"]), values)),
    world_before=digests,
    world_after=digests,
    previous=st.none() | digests,
    mode_decision=st.none() | st.dictionaries(texts, values, max_size=3),
    why=st.none() | texts,
).map(sealed)

RECORD = sealed(
    CommitRecord(
        session_id="s1-000001",
        turn_id="t1-000001",
        outcome=CommitOutcome.OK,
        issues=(Issue("odd", "Odd.", "call-1"),),
        intents=(IntentEntry(IntentType.DECISION, "call-1", None),),
        verdicts=(Verdict("rule", ("odd",)),),
        changes=(patch.add("/a", 1), patch.move("/a", "/b"), patch.remove("/b")),
        artifacts=(Artifact("deed", {"room": 3}),),
        world_before="0" * 64,
        world_after="1" * 64,
        previous=None,
    )
)


@given(records)
def test_what_was_written_reads_back_as_the_same_record(record: CommitRecord) -> None:
    read = record_from_json(json.loads(canonical(record_to_json(record))))
    assert read == record
    assert recompute_digest(read) == record.commit_digest


@given(records)
def test_the_fast_way_writes_the_canonical_bytes(record: CommitRecord) -> None:
    assert record.written == canonical(record_to_json(record)) == rfc8785.dumps(record_to_json(record))
    assert record.commit_digest == digest(digested_json(record))


def test_a_change_to_a_sealed_record_is_written() -> None:
    other = evolve(RECORD, changes=())
    assert other.written == rfc8785.dumps(record_to_json(other))
    assert other.written != RECORD.written


def test_the_fast_way_writes_changes_as_rfc_8785_says() -> None:
    # A whole float, and keys that by UTF-16 units are ordered otherwise than by code points.
    record = sealed(evolve(RECORD, changes=(patch.add("/", {"\ufb33": 2.0, "\U0001f600": 1e-7}),)))
    assert '"value":{"\U0001f600":1e-7,"\ufb33":2}'.encode() in record.written


def test_a_digest_that_is_wrong_is_read_as_it_stands() -> None:
    written = {**record_to_json(RECORD), "commit_digest": "no digest"}
    assert record_from_json(written).commit_digest == "no digest"


def places(value: JsonValue, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where in a written record there is something that could be something else."""
    children: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def changed_at(place: tuple[str | int, ...], value: JsonValue) -> JsonValue:
    written: JsonValue = json.loads(canonical(record_to_json(RECORD)))
    if not place:
        return value
    parent = cast("dict[str | int, JsonValue]", written)
    for key in place[:-1]:
        parent = cast("dict[str | int, JsonValue]", parent[key])
    parent[place[-1]] = value
    return written


EVERYWHERE = [place for place in places(record_to_json(RECORD)) if place != ("changes", 0, "value")]
WRONG: list[JsonValue] = [5, True, {"surprise": 1}]


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (place, wrong)
        for place in EVERYWHERE
        for wrong in WRONG
        if place[-1:] != ("authoritative",) or wrong is not True
    ],
    ids=str,
)
def test_a_member_of_another_kind_is_refused(place: tuple[str | int, ...], wrong: JsonValue) -> None:
    with pytest.raises(InvalidRecord):
        record_from_json(changed_at(place, wrong))


@pytest.mark.parametrize(
    "place", [(), ("issues", 0), ("intents", 0), ("verdicts", 0), ("artifacts", 0), *(("changes", n) for n in range(3))]
)
def test_a_member_too_many_or_too_few_is_refused(place: tuple[str | int, ...]) -> None:
    written: JsonValue = record_to_json(RECORD)
    for key in place:
        written = cast("dict[str | int, JsonValue]", written)[key]
    members = cast("dict[str, JsonValue]", written)
    for other in ({**members, "surprise": None}, {key: members[key] for key in list(members)[1:]}):
        with pytest.raises(InvalidRecord):
            record_from_json(changed_at(place, other))


@pytest.mark.parametrize("wrong", [None, 5, "chat", ["chat"]])
def test_a_decision_on_the_mode_is_an_object_or_not_there(wrong: JsonValue) -> None:
    decided = record_to_json(sealed(evolve(RECORD, mode_decision={"mode": "chat"})))
    assert record_from_json(decided).mode_decision == {"mode": "chat"}
    with pytest.raises(InvalidRecord):
        record_from_json({**decided, "mode_decision": wrong})


@pytest.mark.parametrize("place", [("outcome",), ("intents", 0, "type"), ("changes", 0, "op")])
def test_a_choice_that_does_not_exist_is_refused_and_not_quoted(place: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidRecord) as caught:
        record_from_json(changed_at(place, "whispered"))
    assert caught.value.code == "invalid_record"
    assert "whispered" not in str(caught.value)


@pytest.mark.parametrize(("member", "wrong"), [("kind", "Whispered words"), ("data", 2**60)])
def test_an_artifact_that_could_never_be_made_is_refused_and_not_quoted(member: str, wrong: JsonValue) -> None:
    with pytest.raises(InvalidRecord) as caught:
        record_from_json(changed_at(("artifacts", 0, member), wrong))
    assert "Whispered" not in str(caught.value)
