"""The four lines of a callout, and the words of the voice."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights_transports.views.mission.pure.terms import Classification, MissionEventType
from footlights_transports.views.mission.pure.text import (
    NOT_STATED,
    TextPayload,
    compose,
    compose_plain,
    normalize,
)

KIND = MissionEventType.THREAT_UPDATE, Classification.WARN
GOOD = compose(
    *KIND,
    change="The gate failed.",
    impact="The release waits.",
    next_action="Fix it before noon.",
    evidence_refs=["docs/a.md#L1", "docs/b.md"],
)


@pytest.mark.shows("callouts-19", "callouts-24")
def test_the_four_lines_carry_their_labels() -> None:
    assert GOOD.block.splitlines() == [
        "CHANGE: threat_update/warn -- The gate failed.",
        "IMPACT: The release waits.",
        "NEXT: Fix it before noon.",
        "EVIDENCE: docs/a.md#L1, docs/b.md",
    ]
    assert list(GOOD.broken_rules()) == []


def test_a_voice_says_change_impact_and_next_action_without_labels_and_evidence() -> None:
    assert GOOD.spoken == "The gate failed. The release waits. Fix it before noon."


def test_a_voice_leaves_out_what_is_not_stated() -> None:
    assert compose(*KIND, change="The gate failed.").spoken == "The gate failed."


def test_lines_without_labels_are_spoken_whole() -> None:
    lines = TextPayload(what_changed="Gate:  down", why_it_matters="bad", next_action="run", evidence_anchor="x")
    assert lines.spoken == "Gate: down. bad. run"


def test_a_voice_pauses_between_the_lines_and_not_within_a_running_text() -> None:
    lines = compose(*KIND, change="Do not touch", impact='The lever is "safe!"', next_action="Wait outside")
    assert lines.spoken == 'Do not touch. The lever is "safe!" Wait outside'
    words = "one two " * 40
    running = compose_plain(*KIND, words)
    assert NOT_STATED not in running.why_it_matters
    assert running.spoken == words.rstrip()


@pytest.mark.shows("callouts-18", "callouts-20", "callouts-22")
@pytest.mark.parametrize(
    ("line", "longest"), [("what_changed", 160), ("why_it_matters", 220), ("next_action", 160)], ids=lambda it: str(it)
)
def test_a_line_may_be_as_long_as_the_contract_says_and_no_longer(line: str, longest: int) -> None:
    assert list(evolve(GOOD, **{line: "x" * longest}).broken_rules()) == []
    assert list(evolve(GOOD, **{line: "x" * (longest + 1)}).broken_rules()) == [f"{line}_too_long"]


@pytest.mark.shows("callouts-26")
def test_all_lines_together_have_at_most_900_characters() -> None:
    room = 900 - len(GOOD.block) + len(GOOD.evidence_anchor)
    assert list(evolve(GOOD, evidence_anchor="x" * room).broken_rules()) == []
    assert list(evolve(GOOD, evidence_anchor="x" * (room + 1)).broken_rules()) == ["text_block_too_long"]


@pytest.mark.shows("callouts-16")
@pytest.mark.parametrize("line", list(GOOD.document))
@pytest.mark.parametrize("empty", ["", "  ", "NEXT: "])
def test_no_line_may_be_empty(line: str, empty: str) -> None:
    assert list(evolve(GOOD, **{line: empty}).broken_rules()) == [f"{line}_empty"]


@pytest.mark.shows("callouts-17")
@pytest.mark.parametrize(
    ("change", "is_one"),
    [
        ("It failed.", True),
        ("Version 1.2 failed", True),
        ("It failed. It did.", False),
        ("Failed! Again", False),
        ("“Failed.” Again", False),
        ("It failed.It did.", False),
        ("扉が開いた。急げ。", False),
        ("Dr. Odo failed at 3.5 m, e.g. in No. 5.", True),
    ],
)
def test_what_changed_is_one_sentence(change: str, is_one: bool) -> None:
    broken = list(compose(*KIND, change=change).broken_rules())
    assert broken == ([] if is_one else ["what_changed_several_sentences"])


WORDS = st.lists(st.text("abcÄ日.", min_size=1, max_size=12), max_size=60).map(" ".join)


# -- plain texts


@given(WORDS)
def test_a_plain_text_is_laid_out_without_losing_a_word(text: str) -> None:
    lines = compose_plain(*KIND, text)
    assert "".join(lines.spoken.split()) == "".join(text.split())
    assert len(lines.why_it_matters) <= 220
    assert "what_changed_several_sentences" not in lines.broken_rules()


def test_a_plain_text_begins_with_its_first_sentence() -> None:
    lines = compose_plain(*KIND, "The gate  failed.\nThe release waits.", ["docs/a.md"])
    made = compose(*KIND, change="The gate failed.", impact="The release waits.", evidence_refs=["docs/a.md"])
    assert lines.document == made.document


def test_a_plain_text_that_a_briefing_could_speak_fits_into_the_lines() -> None:
    assert list(compose_plain(*KIND, "word " * 84).broken_rules()) == []


def test_a_plain_text_that_is_too_long_for_the_lines_keeps_every_word_and_breaks_a_rule() -> None:
    lines = compose_plain(*KIND, "word " * 200)
    assert lines.spoken.split() == ["word"] * 200
    assert list(lines.broken_rules()) == ["next_action_too_long", "text_block_too_long"]


def test_a_plain_text_of_one_endless_word_breaks_a_rule() -> None:
    assert "what_changed_too_long" in compose_plain(*KIND, "x" * 200).broken_rules()


def test_a_line_without_content_reads_not_stated() -> None:
    assert compose_plain(*KIND, "Go.").next_action == f"NEXT: {NOT_STATED}"


# -- evidence


@pytest.mark.shows("callouts-24")
def test_refs_that_do_not_fit_are_counted() -> None:
    refs = [f"docs/{'x' * 90}{number}.md" for number in range(9)]
    anchor = compose(*KIND, change="It failed.", evidence_refs=refs).evidence_anchor
    assert anchor == f"EVIDENCE: {', '.join(refs[:3])}, and 6 more"


def test_a_ref_that_is_longer_than_the_line_is_counted() -> None:
    lines = compose(*KIND, change="It failed.", evidence_refs=["x" * 999])
    assert lines.evidence_anchor == "EVIDENCE: 1 that are too long for this line"


# -- what is the same


@pytest.mark.parametrize(
    "other", ["the GATE failed", " The  gate\nfailed!", "The gate failed...", "\uff34he gate failed"]
)
def test_texts_that_differ_in_case_spacing_final_marks_or_encoding_are_equal(other: str) -> None:
    assert normalize(other) == normalize("The gate failed.")


@pytest.mark.parametrize("other", ["The gates failed.", "The gate -- failed.", "The gate failed 2."])
def test_texts_with_other_words_differ(other: str) -> None:
    assert normalize(other) != normalize("The gate failed.")


@given(st.text())
def test_normalizing_is_idempotent(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)
