"""Vocabulary of the tavern: turns a player's line into plain words that patterns can match.

    plain("Gimme two bowls o' stw, plz!")   # "give me 2 bowl of stew , please !"

Contractions are written out, numbers become digits, and what the house has gets one name each: `ale`, `bread`, `stew`,
`wine`, `attic`, `gable`, `garden`, `chamber`, `room`, `lantern`, `rumour`, also if it is misspelt by one letter. Words
and punctuation are separated by single spaces.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

DISHES = ("ale", "bread", "stew", "wine")
ROOMS = ("attic", "gable", "garden", "chamber")


def plain(line: str) -> str:
    """The line in plain words. It keeps the order of the words, and never adds something to buy."""
    text = normalize("NFC", line).casefold().replace("\u2019", "'").replace("\u2018", "'")
    for pattern, written_out in _CONTRACTIONS:
        text = pattern.sub(written_out, text)
    found: list[str] = _TOKEN.findall(text)
    for marks, table in _LANGUAGES:
        if not marks.isdisjoint(found):
            found = [table.get(word, word) for word in found]
    text = " ".join(map(_one_name, found))
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    return _DOZENS.sub(lambda many: str(int(many[1]) * 12), " ".join(text.split()))


def any_of(phrases: str) -> re.Pattern[str]:
    """A pattern for any of these phrases as whole words. They are separated by `|`, and may be on several lines."""
    return re.compile(rf"\b(?:{one_line(phrases)})\b")


def one_line(pattern: str) -> str:
    """A part of a pattern that is written on several lines."""
    return re.sub(r"\n *", "", pattern)


def _one_name(word: str) -> str:
    """The one name of a word of the house, or the word itself."""
    word = "".join(letter for letter in normalize("NFD", word) if not combining(letter))
    forms = (word, word.removesuffix("'s"), word.removesuffix("s") if len(word) > _SHORT - 1 else word)
    for form in forms:
        if form in _NAMES:
            return _NAMES[form]
    if not word.isalpha() or word in _NO_TYPOS or not 3 <= len(word) <= 9:
        return word.removesuffix("'s")
    return next(
        (_NAMES[name] for name in _MISSPELT if _is_misspelt(word, name) or _is_misspelt(word, f"{name}s")), word
    )


def _is_misspelt(word: str, name: str) -> bool:
    """Whether it is the name with one letter missing, doubled, swapped, or, in a long name, wrong or added."""
    is_long = len(name.removesuffix("s")) > _SHORT
    if word[0] != name[0] or abs(len(word) - len(name)) > 1:
        return False
    shorter = min(len(word), len(name))
    at = next((at for at in range(shorter) if word[at] != name[at]), shorter)
    if len(word) < len(name):
        return word[at:] == name[at + 1 :]
    if len(word) > len(name):
        is_doubled = word[at : at + 1] == word[at - 1 : at]
        return word[at + 1 :] == name[at:] and (is_doubled or is_long)
    is_swapped = word[at : at + 2] == name[at : at + 2][::-1] and word[at + 2 :] == name[at + 2 :]
    return is_swapped or (is_long and word[at + 1 :] == name[at + 1 :])


_SHORT = 4
"""Names of so few letters have too many neighbours: `wine` is not meant by wing, wind or wife."""

_TOKEN = re.compile(r"(?<![\w-])-\d+|\d+[.]\d+|\d+|[^\W\d_]+(?:'[^\W\d_]+)?|[.!?;,:+&\"*]")


def _table(pairs: Mapping[str, str]) -> dict[str, str]:
    """A table in which each of the words on the right has the name on the left."""
    return {word: name for name, words in pairs.items() for word in words.split()}


_NAMES = _table(
    {
        "ale": "ale beer brew lager",
        "bread": "bread loaf loaves",
        "stew": "stew supper",
        "wine": "wine",
        "attic": "attic loft garret",
        "gable": "gable",
        "garden": "garden",
        "chamber": "chamber",
        "room": "room bed lodging lodgings accommodation bedroom",
        "lantern": "lantern lamp",
        "rumour": "rumour rumor gossip news tale story tidings hearsay stories",
        "coin": "coin coins silver copper gold crown penny pence",
        "bowl": "bowl mug tankard glass glas cup jug bottle slice plate portion serving helping heel flagon",
        "0": "zero nought",
        "1": "one",
        "2": "two tow",
        "3": "three",
        "4": "four",
        "5": "five",
        "6": "six",
        "7": "seven",
        "8": "eight",
        "9": "nine",
        "10": "ten",
        "11": "eleven",
        "12": "twelve",
        "13": "thirteen",
        "14": "fourteen",
        "15": "fifteen",
        "16": "sixteen",
        "17": "seventeen",
        "18": "eighteen",
        "19": "nineteen",
        "20": "twenty",
        "30": "thirty",
        "40": "forty",
        "50": "fifty",
        "60": "sixty",
        "70": "seventy",
        "80": "eighty",
        "90": "ninety",
        "100": "hundred",
        "1000": "thousand",
        "1000000": "million billion",
        "the": "the teh",
        "please": "please plz pls pleas pleez",
        "you": "you u ya ye thou",
        "your": "your ur yer thy",
        "cheapest": "cheapest",
        "finest": "finest best dearest priciest grandest fanciest nicest biggest largest poshest costliest",
        "no": "no nope nah nay n",
        "yes": "yes yeah yep yup aye yea y",
    }
)
_MISSPELT = ("ale", "beer", "bread", "stew", "wine", "attic", "gable", "garden", "chamber", "lantern", "rumour")
_NO_TYPOS = frozenset(
    [
        "all",
        "are",
        "ate",
        "bee",
        "bees",
        "been",
        "bear",
        "beers",
        "beard",
        "bead",
        "beads",
        "brad",
        "break",
        "breaks",
        "broad",
        "breed",
        "breeds",
        "sew",
        "sews",
        "win",
        "wins",
        "wien",
        "antic",
        "antics",
        "gale",
        "gales",
        "gamble",
        "gambles",
        "gardener",
        "clamber",
    ]
)
"""Words that are one letter away from something of the house, and mean something else."""


def _patterns(pairs: Mapping[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), written) for pattern, written in pairs.items())


_CONTRACTIONS = _patterns(
    {
        r"\.\.+|…|--+|[\u2013\u2014]| - ": " . ",
        r"(?<=[^\W\d_])-(?=[^\W\d_])": " ",
        r"(?<=\d)-(?=[^\W\d_])": " ",
        r"!+1+\b": "!",
        r"\b(?:u+h+|u+m+|e+r+m*|h+m+)\b": "",
        r"(?:^|\s)\d+\)\s": " , ",
        r"\s*[:*]\s*(?=\d)|\btimes\b": " x ",
        r"\bo'": "of ",
        r"\b(?:gimme|giv me)\b": "give me",
        r"\blemme\b": "let me",
        r"\bwanna\b": "want to",
        r"\bgonna\b": "going to",
        r"\b(?:cannot|cant|can't)\b": "can not",
        r"\b(?:wont|won't)\b": "will not",
        r"\bain't\b": "is not",
        r"n't\b": " not",
        r"\b(do|does|did|would|could|should|is|was|have|has)nt\b": r"\1 not",
        r"\b(?:i'd|id) (?=like|love|rather|prefer|want|have|take|fancy|pay|give)": "i would ",
        r"\bill (?=have|take|buy|rent|get|pay|give)": "i will ",
        r"'ll\b": " will",
        r"'d\b": " would",
        r"'m\b": " am",
        r"'re\b": " are",
        r"'ve\b": " have",
        r"\b(what|that|where|who|how|here|there|it|let|when)'?s\b": r"\1 is",
        r"\bim\b": "i am",
        r"\b(?:ta|cheers|thx|thanx|ty|tysm)\b": "thanks",
        r"(?<=\w) n (?=\w)|\bn'": " and ",
        r"\bw/": " with ",
        r"\bno(?: |-)?one\b": "nobody",
        r"\b(the|that|this|which|another) ones?\b(?! (?:more|ale|beer|stew|wine|bread))": r"\1 thing",
    }
)
_PHRASES = _patterns(
    {
        r"\blet is\b": "let us",
        r"\bas well as\b": "and",
        r"\bgo with\b": "go for",
        r"\b\d+ (?:or|to|\+|and) \d+(?= \w)": "several",
        r"\bi (?:was wondering|wonder|wondered) if (?:i|we) (?:could|can|might|may)\b": "could i",
        r"\bhalf (?:a )?dozen\b": "6",
        r"\b(?:a|1) dozen\b|(?<!\d )\bdozen\b": "12",
        r"\bfill (?:up )?(?:my|this|the|our) \w+ (?:up )?with\b": "give me",
        r"\b(?:is there any chance|do you think|(?:is|would) it (?:be )?possible) (?:that )?"
        r"(?:(?:i|we) (?:could|can|might|may)|to)\b": "could i",
        r"\b(?:a|1) (?:couple|pair)(?: of)?\b": "2",
        r"\ba (?=100|1000)": "",
        r"\b([2-9])0 ([1-9])\b": r"\1\2",
        r"\bpints? of (?:(?:your|the) )?(?=ale|wine|stew)": "bowl of ",
        r"\bpints?\b(?: of (?:your|the) (?:finest|house|usual|good stuff))?(?! of)": "ale",
        r"\bbread of bread\b": "bread",
        r"\b(an?|any|some|another|other|free|small|cheapest|finest|\d+) chamber\b": r"\1 room",
        r"\b(?:great|grand|big) (?:chamber|room)\b": "chamber",
        r"\bthe (?!other|small|cheapest|finest)\w+ chamber\b": "the chamber",
        r"\b(?:mirel|tinker) room\b": "gable",
        r"\b(attic|gable|garden) rooms?\b": r"\1",
        r"\bunder the (?:roof|eaves)\b": "attic",
        r"\b(?:most expensive|top|very finest)\b": "finest",
        r"\b(?:least expensive|most affordable|lowest priced)\b": "cheapest",
        r"\b(cheapest|finest)(?: \w+)? (?:room|place to sleep)\b": r"\1 room",
        r"\b(?:no|not) more than (\d+)\b|\b(?:at most|up to|maximum|max|within) (\d+)\b": r"max \1\2",
        r"\b(?:under|below|less than|cheaper than) (\d+)\b": r"below \1",
        r"\b(?:would|could) not (?:mind|say no to|refuse|object to)\b": "would like",
        r"\bdo not forget\b": "and",
        r"\b(?:and )?(?:nothing else|nothing more|that (?:is|will be) (?:all|it))\b": "",
        r"\bnothing but\b": "just",
        r"\b(?:no problem|no worries|no hurry|no rush|why not|no object|no matter)\b": "",
        r"\bif (?:the )?(attic|gable|garden|chamber|it) is (?:still )?(?:free|available|vacant)\b": r"\1 is free ,",
        r"\bif (?:you (?:please|would|will|can|may|do not mind|have (?:it|any|some|1))|i (?:may|might|can|could)"
        r"|possible|it pleases you|that is (?:ok|okay|all right|fine))\b": "please",
    }
)
_DOZENS = re.compile(r"\b(\d{1,3}) dozen\b")

_LANGUAGES = (
    (
        frozenset(
            ["ich", "ein", "zimmer", "bier", "bitte", "hätte", "möchte", "haben", "wir", "und", "kostet", "nehme"]
        ),
        _table(
            {
                "i": "ich",
                "we": "wir",
                "would": "hätte hätten",
                "like": "gern gerne",
                "would like": "möchte möchten",
                "take": "nehme nehmen",
                "please": "bitte",
                "and": "und",
                "or": "oder",
                "the": "das der den dem",
                "a": "ein eine einen",
                "no": "kein keine keinen nein",
                "not": "nicht nichts",
                "with": "mit",
                "without": "ohne",
                "2": "zwei",
                "3": "drei",
                "4": "vier",
                "ale": "bier biere",
                "wine": "wein",
                "bread": "brot brote",
                "stew": "eintopf",
                "room": "zimmer bett",
                "attic": "dachboden dachkammer dachzimmer",
                "garden": "gartenzimmer",
                "gable": "giebelzimmer",
                "lantern": "laterne",
                "buy": "kaufen",
                "what": "was",
                "cost": "kostet kosten",
                "thanks": "danke",
            }
        ),
    ),
    (
        frozenset(["je", "voudrais", "une", "bière", "s'il", "bonjour"]),
        _table(
            {
                "i": "je",
                "would like": "voudrais",
                "take": "prends",
                "please": "s'il",
                "and": "et",
                "a": "un une",
                "the": "le la",
                "not": "pas",
                "2": "deux",
                "3": "trois",
                "ale": "bière bières biere",
                "wine": "vin",
                "bread": "pain",
                "stew": "ragoût ragout",
                "room": "chambre",
                "hello": "bonjour",
                "": "vous plaît plait rouge",
            }
        ),
    ),
    (
        frozenset(["quiero", "cerveza", "cervezas", "favor", "hola"]),
        _table(
            {
                "i want": "quiero",
                "please": "favor",
                "and": "y",
                "a": "un una",
                "the": "el la",
                "2": "dos",
                "3": "tres",
                "ale": "cerveza cervezas",
                "wine": "vino",
                "bread": "pan",
                "stew": "guiso estofado",
                "room": "habitación habitacion",
                "hello": "hola",
                "": "por",
            }
        ),
    ),
)
"""Marks of a language, and what its words mean here. It is enough for ordering politely."""
