"""The reason of an interruption is read back from the record exactly as it was written."""

from __future__ import annotations

import pytest

from footlights.authority.interruptions import failed_by, interrupted_by, interruption
from footlights.authority.judge import JudgeRequest, judge
from footlights.authority.record import record_from_json, record_to_json
from footlights.authority.rules import RuleBook, every_turn, refuse
from footlights.authority.world import JsonWorld
from footlights.events import ErrorInfo, InterruptReason, Issue
from footlights.failure_texts import FAILURE_TEXTS, UNSPECIFIC, known

REFUSED = Issue("no_gold", "The purse is too light.")
UNWRITTEN = Issue("ledger_unavailable", "The ledger could not write. Nothing of the turn was committed.")


@pytest.mark.parametrize("reason", InterruptReason)
def test_every_reason_is_read_back_from_its_own_sentence(reason: InterruptReason) -> None:
    assert interruption(reason) == (Issue("turn_interrupted", f"The turn was interrupted: {reason.value}."),)
    assert interrupted_by(interruption(reason)) is reason
    assert interrupted_by([REFUSED, *interruption(reason), UNWRITTEN]) is reason


@pytest.mark.parametrize("code", FAILURE_TEXTS)
def test_a_failure_is_read_back_from_its_code_with_the_standard_sentence(code: str) -> None:
    issues = interruption(InterruptReason.MODEL_ERROR, code)
    assert failed_by(issues) == failed_by([*issues, UNWRITTEN]) == ErrorInfo(code, FAILURE_TEXTS[code])
    assert interrupted_by(issues) is InterruptReason.MODEL_ERROR


@pytest.mark.parametrize(
    ("reason", "code"), [*UNSPECIFIC.items(), (InterruptReason.MODEL_ERROR, None), (InterruptReason.STALLED, "pet")]
)
def test_a_failure_of_which_no_more_is_known_than_the_reason_adds_nothing_to_the_record(
    reason: InterruptReason, code: str | None
) -> None:
    assert interruption(reason, code) == interruption(reason)
    assert failed_by(interruption(reason, code)) == known(UNSPECIFIC[reason])


@pytest.mark.parametrize("reason", sorted(set(InterruptReason) - set(UNSPECIFIC)))
def test_a_turn_that_was_stopped_did_not_fail(reason: InterruptReason) -> None:
    assert failed_by([*interruption(reason), UNWRITTEN]) is None


@pytest.mark.parametrize("reason", InterruptReason)
def test_a_judged_turn_says_in_the_ledger_why_it_was_interrupted(reason: InterruptReason) -> None:
    judgement = judge(JudgeRequest("s1-000001", "t1-000001", reason), JsonWorld({}), RuleBook(), None)
    assert interrupted_by(record_from_json(record_to_json(judgement.record)).issues) is reason


def test_whatever_else_went_wrong_is_no_interruption() -> None:
    assert interrupted_by([]) is None
    quoting = Issue("no_gold", interruption(InterruptReason.CANCELED)[0].message)
    assert interrupted_by([REFUSED, UNWRITTEN, quoting]) is None


@pytest.mark.parametrize(
    "message", ["The turn was interrupted: sunrise.", "canceled", "The turn was interrupted: canceled"]
)
def test_an_unknown_sentence_is_not_guessed_at(message: str) -> None:
    assert interrupted_by([Issue("turn_interrupted", message)]) is InterruptReason.RUNTIME_RESTART


def test_no_rule_can_say_that_a_turn_was_interrupted() -> None:
    (forged,) = interruption(InterruptReason.CANCELED)
    rules = RuleBook({"forger": every_turn(lambda view, intents: refuse(forged.code, forged.message))})
    record = judge(JudgeRequest("s1-000001", "t1-000001", None), JsonWorld({}), rules, None).record
    assert [issue.code for issue in record.issues] == ["rule_error"]
    assert interrupted_by(record.issues) is None
