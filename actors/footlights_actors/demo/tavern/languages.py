"""Languages of travellers: what their words mean in the tavern. It is enough for ordering politely."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def table(pairs: Mapping[str, str]) -> dict[str, str]:
    """A table in which each of the words on the right has the name on the left."""
    return {word: name for name, words in pairs.items() for word in words.split()}


LANGUAGES = (
    (
        frozenset(
            [
                "ich",
                "ein",
                "eine",
                "einen",
                "zimmer",
                "bier",
                "bitte",
                "hätte",
                "möchte",
                "haben",
                "wir",
                "und",
                "kostet",
                "nehme",
                "zwei",
                "drei",
                "wein",
                "brot",
            ]
        ),
        table(
            {
                "i": "ich",
                "we": "wir",
                "would": "hätte hätten",
                "like": "gern gerne",
                "would like": "möchte möchten",
                "want": "will wollen",
                "take": "nehme nehmen",
                "give": "gib geben",
                "me": "mir",
                "please": "bitte",
                "and": "und",
                "or": "oder",
                "the": "das der den dem die",
                "a": "ein eine einen",
                "no": "kein keine keinen nein",
                "not": "nicht nichts",
                "with": "mit",
                "without": "ohne",
                "for": "für",
                "2": "zwei",
                "3": "drei",
                "4": "vier",
                "5": "fünf",
                "ale": "bier biere",
                "wine": "wein rotwein weine",
                "bread": "brot brote",
                "stew": "eintopf suppe",
                "room": "zimmer bett",
                "attic": "dachboden dachkammer dachzimmer",
                "garden": "gartenzimmer",
                "gable": "giebelzimmer",
                "lantern": "laterne",
                "buy": "kaufen",
                "what": "was",
                "cost": "kostet kosten",
                "cheapest": "billigste billigstes",
                "thanks": "danke",
                "hello": "hallo guten",
                "glass": "glas schüssel teller krug",
                "": "noch",
            }
        ),
    ),
    (
        frozenset(["je", "voudrais", "une", "bière", "bières", "s'il", "bonjour", "du", "vin", "deux"]),
        table(
            {
                "i": "je",
                "would like": "voudrais aimerais",
                "want": "veux",
                "take": "prends",
                "please": "s'il svp",
                "and": "et",
                "or": "ou",
                "a": "un une",
                "some": "du des",
                "of": "de",
                "the": "le la les",
                "not": "pas",
                "without": "sans",
                "2": "deux",
                "3": "trois",
                "4": "quatre",
                "ale": "bière bières biere",
                "wine": "vin vins",
                "bread": "pain pains",
                "stew": "ragoût ragout",
                "room": "chambre",
                "attic": "grenier",
                "garden": "jardin",
                "lantern": "lanterne",
                "glass": "verre bol bouteille tasse",
                "for": "pour",
                "thanks": "merci",
                "hello": "bonjour bonsoir",
                "": "vous te plaît plait rouge blanc",
            }
        ),
    ),
    (
        frozenset(["quiero", "quisiera", "cerveza", "cervezas", "favor", "hola", "birra", "vorrei", "vino"]),
        table(
            {
                "i want": "quiero",
                "i would like": "quisiera vorrei",
                "please": "favor favore",
                "and": "y e",
                "a": "un una",
                "some": "del unas unos",
                "the": "el la il",
                "not": "non",
                "2": "dos due",
                "3": "tres tre",
                "ale": "cerveza cervezas birra birre",
                "wine": "vino vinos",
                "bread": "pan pane",
                "stew": "guiso estofado stufato",
                "room": "habitación habitacion camera",
                "thanks": "gracias grazie",
                "hello": "hola ciao",
                "": "por per rosso tinto",
            }
        ),
    ),
)
"""Marks of a language, and what its words mean here."""
