from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import pytest

from footlights.authority import Intent, IntentType, check_intent, digest
from footlights.errors import InvalidCommand, TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

PAYLOAD: JsonValue = {"gold": 3, "paid": True}


def test_a_checked_payload_is_known_by_its_digest() -> None:
    assert check_intent(Intent(IntentType.TOOL_RESULT, "call-1", PAYLOAD)).payload_digest == digest(PAYLOAD)
    assert check_intent(Intent(IntentType.TOOL_RESULT, "call-1", PAYLOAD, digest(PAYLOAD))).payload_digest == digest(
        PAYLOAD
    )


@pytest.mark.shows("core-55")
def test_an_intent_without_payload_may_name_a_digest_or_none() -> None:
    assert check_intent(Intent(IntentType.TURN_FINALIZE, "t1-000001")).payload_digest is None
    assert check_intent(Intent(IntentType.DECISION, "d-1", payload_digest=digest("x"))).payload_digest == digest("x")


@pytest.mark.parametrize("ref", ["", "r" * 257, "\ud800"])
def test_a_ref_that_cannot_be_kept_is_refused(ref: str) -> None:
    with pytest.raises(InvalidCommand):
        check_intent(Intent(IntentType.DECISION, ref))


@pytest.mark.parametrize("ref", [["o-17"], {"o-17": 1}, 17, None, b"o-17", IntentType.DECISION])
def test_a_ref_that_is_no_plain_string_is_refused(ref: object) -> None:
    with pytest.raises(InvalidCommand, match="must be of type str"):
        check_intent(Intent(IntentType.DECISION, cast("str", ref)))


def test_what_is_no_intent_is_refused() -> None:
    with pytest.raises(InvalidCommand, match="must be of type Intent, and not dict"):
        check_intent(cast("Intent", {"type": "decision", "ref": "d-1"}))


def test_the_longest_ref_is_allowed() -> None:
    assert check_intent(Intent(IntentType.DECISION, "r" * 256)).payload_digest is None


@pytest.mark.parametrize("payload", [math.nan, [math.inf], 2**53, "\ud800", {"a": (1,)}, {"a": {1: 2}}])
def test_a_payload_that_is_not_plain_json_is_refused(payload: JsonValue) -> None:
    with pytest.raises(InvalidCommand):
        check_intent(Intent(IntentType.DECISION, "d-1", payload))


def test_a_refusal_does_not_quote_the_payload() -> None:
    with pytest.raises(InvalidCommand) as caught:
        check_intent(Intent(IntentType.DECISION, "d-1", {"whispered": math.nan}))
    assert "whispered" not in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "payload_digest"),
    [(PAYLOAD, "0" * 64), (PAYLOAD, ""), (None, "so it is"), (None, "A" * 64), (None, cast("str", 7))],
)
def test_a_digest_that_cannot_be_right_is_refused(payload: JsonValue, payload_digest: str) -> None:
    with pytest.raises(InvalidCommand):
        check_intent(Intent(IntentType.DECISION, "d-1", payload, payload_digest))


def test_what_is_judged_is_what_was_staged() -> None:
    items: list[JsonValue] = ["ale"]
    intent = Intent(IntentType.TOOL_RESULT, "call-1", {"items": items})
    items.append("the crown jewels")
    assert intent.payload == {"items": ["ale"]}


def test_a_payload_that_contains_itself_never_becomes_an_intent() -> None:
    loop: list[JsonValue] = []
    loop.append(loop)
    with pytest.raises(TooLarge):
        Intent(IntentType.DECISION, "d-1", loop)


@pytest.mark.shows("core-25", "core-55")
def test_an_intent_type_is_one_of_three() -> None:
    assert [kind.value for kind in IntentType] == ["tool_result", "decision", "turn_finalize"]
    assert Intent("decision", "d-1").type is IntentType.DECISION


@pytest.mark.parametrize("nonsense", ["prophecy", "", "Decision"])
def test_an_intent_of_any_other_type_is_never_made(nonsense: str) -> None:
    with pytest.raises(InvalidCommand, match="tool_result, decision, turn_finalize"):
        Intent(nonsense, "p-1")
