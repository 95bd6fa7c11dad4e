"""Accuracy of the standard rules, on the prompts they were built with and on held-out prompts."""

from __future__ import annotations

import pytest

from footlights.modes import Candidate, Confirmation, ExecutionPolicy, decide
from footlights.modes.words import sentences
from tests.kit.labelled_intents import BUILT_WITH, HELD_OUT, REVIEWER, Labelled


def found(prompt: Labelled) -> tuple[Candidate, Confirmation | None]:
    decision = decide(prompt.message, ExecutionPolicy.AUTO)
    return decision.candidate, decision.confirmation


@pytest.mark.parametrize("prompt", BUILT_WITH, ids=lambda prompt: prompt.message[:40])
def test_the_rules_agree_with_every_prompt_they_were_built_with(prompt: Labelled) -> None:
    assert found(prompt) == (prompt.candidate, prompt.confirmation)


@pytest.mark.parametrize(
    "prompt",
    [prompt for prompt in HELD_OUT if prompt.candidate is Candidate.CHAT],
    ids=lambda prompt: prompt.message[:40],
)
def test_no_small_talk_of_the_held_out_prompts_is_taken_for_work(prompt: Labelled) -> None:
    assert found(prompt) == (Candidate.CHAT, None)


def test_four_of_five_requests_for_work_of_the_held_out_prompts_are_found() -> None:
    work = [prompt for prompt in HELD_OUT if prompt.candidate is Candidate.EXECUTION]
    missed = [prompt.message for prompt in work if found(prompt)[0] is Candidate.CHAT]
    assert (len(work), len(missed)) == (65, 13)


def test_every_reason_to_ask_of_the_held_out_prompts_is_found_and_one_is_found_too_often() -> None:
    assert [prompt for prompt in HELD_OUT if prompt.confirmation and found(prompt)[1] is not prompt.confirmation] == []
    too_often = [prompt.message for prompt in HELD_OUT if not prompt.confirmation and found(prompt)[1]]
    assert too_often == ["search: reminder fatigue"]


def test_what_the_rules_get_wrong_of_a_reviewer_s_prompts_is_what_the_docs_say() -> None:
    work = [prompt for prompt in REVIEWER if prompt.candidate is Candidate.EXECUTION]
    talk = [prompt for prompt in REVIEWER if prompt.candidate is Candidate.CHAT]
    assert (len(work), len(talk)) == (36, 109)
    assert sum(found(prompt)[0] is Candidate.CHAT for prompt in work) == 5
    assert [prompt.message for prompt in talk if found(prompt)[0] is Candidate.EXECUTION] == [
        "search your feelings",
        "simulate 200 people, NOT",
        "Evaluate this sentence: I run.",
        "Analyze this poem",
        "Delete that from your memory",
        "search me!",
        "Do that again",
    ]


def test_the_set_is_large_and_two_fifths_of_it_are_held_out() -> None:
    assert len(BUILT_WITH) + len(HELD_OUT) >= 260
    assert len(HELD_OUT) / (len(BUILT_WITH) + len(HELD_OUT)) >= 0.4


def test_no_prompt_is_repeated() -> None:
    words = [str(sentences(prompt.message)) for prompt in (*BUILT_WITH, *HELD_OUT) if sentences(prompt.message)]
    assert sorted({each for each in words if words.count(each) > 1}) == []


@pytest.mark.parametrize("prompts", [BUILT_WITH, HELD_OUT], ids=["built with", "held out"])
def test_every_label_occurs_several_times(prompts: list[Labelled]) -> None:
    labels = [(prompt.candidate, prompt.confirmation) for prompt in prompts]
    for confirmation in (None, *Confirmation):
        assert labels.count((Candidate.EXECUTION, confirmation)) >= 2
    assert labels.count((Candidate.CHAT, None)) >= 50
    assert {candidate for candidate, confirmation in labels if confirmation} == {Candidate.EXECUTION}
