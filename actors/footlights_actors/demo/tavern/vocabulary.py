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

from footlights_actors.demo.tavern.languages import LANGUAGES, table

if TYPE_CHECKING:
    from collections.abc import Mapping

DISHES = ("ale", "bread", "stew", "wine")
ROOMS = ("attic", "gable", "garden", "chamber")


def plain(line: str) -> str:
    """The line in plain words, in the same order. What is named by a property gets its name: "a cheap drink" is ale."""
    text = normalize("NFC", line).casefold().replace("\u2019", "'").replace("\u2018", "'")
    text = _STRETCHED.sub(r"\1\1", text)
    for pattern, written_out in _CONTRACTIONS:
        text = pattern.sub(written_out, text)
    found: list[str] = _TOKEN.findall(text)
    for marks, meanings in LANGUAGES:
        if not marks.isdisjoint(found):
            found = [meanings.get(word, word) for word in found]
    text = " ".join(map(_one_name, found))
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    text = _DOZENS.sub(lambda many: str(int(many[1]) * 12), " ".join(text.split()))
    return _RANKED_THING.sub(lambda ranked: _by_property(ranked, text), text)


def _by_property(ranked: re.Match[str], text: str) -> str:
    """The name of "something cheap", if the line says whether it is to be drunk, eaten or slept in."""
    uses = {match.lastgroup for match in _USES.finditer(ranked["use"] or text)}
    names = _RANKED[ranked["rank"].removesuffix("est")]
    return f"{ranked['article'] or 'a '}{names[uses.pop() or '']}" if len(uses) == 1 else ranked[0]


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
    if word in _SPELT:
        return _SPELT[word]
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

_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_TOKEN = re.compile(r"(?<![\w-])-\d+|\d+[.]\d+|\d+|[^\W\d_]+(?:'[^\W\d_]+)?|[.!?;,:+&\"*]")


_NAMES = table(
    {
        "ale": "ale beer brew lager stout porter brewski bevvy",
        "bread": "bread loaf loaves",
        "stew": "stew supper hotpot pottage goulash",
        "wine": "wine vino claret plonk",
        "attic": "attic loft garret",
        "gable": "gable",
        "garden": "garden",
        "chamber": "chamber",
        "room": "room rom rm bed bunk cot lodging lodgings accommodation bedroom",
        "lantern": "lantern lamp",
        "rumour": "rumour rumor gossip news tale story tidings hearsay stories",
        "coin": "coin coins silver copper gold crown penny pence",
        "bowl": "bowl plate portion serving helping ladle",
        "mug": "mug tankard flagon stein jug pitcher",
        "goblet": "goblet chalice",
        "slice": "slice heel hunk crust chunk",
        "glass": "glass glas cup bottle drop bit sip",
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
_SPELT = table(
    {
        "are": "r",
        "can": "cna",
        "could": "cud coud",
        "give": "giv gve",
        "have": "hav hve haev",
        "like": "lik liek",
        "some": "sum",
        "take": "tak taek",
        "want": "wnat wantt",
        "what": "wat wot wut",
        "would": "wud woud wold",
        "garden": "grdn",
        "chamber": "chmbr",
        "lantern": "lntrn",
        "bread": "brd",
    }
)
"""Words as they are written in a hurry."""
_MISSPELT = (
    "ale",
    "beer",
    "bread",
    "stew",
    "wine",
    "attic",
    "gable",
    "garden",
    "chamber",
    "lantern",
    "rumour",
    "please",
    "cheapest",
)
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
        "wie",
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
        r"\bno (?=quiero|quisiera)": "not ",
        r"\blemme\b": "let me",
        r"\bi'?m+a\b": "i will",
        r"\(([^)\d]*)\)": r" * \1 * ",
        r"\bwanna\b": "want to",
        r"\bgonna\b": "going to",
        r"\b(?:cannot|cant|can't)\b": "can not",
        r"\b(?:wont|won't)\b": "will not",
        r"\bain't\b": "is not",
        r"n't\b": " not",
        r"\b(do|does|did|would|could|should|is|was|have|has)nt\b": r"\1 not",
        r"\b(?:i'd|id) (?=lik|lov|rather|prefer|want|have|take|fancy|pay|give)": "i would ",
        r"\bill (?=hav|tak|go for|go with|try|buy|rent|get|pay|give)": "i will ",
        r"'ll\b": " will",
        r"'d\b": " would",
        r"'m\b": " am",
        r"'re\b": " are",
        r"'ve\b": " have",
        r"\b(what|whatever|that|where|who|how|here|there|it|let|when)'?s\b": r"\1 is",
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
        r"\b(go|start|begin|stick|finish|celebrate|(?:set|hook|fix) (?:me|us) up|hit (?:me|us)|start (?:me"
        r"|us)(?: off)?) with\b": r"\1 for",
        r"\b(?:cold|frothy|foamy) 1s?\b": "ale",
        r"\b(?:glass|mug|goblet|bowl) of (?:(?:your|the|house|finest|good) )*(?:red"
        r"|white)(?: stuff)?\b(?! (?:wine|ale))": "wine",
        r"\b(?:(?:some|a (?:bowl|mug) of) )?(?:something|anything|whatever|what|stuff) (?:is |that is "
        r"|you have |you have got |warm |hot |cooking )*"
        r"(?:in|from) (?:the|your|that) (?:pot|cauldron|kettle)\b": "a stew",
        r"\b(?:something|anything) (?:nice and )?(?:hot|warm)\b(?! (?:to )?drink)(?: to eat| (?:in"
        r"|for) my (?:belly|stomach))?": "a stew",
        r"\b(?:hot|warm|cooked) (?:meal|food|dinner|dish)\b": "stew",
        r"\broom with (?:an? )?(?:view (?:of|over) the garden|garden view)\b": "garden",
        r"(?:^|(?<=[.,!?] ))me (want|need|would like)\b": r"i \1",
        r"\b((?:rather than|instead of) (?:(?:the|an?) )?(?:ale|bread|stew|wine|attic|gable|garden|chamber))(?: room)?"
        r" (?=i |we |give |bring )": r"\1 , ",
        r"\bcould (?:really )?do with\b": "could use",
        r"\b(?:do you )?think you could\b": "could you",
        r"\bi do not suppose (?:i|we) (?:could|can|might|may)\b": "could i",
        r"\b(?:until|till|before) (?:tomorrow|(?:the )?morning|dawn)\b": "",
        r"\bnothing (?:beats|like|better than)\b": "i love",
        r"\bit is (?:high |about )?time for\b": "time for",
        r"\b(?:what|all) (?:i|we) (?:really )?(?:want|need|ask for|would like|ask|crave)(?: \w+){0,2}? (?:is"
        r"|are)\b(?! \w+ (?:good|free))": "i want",
        r"\b(?:is there )?(?:any|a) chance (?:of|for)\b": "any chance of",
        r"\b(?:can|could|may|might) (?:an? (?:\w+ ){1,2})(?:get|have|buy|order|procure|acquire"
        r"|obtain)\b": "can i get",
        r"\b(?:can|could|will|would) (?:somebody|someone|anybody|anyone) (?=get|give|bring|pour|fetch"
        r"|serve)": "could you ",
        r"\bbe (?:so |very )?(?:kind|good)(?: enough| as)? (?:as )?to\b": "please",
        r"\b(?:(?:me|i) and my \w+|my \w+ and (?:i|me)) (?=want|need|would|will|are)": "we ",
        r"\bfor (\d+) (?:people|persons|men|guests|friends|travellers|heads)\b": r"for \1",
        r"\b(?:would you |do you )?mind (?:pour|bring|gett|serv|fetch|giv|hand|pass|sell|fill"
        r"|draw)ing\b": "could you give",
        r"\b(?:how about|why do not|what do you say|what say) you (?=give|bring|pour|fetch|get|serve|draw"
        r"|sell)": "could you ",
        r"\b(?:can|could|may|might) (i|we) (?:bother|trouble|ask) you for\b": r"could \1 have",
        r"\bit would be (?:nice|good|lovely|great|grand) to (?=have|get|drink|eat)": "i would like to ",
        r"(?<=\d) (?:is|are|will be) (?:enough|plenty|fine)\b": " please",
        r"\b(?:would|will|could|can|might|should) (?:not )?(?:surely |really |also |just |have to )?(?:hurt"
        r"|(?:go|be|come) amiss|help|suffice"
        r"|do(?: it| nicely| fine| me| the trick)?(?= (?:[.,!?;]|for|please|thanks|and)|$)|hit the spot"
        r"|go down (?:well|nicely|a treat)"
        r"|be (?:\w+ )?(?:nice|good|lovely|great|grand|fine|perfect|welcome|wonderful|appreciated|enough"
        r"|plenty|heaven|heavenly|ideal))\b": "please",
        r"\b\d+ (?:or|to|\+|and) \d+(?= \w)": "several",
        r"\bi (?:was wondering|wonder|wondered) if (?:i|we) (?:could|can|might|may)\b": "could i",
        r"\bhalf (?:a )?dozen\b": "6",
        r"\b(?:a|1) dozen\b|(?<!\d )\bdozen\b": "12",
        r"\bfill (?:up )?(?:my|this|the|our) \w+ (?:up )?with\b": "give me",
        r"\b(?:is there (?:any|a) chance|do you think|(?:is|would) it (?:be )?possible) (?:that )?"
        r"(?:(?:i|we) (?:could|can|might|may)|to)\b": "could i",
        r"\b(?:a|1) (?:couple|pair|brace)(?: of)?\b": "2",
        r"\b(?:a|1) trio of\b": "3",
        r"\ba (?=100|1000)": "",
        r"\b([2-9])0 ([1-9])\b": r"\1\2",
        r"\bpints? of (?:(?:your|the) )?(?=ale|wine|stew)": "bowl of ",
        r"\bpints?\b(?: of (?:your|the) (?:finest|house|usual|good stuff))?(?! of)": "ale",
        r"\bbread of bread\b": "bread",
        r"\b(an?|any|some|another|other|free|small|cheapest|finest|\d+) chamber\b": r"\1 room",
        r"\b(?:great|grand|big|posh|fancy|royal|luxury|(?<!most )luxurious) (?:chamber|room)\b": "chamber",
        r"\bthe (?!other|small|cheapest|finest)\w+ chamber\b": "the chamber",
        r"\b(?:mirel|tinker) room\b": "gable",
        r"\b(attic|gable|garden) rooms?\b": r"\1",
        r"\bunder the (?:roof|eaves)\b": "attic",
        r"\b(?:most (?:expensive|luxurious|comfortable|spacious|costly)|top|very finest)\b": "finest",
        r"\b(?:least expensive|most affordable|lowest priced)\b": "cheapest",
        r"\broom , (?:the )?(cheapest|finest)(?: (?:you have(?: got)?|1|thing))?(?= [.,!?;]|$| please)": r"\1 room",
        r"\b(?:inexpensive|affordable|budget)\b": "cheap",
        r"\b(?:somewhere|some place|a place) cheap(?: and \w+)? to (?:sleep|stay|rest"
        r"|spend the night)\b": "a cheapest room",
        r"\b(cheap|finest)(?:est)?(?: (?!you)\w+)? (?:room|(?:place|thing|spot) to (?:sleep|stay"
        r"|rest))\b": r"\1est room",
        r"\bfinestest\b": "finest",
        r"\bwhich (?:room|thing) is (?:the )?(cheapest|finest)\b": r"what is the \1 room",
        r"\b(?:whichever|whatever|the) room (?:that )?(?:is|costs) (?:the )?(cheapest|finest"
        r"|least)\b": r"the \1 room",
        r"\bleast room\b": "cheapest room",
        r"\broom (?:that|which) (?:costs?|is) (\d+)(?: coin)?\b": r"room for \1 coin",
        r"\b(\d+)(?: coin)? or (?:less|under|below|cheaper|fewer)\b": r"max \1",
        r"\b(?:no|not) more than (\d+)\b|\b(?:at most|up to|maximum|max|within) (\d+)\b": r"max \1\2",
        r"\b(?:under|below|less than|cheaper than) (\d+)\b": r"below \1",
        r"\b(?:would|could) not (?:mind|say no to|refuse|object to)\b": "would like",
        r"\bdo not forget\b": "and",
        r"\b(anything|everything|any \w+|every \w+|all) (?:but|except|other than|besides|apart from)\b": r"\1 , not",
        r"\b(?:and )?(?:nothing else|nothing more|that (?:is|will be) (?:all|it))\b": "",
        r"\bnothing but\b": "just",
        r"\b(?:no problem|no worries|no hurry|no rush|why not|no object|no matter)\b": "",
        r" if (?:the )?(?:it|that) (?:is|costs?|goes for) (max|below) (\d+)(?: coin)?(?=$| [.,!?;])": r" \1 \2",
        r" if (?:the )?(?:attic|gable|garden|chamber|it|that|room) is (?:still )?(?:free|available|vacant|not taken)"
        r"(?: tonight)?(?=$| [.,!?;])": "",
        r"\bif (?:so|yes|it is|that is so)(?= ,| i | we )": "",
        r"\bif (?:the )?(attic|gable|garden|chamber|lantern|it|that) (?:is|costs?|goes for) (max"
        r"|below) (\d+)(?: coin)?"
        r"(?: ,)?": r"\1 \2 \3 , ",
        r"\bif (?:the )?(attic|gable|garden|chamber|it) is (?:still )?(?:free|available|vacant)\b": r"\1 is free ,",
        r"\bif (?:you (?:please|would|will|can|may|do not mind|have (?:it|any|some|1))|i (?:may|might|can|could)"
        r"|possible|it pleases you|it is (?:no|not too much) (?:trouble|bother|to ask)|that is (?:ok|okay"
        r"|all right|fine))\b": "please",
    }
)
_RANKED_THING = re.compile(
    r"\b(?P<article>an? |the |your |some )?(?P<thing>something |anything |thing "
    r"|whatever is )?(?P<rank>cheap(?:est)?|finest)\b(?! room)"
    r"(?P<more>(?: (?:thing|stuff|something|you have(?: got)?|you got))*+)(?: (?:to )?(?P<use>drink|beverage"
    r"|booze|eat|food|meal|dish))?"
    r"(?: you have(?: got)?| you got)?(?(thing)|(?(use)|(?<! cheap)(?<! cheapest)(?<! finest)))"
    r"(?= (?:[.,!?;]|please|and|for|then|now)|$)"
)
_USES = re.compile(
    r"\b(?:(?P<drink>drink|beverage|booze|pour|parched|thirsty|thirst|throat|quench|swig|sip)"
    r"|(?P<eat>eat|food|meal|dish|hungry|starving|famished|hunger|belly|stomach|peckish|feed|bite)"
    r"|(?P<sleep>sleep|room|tired|weary|stay|night))\b"
)
_RANKED = {
    "cheap": {"drink": "ale", "eat": "bread", "sleep": "cheapest room"},
    "fin": {"drink": "wine", "eat": "stew", "sleep": "finest room"},
}
"""The cheap and the fine thing to drink, to eat and to sleep in."""
_DOZENS = re.compile(r"\b(\d{1,3}) dozen\b")
