"""Parameters of a session and of a turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import BusyRule, Fact, InvalidCommand, Mode, SessionParams, TurnParams, quote_session_id


@pytest.mark.parametrize(
    "name", ["a", "7", "S1", "s1", "s1-", "s-1", "s1-1x", "xs1-000001", "Player.1:main@inn_2-b", "a" * 128]
)
def test_a_session_may_have_any_plain_name(name: str) -> None:
    assert SessionParams(session_id=name).session_id == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", ".a", "-a", "a/b", "a\n", "é", "a" * 129, "a\0", "s\u0661-\u0661", "\ud800"]
)
def test_a_name_that_could_be_misread_is_refused(name: str) -> None:
    with pytest.raises(InvalidCommand):
        SessionParams(session_id=name)


@pytest.mark.parametrize("name", ["s1-000001", "s1-1", "s99-1234567"])
def test_a_name_that_looks_numbered_by_the_stage_is_refused(name: str) -> None:
    with pytest.raises(InvalidCommand, match="gives out itself"):
        SessionParams(session_id=name)


def test_a_refusal_never_quotes_the_name() -> None:
    with pytest.raises(InvalidCommand) as refusal:
        SessionParams(session_id="my secret")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("own", "quoted"),
    [
        ("a", "a"),
        ("Player.1:main@inn_2-b", "Player.1:main@inn_2-b"),
        ("bob#7", "q.bob_237"),
        ("bob_237", "bob_237"),
        ("q.bob_237", "q.q.bob_5f237"),
        ("s1-000001", "q.s1-000001"),
        ("é", "q._c3_a9"),
        ("a" * 128, "a" * 128),
    ],
)
def test_any_text_can_be_quoted_as_a_session_id(own: str, quoted: str) -> None:
    assert quote_session_id(own) == quoted
    assert SessionParams(session_id=quoted).session_id == quoted


@given(st.sets(st.text(alphabet="ab_.:#q2é\ud800", min_size=1, max_size=12), min_size=2))
def test_different_texts_are_quoted_differently(own: set[str]) -> None:
    quoted = {quote_session_id(each) for each in own}
    assert len(quoted) == len(own)
    for each in quoted:
        SessionParams(session_id=each)


@pytest.mark.parametrize("own", ["", "#" * 43, None, 7])
def test_what_cannot_be_quoted_is_refused(own: Any) -> None:
    with pytest.raises(InvalidCommand):
        quote_session_id(own)


def test_without_a_word_a_turn_queues_and_may_use_tools() -> None:
    params = TurnParams()
    assert (params.busy, params.mode, params.model, params.workload) == (BusyRule.QUEUE, Mode.EXECUTION, None, None)
    assert SessionParams().session_id is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"busy": "whatever"},
        {"mode": "whatever"},
        {"tier": "whatever"},
        {"sampling": None},
        {"sampling": {"temperature": 0.5}},
        {"approvals": {"yes, do it": True}},
        {"approvals": {"a-000001": 1}},
        {"approvals": {1: True}},
        {"approvals": None},
        {"approvals": 5},
        {"approvals": "a"},
        {"approvals": [("a-000001", True)]},
        {"facts": None},
        {"facts": "Weather"},
        {"approvals": {f"a-{number:06d}": True for number in range(33)}},
    ],
)
def test_what_does_not_exist_or_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidCommand):
        TurnParams(**wrong)


def test_the_value_of_a_rule_is_as_good_as_the_rule() -> None:
    assert TurnParams(busy="reject").busy is BusyRule.REJECT


def test_the_answers_of_a_turn_are_its_own_and_refusing_them_quotes_nothing() -> None:
    answers = {"a-000001": True}
    params = TurnParams(approvals=answers)
    answers["a-000001"] = False
    assert params.approvals == {"a-000001": True}
    assert params == TurnParams(approvals={"a-000001": True}) != TurnParams()
    assert hash(params) == hash(TurnParams(approvals={"a-000001": True}))
    with pytest.raises(TypeError):
        params.approvals["a-000001"] = False  # type: ignore[index]  # nobody may, so nobody can
    with pytest.raises(InvalidCommand) as refusal:
        TurnParams(approvals={"my secret": True})
    assert "secret" not in str(refusal.value)


def test_the_facts_of_a_turn_are_not_shown_where_its_parameters_are() -> None:
    params = TurnParams(facts=[Fact("Secret", "blue")])
    assert params.facts == (Fact("Secret", "blue"),)
    assert "blue" not in repr(params)
    assert hash(params) == hash(TurnParams())
