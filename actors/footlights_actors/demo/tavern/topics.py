"""Topics of the tavern: what a line that orders nothing is about, and what stops an order.

Both are tables of patterns on plain words, in `topics.toml`; the first that matches counts.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from footlights_actors.demo.tavern.tables import any_of, tables

if TYPE_CHECKING:
    from collections.abc import Mapping


class Topic(StrEnum):
    """What the innkeeper answers to."""

    ACTS = "acts"
    """Nothing but the acts."""

    # Wishes that are not acts: he asks back.
    UNSURE = "unsure"
    UNNAMED_ROOM = "unnamed_room"
    HOW_MANY = "how_many"
    BAD_NUMBER = "bad_number"
    NIGHTS = "nights"
    AGAIN = "again"
    MISSING = "missing"
    PARTLY = "partly"
    NEVER_MIND = "never_mind"
    REFUSED = "refused"

    # What he does not go along with.
    INJECTION = "injection"
    EVICT = "evict"
    ROBBERY = "robbery"
    THREAT = "threat"
    FREE = "free"
    HAGGLE = "haggle"
    CLAIM = "claim"
    UNDO = "undo"
    TRADE = "trade"

    # Questions and talk.
    THING = "thing"
    PRICES = "prices"
    AFFORD = "afford"
    PURSE = "purse"
    ROOMS = "rooms"
    MENU = "menu"
    OFFER = "offer"
    RUMOUR = "rumour"
    COMPANY = "company"
    SELF = "self"
    HOUSE = "house"
    TILL = "till"
    CAT = "cat"
    WEATHER = "weather"
    PRIVY = "privy"
    OPINION = "opinion"
    COMPLAINT = "complaint"
    INSULT = "insult"
    PRAISE = "praise"
    LOVE = "love"
    SETTLED = "settled"
    YES = "yes"
    NO = "no"
    THANKS = "thanks"
    SORRY = "sorry"
    GOODBYE = "goodbye"
    HELLO = "hello"
    HOW_ARE_YOU = "how_are_you"
    HOUR = "hour"
    SMALL_TALK = "small_talk"
    FOREIGN = "foreign"
    NONSENSE = "nonsense"


def _compiled(phrases: Mapping[str, str]) -> tuple[tuple[Topic, re.Pattern[str]], ...]:
    return tuple((Topic(name), re.compile(any_of(each))) for name, each in phrases.items())


_TABLES = tables("topics")
TROUBLE, _TALK = _compiled(_TABLES["trouble"]), _compiled(_TABLES["talk"])
COMPLAINT = re.compile(any_of(_TABLES["unkind"]["complaint"]))
_EDGES = ' .,!?;:"*'


def topic_of(text: str, *, is_question: bool) -> Topic | None:
    """The topic of a line in plain words. A question praises nothing."""
    core = " ".join(word for word in text.split() if word not in _EDGES)
    found = [topic for topic, pattern in _TALK if pattern.search(core)]
    if not is_question and Topic.INSULT in found:
        return Topic.INSULT
    return next((topic for topic in found if not (is_question and topic is Topic.PRAISE)), None)
