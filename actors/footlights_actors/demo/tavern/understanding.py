"""Understanding of what a player types: a pure function from a line to wishes.

    understand("two stews and the attic").acts     # (Order("stew", 2), Rent("attic"))
    understand("how much is the wine?")            # no acts, topic PRICES, about ("wine",)

Only what is plainly wanted, and not taken back in the same line, becomes an act. In doubt there are no acts: a wish
that is vague, conditional or one of several choices has a topic of its own, and the innkeeper asks back. So has
everything that he does not go along with, such as an ale on credit.

Nothing here knows the world: the tools and the rules decide whether a room is free, what it costs, and who can pay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights_actors.demo.tavern.grammar import PATTERNS
from footlights_actors.demo.tavern.reading import read
from footlights_actors.demo.tavern.topics import COMPLAINT, TROUBLE, Topic, topic_of
from footlights_actors.demo.tavern.vocabulary import plain
from footlights_actors.demo.tavern.wishes import PICKS, HearRumour, Rent, has_terms, noun_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights_actors.demo.tavern.reading import Reading
    from footlights_actors.demo.tavern.wishes import Act

MAX_CHARS = 400
"""A longer line is a speech, and orders nothing."""


@frozen
class Heard:
    """The meaning of a line."""

    topic: Topic
    """What is to be answered; `Topic.ACTS` if there is nothing but the acts."""
    acts: tuple[Act, ...] = ()
    """What the player wants now, all of it or nothing."""
    about: tuple[str, ...] = ()
    """The things of the house that it is about: dishes, rooms, `lantern`."""
    number: int | None = None
    """The number of coins that it names."""
    counts: tuple[int, ...] = ()
    """How many of each thing in `about` a question names."""


def understand(line: str) -> Heard:
    """The meaning of a line. The same line always has the same meaning."""
    if len(line) > MAX_CHARS:
        return Heard(Topic.NONSENSE)
    if PATTERNS["code"].search(line):
        return Heard(Topic.INJECTION)
    text = _spoken(plain(line))
    reading = read(text)
    return _trouble(text, reading) or _order(text, reading) or _talk(text, reading)


def _spoken(text: str) -> str:
    """Without what is quoted or acted out, unless that is all there is."""
    rest = PATTERNS["quoted"].sub(" . ", text)
    return re.sub(r'["*]', " ", rest if re.search(r"\w", rest) else text).strip()


def _trouble(text: str, reading: Reading) -> Heard | None:
    topic = next((topic for topic, pattern in TROUBLE if pattern.search(text)), None)
    return None if topic is None else Heard(topic, about=_things(reading))


def _order(text: str, reading: Reading) -> Heard | None:
    """The meaning of a line that wants something, or wanted it for a moment."""
    if reading.said_no and reading.wanted:
        reading.take_back()
    acts = _at_the_price_named(text, reading.wanted)
    purchases = [act for act in acts if not isinstance(act, HearRumour)]
    nouns = [noun_of(act) for act in acts]
    about = _distinct(nouns)
    if reading.doubt is not None:
        return Heard(reading.doubt, about=_distinct([*reading.in_doubt, *nouns]))
    if reading.is_conditional and (acts or reading.in_doubt):
        return Heard(Topic.UNSURE, about=_distinct([*nouns, *reading.in_doubt]))
    if reading.wants_missing and not purchases:
        return Heard(Topic.MISSING)
    if any(noun in reading.refused for noun in nouns) or len(set(nouns)) < len(nouns):
        return Heard(Topic.UNSURE, about=about)
    if reading.wants_room and not any(isinstance(act, Rent) for act in acts):
        return Heard(Topic.UNNAMED_ROOM)
    if len(purchases) > 1 and any(map(has_terms, acts)):
        return Heard(Topic.HAGGLE, about=about)
    if reading.wants_missing:
        return Heard(Topic.PARTLY, acts, about)
    if acts:
        asked = topic_of(text, is_question=True) if reading.is_question else None
        return Heard(asked if asked is not None and asked in _ANSWERED_TOO else Topic.ACTS, acts, about)
    if reading.is_taken_back:
        return Heard(Topic.NEVER_MIND)
    return Heard(Topic.HOW_MANY) if PATTERNS["round"].search(text) else None


_ANSWERED_TOO = frozenset({Topic.SELF, Topic.PURSE, Topic.PRICES, Topic.COMPANY, Topic.HOW_ARE_YOU})
"""Questions that are answered besides an order."""


def _at_the_price_named(text: str, acts: Iterable[Act]) -> tuple[Act, ...]:
    """The acts, with the coins that are named anywhere in the line as the offer: it may be a claim about the price."""
    wanted, named = tuple(acts), PATTERNS["coins_named"].search(text)
    if named is None or any(map(has_terms, wanted)):
        return wanted
    return tuple(act if isinstance(act, HearRumour) else evolve(act, offer=int(named[1])) for act in wanted)


def _talk(text: str, reading: Reading) -> Heard:
    """The meaning of a line that orders nothing."""
    topic = topic_of(text, is_question=reading.is_question)
    if topic is Topic.RUMOUR and PATTERNS["not"].search(text):
        return Heard(Topic.NEVER_MIND)
    if topic is Topic.RUMOUR and reading.is_question:
        return Heard(Topic.ACTS, (HearRumour(),))
    things, number = _things(reading), re.search(r"\b(\d{1,6}) coin", text)
    if things:
        topic = _about_things(topic, text, reading)
    elif topic is Topic.PRICES and reading.ranked is not None:
        topic = Topic.ROOMS
    elif topic is Topic.PRAISE and reading.wants_other:
        topic = Topic.UNSURE
    elif (topic in (None, Topic.OFFER) and reading.is_question and PATTERNS["missing"].search(text)) or (
        reading.wants_other and topic in (None, Topic.HELLO, Topic.SMALL_TALK, Topic.THANKS)
    ):
        topic = Topic.MISSING
    coins = int(number[1]) if number else None
    return Heard(
        topic or Topic.NONSENSE, about=things, number=coins, counts=tuple(_number_of(each, text) for each in things)
    )


def _number_of(thing: str, text: str) -> int:
    """How many of a thing a question names."""
    number = re.search(rf"\b(\d{{1,3}}) (?:\w+ of )?{thing}\b", text)
    return int(number[1]) if number else 1


_WHATEVER_IT_IS_ABOUT = frozenset(
    {
        Topic.HAGGLE,
        Topic.INSULT,
        Topic.PRAISE,
        Topic.AFFORD,
        Topic.PURSE,
        Topic.THANKS,
        Topic.LOVE,
        Topic.SORRY,
        Topic.NO,
    }
)


def _about_things(topic: Topic | None, text: str, reading: Reading) -> Topic:
    """The topic of a line that is about things of the house."""
    if "sounds" in text:
        return Topic.UNSURE
    if not reading.named and topic in (Topic.THANKS, Topic.SORRY, Topic.NO):
        return Topic.REFUSED
    if topic in _WHATEVER_IT_IS_ABOUT and topic is not None:
        return topic
    if not reading.named:
        return Topic.REFUSED
    if not reading.is_question and PATTERNS["maybe"].search(text):
        return Topic.UNSURE
    if reading.is_question or PATTERNS["inform"].search(text):
        return Topic.PRICES if topic is Topic.PRICES and "why" not in text else Topic.THING
    return Topic.COMPLAINT if COMPLAINT.search(text) else Topic.OPINION


def _things(reading: Reading) -> tuple[str, ...]:
    return _distinct([*map(noun_of, reading.wanted), *reading.in_doubt, *reading.named, *reading.refused])


def _distinct(nouns: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(noun for noun in nouns if noun not in ("room", "rumour", *PICKS)))
