"""How many prompts are understood that the weights were not learned from: a stranger wrote and labelled them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from footlights.modes import IntentKind, detect
from footlights.modes.weights import standard_weights
from tests.kit.labelled_intents import HELD_OUT
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LABELS = ROOT / "benchmarks/modes/labels"


def understood(label: str) -> float:
    prompts = [each["text"] for each in HELD_OUT if each["label"] == label]
    kind = IntentKind.EXECUTION if label == "work" else IntentKind.CONVERSATIONAL
    return sum(detect(text).kind is kind for text in prompts) / len(prompts)


@pytest.mark.shows("narration-14")
@pytest.mark.parametrize(("label", "reached"), [("work", 0.84), ("chat", 0.95)])
def test_so_many_of_the_held_out_prompts_are_understood(label: str, reached: float) -> None:
    """The aims are 0.90 and 0.95."""
    assert understood(label) >= reached


def test_no_held_out_prompt_is_among_those_that_were_learned() -> None:
    learned = {_bare(row["text"]) for file in LABELS.glob("*.jsonl") for row in _rows(file)}
    assert len(learned) > 8_000
    assert not [number for number, each in enumerate(HELD_OUT) if _bare(each["text"]) in learned]


def _bare(text: str) -> str:
    """The text without case, punctuation and spaces."""
    return "".join(filter(str.isalnum, text.casefold())) or text


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "order",
    [
        "Search the swordfish files.",
        "Find the budget files.",
        "Scan the zorble crates",
        "Could you please archive the frimble tables?",
        "Durchsuche die Zorbelakten.",
        "Cherche les dossiers zorble.",
        "Borra las tablas zorble.",
        "Apri gli archivi zorble.",
        "Doorzoek de zorbelmappen.",
    ],
)
def test_an_imperative_of_a_verb_of_work_is_work_whatever_its_object(order: str) -> None:
    assert detect(order).kind is IntentKind.EXECUTION


@pytest.mark.shows("narration-25", "narration-28", "narration-39")
def test_plain_orders_and_questions_that_need_a_search_are_work_and_wishes_are_not() -> None:
    for work in (
        "Plot adherence by week for both arms",
        "Remove every simulation older than 30 days",
        "Is there anything in the repository about refill gaps?",
    ):
        assert detect(work).kind is IntentKind.EXECUTION
    assert detect("We should simulate less").kind is IntentKind.CONVERSATIONAL


def test_the_held_out_prompts_have_many_kinds_and_more_than_one_language() -> None:
    assert len(HELD_OUT) >= 300
    assert len({each["kind"] for each in HELD_OUT}) >= 20
    assert len({each["lang"] for each in HELD_OUT}) > 1


def test_the_weights_are_integers_in_less_than_600_kilobytes_and_their_version_is_their_digest() -> None:
    data = (ROOT / "runtime/footlights/modes/weights.tsv").read_bytes()
    assert len(data) < 600_000
    head, _, rest = data.partition(b"\n")
    assert head.split(b"\t")[1].decode() == "w" + hashlib.blake2b(rest, digest_size=4).hexdigest()
    assert all(type(weight) is int for of in standard_weights().of.values() for weight in of.values())
