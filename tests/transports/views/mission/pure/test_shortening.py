"""Shortening what a voice says: less words, never another meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights_transports.views.mission.pure.shortening import sentences, shorten


@pytest.mark.shows("callouts-32")
@pytest.mark.parametrize(
    "text",
    [
        "Open the door only after the alarm has stopped.",
        "Open the door. Only after the alarm has stopped.",
        "Drink the potion; not the red one.",
        "Drink the potion. But do not take the red one.",
        "Leave the hall, the cellar and the attic.",
        "Open the door; it is safe unless the light is red.",
        "Cross the bridge. Unless it is on fire.",
        "Nimm die Treppe. Aber erst nach dem Signal.",
        "Ouvrez la porte. Seulement après l'alarme.",
        "Abra a porta. Somente depois do alarme.",
        "He said (and this is important. Listen.) that it is safe.",
        "Gate open at 3.5 m",
        "Open the door. You may do so only after the alarm has stopped.",
        "Open the door. The alarm is loud. Wait until it stops.",
        "Open the door; it is heavy. Wait until the alarm stops.",
        "Open the hatch. It isn't safe.",
        "Open the hatch; first close the valve.",
        "Open the hatch. Wait for the signal.",
        "Open the hatch. Disregard that.",
        "Open the hatch. You can't breathe there.",
        "Öffne die Luke. Zuerst das Ventil schließen.",
        "Ouvrez la trappe. Attendez le signal.",
        "Abre la puerta. Primero cierra la válvula.",
        "Apri la porta. Aspetta il segnale.",
        "Open de deur. Alleen na het alarm.",
        "x" * 50,
    ],
)
def test_nothing_is_said_rather_than_something_else(text: str) -> None:
    assert {shorten([text], longest) for longest in range(len(text))} == {""}
    assert shorten([text], len(text)) == text


@pytest.mark.parametrize(
    ("text", "longest", "short"),
    [
        ("The guard woke. The door shuts. Run.", 36, "The guard woke. The door shuts. Run."),
        ("The guard woke. The door shuts. Run.", 35, "The guard woke. The door shuts."),
        ("The guard woke. The door shuts. Run.", 30, "The guard woke."),
        ("The guard woke. The door shuts. Run.", 14, ""),
        ("The guard woke; the door shuts.", 30, "The guard woke."),
        ("Dr. Odo is at 3.5 m, e.g. in No. 5. Run.", 39, "Dr. Odo is at 3.5 m, e.g. in No. 5."),
        ("J. R. R. Odo came.Then he left.", 30, "J. R. R. Odo came."),
        ("扉が開いた。急げ。", 8, "扉が開いた。"),
        ("Fire! Only Odo stays. All go.", 28, "Fire! Only Odo stays."),
        ("Fire! Only Odo stays. All go.", 20, ""),
    ],
)
def test_a_text_is_cut_after_a_sentence_or_a_clause_that_stands_alone(text: str, longest: int, short: str) -> None:
    assert shorten([text], longest) == short


def test_a_line_limits_the_one_before_only_with_its_first_words() -> None:
    lines = ["The guard woke.", "The door will be locked.", "Leave by the window before the bell."]
    assert shorten(lines, 75) == "The guard woke. The door will be locked."
    assert shorten(lines, 39) == "The guard woke."
    assert shorten(["Open the door.", "Only after the bell."], 30) == ""
    assert shorten([], 5) == ""


TEXTS = st.lists(
    st.sampled_from(
        [
            "Run.",
            "Only then",
            "it is safe;",
            "the door (the old one)",
            "shuts!",
            '"No."',
            "3.5 m",
            "Dr. Odo",
            "急げ。",
            "\u2003",
        ]
    ),
    max_size=12,
).map(" ".join) | st.text(max_size=60)


@given(TEXTS)
def test_the_sentences_of_a_text_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(TEXTS, st.integers(0, 80))
def test_a_shortened_text_fits_and_begins_as_the_text_does(text: str, longest: int) -> None:
    short = shorten([text], longest)
    assert len(short) <= longest
    assert text.startswith(short) or (short[-1] == "." and text.startswith(short[:-1]))
