"""Sentence limit: the same text however it is cut into pieces."""

from __future__ import annotations

import pytest

from footlights_actors.models.local.sentences import SentenceLimit

TEXTS = {
    "One. Two. Three.": "One. Two.",
    "One! Two? Three.": "One! Two?",
    "It is 3.5 coins. Take it. Or not.": "It is 3.5 coins. Take it.",
    "Well... yes. No.": "Well... yes.",
    'He said "no." She left. Then?': 'He said "no." She left.',
    "(Quiet.) *He nods.* More.": "(Quiet.) *He nods.*",
    "One. Two.": "One. Two.",
    "No end": "No end",
    "": "",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_two_sentences_are_passed_on(text: str, size: int) -> None:
    limit = SentenceLimit(2)
    pieces = [text[begin : begin + size] for begin in range(0, len(text), size)]
    assert "".join(map(limit.feed, pieces)) == TEXTS[text]
    assert limit.is_reached is (TEXTS[text] != text)
    assert limit.feed(" More. ") == ("" if limit.is_reached else " More.") or not limit.is_reached
