"""Label choice: a tiny model chooses a tool by the probabilities that it gives to six labels.

    text_for("Is there a bed left?")      examples, then "Guest: Is there a bed left?\nAct:"
    choose(line, log_probs)               "rooms", if the model is sure enough and the line allows it

A model of 135 million parameters cannot write a tool call, not even one that is held to a JSON Schema. It can tell
lines apart a little. Each label is compared with its average over other lines, because the model prefers some words
whatever the line is. What is bought is never taken from the model: the line must name it. If the best label is not
clearly ahead of the second, nothing is chosen, and the innkeeper talks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue

MARGIN = 0.5
"""By how much the best label must be ahead of the second, as a difference of logarithms."""

_TALK = "talk"
_EXAMPLES = (
    ("I do not want a room, I am only passing by.", "talk"),
    ("Bread and butter for me.", "serve"),
    ("I have changed my mind, no ale for me.", "talk"),
    ("What will you take for the lantern over the door?", "lantern"),
    ("Tell me what people whisper about.", "rumour"),
    ("Who is staying here tonight?", "rooms"),
    ("Two wines for us.", "serve"),
    ("I need somewhere to sleep, the attic will do.", "rent"),
    ("The stew last night was too salty.", "talk"),
    ("How much money have I got left?", "talk"),
    ("Is there anything free upstairs?", "rooms"),
    ("I could eat. Bring me some stew.", "serve"),
    ("Put me down for the garden room.", "rent"),
    ("Why is the soup so dear?", "talk"),
    ("Would you sell me that lantern?", "lantern"),
    ("Any news from the north?", "rumour"),
    ("What beds do you have left?", "rooms"),
    ("A mug of ale, please.", "serve"),
    ("Could I rent the small room for tonight?", "rent"),
    ("Good evening, innkeeper.", "talk"),
)
_AVERAGES: Mapping[str, float] = {
    "rent": -4.0,
    "serve": -3.26,
    "rooms": -3.24,
    "rumour": -5.13,
    "lantern": -8.18,
    "talk": -2.87,
}
"""The logarithm of each label's mean probability over 20 other lines, for the weights `smollm2`.

A test measures them again."""
LABELS = tuple(_AVERAGES)

_ROOMS = {
    "attic": "attic",
    "loft": "attic",
    "gable": "gable",
    "garden": "garden",
    "chamber": "chamber",
    "great": "chamber",
}
_DISHES = {"ale": "ale", "beer": "ale", "wine": "wine", "stew": "stew", "supper": "stew", "bread": "bread"}
_NAMED = {
    "rent": re.compile(r"\b(rooms?|beds?|attic|loft|gable|garden|chamber|sleep|stay|lodgings?|night)\b"),
    "serve": re.compile(rf"\b({'|'.join(_DISHES)})s?\b"),
    "lantern": re.compile(r"\b(lantern|lamp)s?\b"),
}
"""Words of which one must be in the line for what these labels sell."""


def text_for(line: str) -> str:
    """The text whose next word is a label. It begins the same for every line, so that a cache has most of it."""
    shown = "".join(f"Guest: {said}\nAct: {label}\n" for said, label in _EXAMPLES)
    return f"{shown}Guest: {' '.join(line.split())}\nAct:"


def choose(line: str, log_probs: Mapping[str, float]) -> str | None:
    """The label that the model chose; None if it chose to talk, or is not sure."""
    words = line.casefold()
    scores = {
        label: log_probs[label] - average
        for label, average in _AVERAGES.items()
        if label not in _NAMED or _NAMED[label].search(words)
    }
    best, second = sorted(scores, key=lambda label: scores[label], reverse=True)[:2]
    return None if best == _TALK or scores[best] - scores[second] < MARGIN else best


def call_for(label: str, line: str) -> tuple[str, dict[str, JsonValue]]:
    """The tool and the arguments for a label. Rooms and dishes are those that the line names."""
    words = line.casefold()
    match label:
        case "rent":
            return "rent_room", {"room": _first(_ROOMS, words)}
        case "serve":
            return "serve_order", {"dish": _first(_DISHES, words)}
        case "rooms":
            return "check_rooms", {}
        case "rumour":
            return "recall_rumour", {}
        case _:
            return "sell_lantern", {}


def _first(vocabulary: Mapping[str, str], words: str) -> str | None:
    found = re.search(rf"\b({'|'.join(vocabulary)})s?\b", words)
    return None if found is None else vocabulary[found[1]]
