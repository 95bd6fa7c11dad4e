"""Reading of a line, clause by clause: what is wanted, refused, asked and told.

A clause *wants* something ("I'll have an ale", "two ales", "could I get the attic?"), *refuses* it ("no bread"), *asks*
("is the attic free?") or *tells* ("the last inn had sour ale"). A clause that is no more than a name is said in the
same way as the one before: "do you have ale or wine?" orders neither. What is wanted may be corrected ("make that
three") or taken back ("forget it") by a later clause. What is wanted in a way that leaves doubt is put down as such.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from attrs import Factory, define, evolve, frozen

from footlights_actors.demo.tavern.grammar import PATTERNS, VESSELS
from footlights_actors.demo.tavern.topics import Topic
from footlights_actors.demo.tavern.vocabulary import DISHES, ROOMS
from footlights_actors.demo.tavern.wishes import BuyLantern, HearRumour, Order, Rent, noun_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_actors.demo.tavern.wishes import Act

MAX_COUNT = 999


@define
class Reading:
    """What the clauses of a line said so far."""

    wanted: list[Act] = Factory(list["Act"])
    refused: list[str] = Factory(list[str])
    named: list[str] = Factory(list[str])
    """Things that are asked about or told of."""
    ranked: Rent | None = None
    """The room that is asked about by its rank."""
    is_question: bool = False
    wants_room: bool = False
    """Whether a room is wanted, without saying which."""
    wants_missing: bool = False
    """Whether something is wanted that the house has not got."""
    has_fallback: bool = False
    """Whether what is missing has a substitute."""
    asks_for_missing: bool = False
    wants_other: bool = False
    """Whether something is wanted that is not known at all."""
    is_named_only: bool = False
    """Whether the last wish was no more than a name."""
    is_conditional: bool = False
    is_taken_back: bool = False
    is_correcting: bool = False
    said_no: bool = False
    """Whether the correction was a no, which takes everything back if nothing follows."""
    doubt: Topic | None = None
    """Why there is doubt."""
    in_doubt: list[str] = Factory(list[str])

    def put_in_doubt(self, topic: Topic, *about: str) -> None:
        self.doubt = self.doubt or topic
        self.in_doubt += about

    def take_back(self) -> None:
        self.wanted.clear()
        self.wants_room = self.is_correcting = self.said_no = False
        self.is_taken_back, self.doubt = True, None

    def refuse(self, noun: str) -> None:
        kept = [act for act in self.wanted if noun_of(act) != noun]
        self.is_taken_back |= len(kept) < len(self.wanted)
        self.wanted = kept
        self.refused.append(noun)

    def want(self, act: Act, *, adds: bool = True) -> None:
        """Want one more thing, or, in a correction that does not add, another in place of one."""
        same = [other for other in self.wanted if noun_of(other) == noun_of(act)]
        if self.is_correcting and self.wanted and not adds:
            if not same and len(self.wanted) > 1:
                self.put_in_doubt(Topic.UNSURE, noun_of(act))
            self.wanted = [other for other in self.wanted if other not in (same or self.wanted)]
        elif isinstance(act, Order) and same:
            act = evolve(act, count=act.count + sum(other.count for other in same if isinstance(other, Order)))
            self.wanted = [other for other in self.wanted if other not in same]
        elif same == [act]:
            self.wanted.remove(act)  # said twice
        self.is_correcting = self.said_no = False
        self.wanted.append(act)

    def last_named(self) -> str | None:
        """What `it` means, if that is clear."""
        nouns = dict.fromkeys([*self.named, *map(noun_of, self.wanted)])
        definite = [noun for noun in nouns if noun != "room"] or list(nouns)
        return definite[0] if len(definite) == 1 else None


class _Mood(Enum):
    NONE = auto()
    WANTS = auto()
    REFUSES = auto()
    ASKS = auto()
    TELLS = auto()


@frozen
class _Clause:
    text: str
    link: str
    """The word that links it to the clause before; empty for the first."""
    sentence: str

    @property
    def body(self) -> str:
        """The clause without greetings and other words that change nothing."""
        text = self.text
        while (lead := PATTERNS["lead"].match(text)) is not None:
            if lead[0] == "no " and not PATTERNS["after_no"].match(text[lead.end() :]):
                break  # "no bread" is no answer
            text = text[lead.end() :]
        return text

    @property
    def is_asked(self) -> bool:
        return re.search(r"\?[.!? ]*$", self.sentence) is not None


def read(text: str) -> Reading:
    """Read a line of plain words."""
    reading, mood = Reading(), _Mood.NONE
    before = ""
    for sentence in PATTERNS["sentence"].findall(
        PATTERNS["so"].sub(" , so ", PATTERNS["unmarked_link"].sub(r"\1 , ", text))
    ):
        mood = mood if mood is _Mood.ASKS and before.rstrip().endswith(":") else _Mood.NONE
        before = sentence
        for clause in _clauses(sentence):
            mood = _read_clause(clause, mood, reading)
            reading.is_question |= mood is _Mood.ASKS
    return reading


def _clauses(sentence: str) -> Iterator[_Clause]:
    first, *others = (part.strip(" .!?;:") for part in PATTERNS["link"].split(sentence))
    link = ""
    for part, next_link in zip([first, *others[1::2]], [*others[::2], ""], strict=True):
        if part:
            yield _Clause(part, link, sentence)
        link = next_link if part or next_link != "," else link


def _read_clause(clause: _Clause, before: _Mood, reading: Reading) -> _Mood:
    """Read one clause, after one of the mood `before`, and return its own mood."""
    is_more = (
        PATTERNS["some_more"].fullmatch(clause.text)
        and before is not _Mood.ASKS
        and reading.last_named() is None
        and _in_vessel(clause.text) is None
    )
    if is_more or PATTERNS["again"].search(clause.text):
        reading.put_in_doubt(Topic.AGAIN)
        return _Mood.WANTS
    taken_back = PATTERNS["take_back"].search(clause.text)
    if taken_back is not None:
        reading.take_back()
        clause = evolve(clause, text=clause.text[taken_back.end() :].strip())
        if not PATTERNS["want"].match(clause.body):
            _read_refusal(clause.text, reading)  # "never mind the bread"
            return _Mood.REFUSES if _nouns(clause.text) else _Mood.NONE
    if PATTERNS["correct"].search(clause.text) and not clause.body.startswith("no "):
        reading.is_correcting = True
        is_bare_no = not clause.body and re.search(r"\bno\b", clause.text) is not None
        reading.said_no |= is_bare_no or clause.text.startswith(("no", "wait", "on second"))
    if re.fullmatch(r"(?:oh )?(?:yes|sure) please", clause.text) and reading.is_question and reading.last_named():
        _want_it("it", clause, adds=False, reading=reading)
        return _Mood.WANTS
    if not clause.body:
        return before
    if clause.body == "a half":
        reading.put_in_doubt(Topic.BAD_NUMBER)
    if clause.link == "but" and before is _Mood.WANTS and PATTERNS["excuse"].match(clause.text):
        reading.put_in_doubt(Topic.UNSURE, *map(noun_of, reading.wanted))
    otherwise = PATTERNS["otherwise"].match(clause.body)
    if otherwise is not None and PATTERNS["lacks"].search(otherwise[0]):
        return _read_fallback(evolve(clause, text=clause.body[otherwise.end() :].strip(" ,")), otherwise[0], reading)
    if PATTERNS["condition"].match(clause.body):
        reading.is_conditional = True
        reading.in_doubt += _nouns(clause.body)
        return _Mood.TELLS
    mood = _mood(clause, before, reading)
    if mood is _Mood.WANTS:
        _read_wish(clause, reading)
    elif mood is _Mood.REFUSES:
        _read_refusal(clause.body, reading)
    else:
        nouns = _nouns(clause.body)
        if mood is _Mood.ASKS and reading.is_named_only and not nouns and PATTERNS["ask_price"].match(clause.body):
            reading.named += map(noun_of, reading.wanted)  # "the attic, how much?"
            reading.wanted.clear()
        if mood is _Mood.TELLS and before is _Mood.WANTS and (nouns or PATTERNS["unspecified"].search(clause.body)):
            reading.put_in_doubt(Topic.UNSURE, *map(noun_of, reading.wanted), *nouns)  # half of an order, perhaps
        reading.named += nouns
        reading.asks_for_missing |= mood is _Mood.ASKS and PATTERNS["missing"].search(clause.body) is not None
        reading.ranked = _ranked(clause.body) or reading.ranked
        if mood is _Mood.ASKS and PATTERNS["rumour"].search(clause.body) and HearRumour() not in reading.wanted:
            reading.wanted.append(HearRumour())
    return mood


def _read_fallback(clause: _Clause, condition: str, reading: Reading) -> _Mood:
    """Read what is wanted in place of something that the house may not have: "mead, or if you have none, ale"."""
    if (
        reading.wants_missing
        or reading.wants_other
        or reading.asks_for_missing
        or PATTERNS["missing"].search(condition)
    ):
        reading.wants_missing, reading.wants_other, reading.has_fallback = True, False, True
        return _read_clause(evolve(clause, link=""), _Mood.NONE, reading) if clause.text else _Mood.WANTS
    reading.is_conditional = True
    reading.in_doubt += _nouns(condition + clause.text)
    return _Mood.TELLS


def _nouns(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(rf"\b{PATTERNS['item'].pattern}\b", text)))


def _mood(clause: _Clause, before: _Mood, reading: Reading) -> _Mood:
    body = clause.body
    wants = PATTERNS["want"].match(body) is not None
    is_name = not wants and _is_name(body, reading)
    if is_name and PATTERNS["praised"].match(body):
        return _Mood.TELLS
    if PATTERNS["suggest"].match(body):
        reading.put_in_doubt(Topic.UNSURE, *_nouns(body))
        return _Mood.ASKS
    if PATTERNS["ask"].match(body) and not wants:
        return _Mood.ASKS
    if wants and clause.is_asked and PATTERNS["offers"].match(body) and "please" not in clause.sentence:
        return _Mood.ASKS
    if PATTERNS["not"].search(body):
        return _Mood.REFUSES
    if wants:
        return _Mood.WANTS
    if is_name:
        return _mood_of_name(clause, before, reading)
    return _Mood.ASKS if clause.is_asked else _Mood.TELLS


def _is_name(body: str, reading: Reading) -> bool:
    """Whether a clause is no more than the name of something, with its number or article."""
    return not PATTERNS["tells_of"].search(body) and bool(
        PATTERNS["thing"].match(body)
        or PATTERNS["odd_thing"].match(body)
        or PATTERNS["everything"].match(body)
        or PATTERNS["room_by_place"].match(body)
        or PATTERNS["a_rumour"].match(body)
        or PATTERNS["missing_alone"].match(body)
        or (PATTERNS["unknown"].match(body) and reading.wanted)
        or (PATTERNS["some_more"].match(body) and (reading.last_named() in DISHES or _in_vessel(body)))
    )


def _mood_of_name(clause: _Clause, before: _Mood, reading: Reading) -> _Mood:
    is_polite = "please" in clause.body
    if PATTERNS["lantern_alone"].match(clause.body) and not PATTERNS["link"].search(clause.sentence) and not is_polite:
        return _Mood.ASKS  # it is hardly ordered by its name alone
    if clause.link == "with" and not reading.wanted:
        return _Mood.TELLS  # "give me a hand with the lantern"
    if before is _Mood.REFUSES:
        if (
            is_polite
            or clause.link == "but"
            or clause.text.startswith("so ")
            or PATTERNS["rather"].search(clause.sentence)
        ):
            return _Mood.WANTS
        if reading.wanted and clause.link not in ("or", "nor"):
            reading.put_in_doubt(Topic.UNSURE, *_nouns(clause.body))  # "stew without bread and an ale"
        return before
    is_joined = clause.link in ("and", "or", "nor", "with", "+", "&", "plus")
    if before is _Mood.ASKS or (before is _Mood.TELLS and (is_joined or reading.named)):
        return _Mood.WANTS if is_polite else before
    if clause.is_asked and before is not _Mood.WANTS and "please" not in clause.sentence:
        return _Mood.ASKS
    return _Mood.WANTS


def _read_refusal(body: str, reading: Reading) -> None:
    nouns = _nouns(body)
    for noun in nouns:
        reading.refuse(noun)
        reading.is_correcting = reading.said_no = False
    if PATTERNS["not_at_all"].fullmatch(body):
        reading.take_back()
    if reading.wanted and not nouns and re.search(r"\d", body) and not re.fullmatch(r"not \d+", body):
        reading.put_in_doubt(Topic.HOW_MANY)  # "five ales minus two"


# -- wishes


def _read_wish(clause: _Clause, reading: Reading) -> None:
    wants = PATTERNS["want"].match(clause.body)
    reading.is_named_only = wants is None and "please" not in clause.sentence
    wished = clause.body if wants is None else clause.body[wants.end() :]
    adds = PATTERNS["too"].search(clause.body) is not None and "instead" not in clause.body
    thing = (
        PATTERNS["thing"].match(wished)
        or PATTERNS["odd_thing"].match(wished)
        or PATTERNS["room_by_place"].match(wished)
    )
    everything = PATTERNS["everything"].match(wished)
    if PATTERNS["rumour"].search(wished):
        reading.want(HearRumour())
    elif everything is not None:
        _want_everything(everything[1], clause.sentence, reading)
    elif thing is not None:
        act = _wish(thing, clause, reading)
        if act is not None:
            _check_doubts(act, clause, reading)
            kept = [other for other in reading.wanted if noun_of(other) == noun_of(act)]
            if kept and reading.is_correcting and re.search(r"\b(?:just|only) the\b", clause.text):
                reading.wanted, reading.is_correcting, reading.said_no = kept, False, False
                return  # "two ales and a stew, actually just the ales"
            if isinstance(act, Order) and not adds:
                _so_many(act, clause, reading)
            else:
                reading.want(act, adds=adds)
    elif PATTERNS["it"].match(wished) or PATTERNS["some_more"].match(wished):
        _want_it(wished, clause, adds, reading)
    elif PATTERNS["missing"].search(wished) or PATTERNS["unknown"].match(clause.body):
        reading.wants_missing = True
    elif wished:
        reading.wants_other = True
        reading.named += _nouns(wished)
        if reading.wanted and _nouns(wished):
            reading.put_in_doubt(Topic.UNSURE, *_nouns(wished))  # "two ales, make one of them a wine"
        reading.is_question |= clause.is_asked or PATTERNS["inform"].search(wished) is not None


def _check_doubts(act: Act, clause: _Clause, reading: Reading) -> None:
    says_which = reading.wants_room and isinstance(act, Rent)
    if clause.link == "or" and not reading.is_correcting and not reading.has_fallback:
        reading.put_in_doubt(Topic.UNSURE, *map(noun_of, reading.wanted), noun_of(act))
    elif PATTERNS["maybe"].search(clause.text) and not says_which:
        reading.put_in_doubt(Topic.UNSURE, noun_of(act))


def _wish(thing: re.Match[str], clause: _Clause, reading: Reading) -> Act | None:
    """The act that a wish for a thing means; None if it is not clear."""
    item, after = thing["item"], thing.string[thing.end() :]
    offered = PATTERNS["offered"].search(clause.body)
    offer = next((int(each) for each in offered.groups() if each is not None), None) if offered else None
    if item in DISHES and _ceiling(clause.sentence) is not None:
        reading.put_in_doubt(Topic.UNSURE, item)
        return None
    if item in DISHES:
        people = offer if offered is not None and offered["people"] else None
        count = _count(thing["before"], after, people, reading)
        return None if count is None else Order(item, count, offer if people is None else None)
    if (item != "room" or PATTERNS["rank"].search(thing[0])) and re.search(
        r"half|-|\b(?!1 )\d+ (?!coin)", thing["before"]
    ):
        reading.put_in_doubt(Topic.BAD_NUMBER)
        return None
    if item == "lantern":
        return BuyLantern(offer)
    if offered is not None and offered["people"]:
        reading.put_in_doubt(Topic.UNSURE, item)  # two coins, or two people?
        return None
    if PATTERNS["nights"].search(clause.body):
        reading.put_in_doubt(Topic.NIGHTS, item)
        return None
    if item in ROOMS:
        return Rent(item, offer, _ceiling(clause.sentence))
    in_room = re.match(rf" (?:in|at|up in|under) (?:the )?({PATTERNS['room'].pattern})\b", after)
    if in_room is not None:
        return Rent(in_room[1], offer)
    if PATTERNS["second_rank"].search(clause.sentence):
        reading.put_in_doubt(Topic.UNNAMED_ROOM)
        return None
    ranked = _ranked(clause.sentence)
    if ranked is None and offer is None:
        reading.wants_room = True
        return None
    return ranked or Rent(None, offer)


def _ranked(text: str) -> Rent | None:
    """A room that is named by its rank: the cheapest, the finest, the finest below six coins."""
    rank = PATTERNS["rank"].search(text)
    return None if rank is None else Rent(rank[1], at_most=_ceiling(text))


def _ceiling(text: str) -> int | None:
    """The most that a room may cost."""
    ceiling = PATTERNS["ceiling"].search(text)
    return None if ceiling is None else int(ceiling[2]) - (ceiling[1] == "below")


def _count(before: str, after: str, people: int | None, reading: Reading) -> int | None:
    """How many of a dish; None if it is not clear. `people` is the number in "ale for two"."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", before) or re.findall(r"^ (?:x )?(\d+)\b(?! coin)", after)
    of_us = PATTERNS["people"].search(after)
    if of_us is not None:
        people = int(of_us[1]) if (of_us[1] or "both").isdecimal() else 2
    if "half" in before or len(set(numbers)) > 1 or not all(map(_is_count, numbers)):
        reading.put_in_doubt(Topic.BAD_NUMBER)
        return None
    is_vague = PATTERNS["vague_number"].search(before) or PATTERNS["for_each"].search(after)
    if numbers and not is_vague:
        return int(numbers[0])
    if people is not None and _is_count(str(people)) and (not before or "round" in before) and not is_vague:
        return people
    if is_vague or people is not None or "round" in before:
        reading.put_in_doubt(Topic.HOW_MANY)
        return None
    return 1


def _so_many(act: Order, clause: _Clause, reading: Reading) -> None:
    """Want so many of a dish that may have been wanted before. It never adds to an order unless it says so."""
    ordered = next((other.count for other in reading.wanted if isinstance(other, Order) and other.dish == act.dish), 0)
    for_somebody, is_joined = " for " in clause.text, clause.link in ("and", "plus", "+", "&")
    is_another = for_somebody and (
        (ordered == 1 and is_joined) or re.search(rf"\b{act.dish}(?: please)? for\b", clause.sentence) is not None
    )
    if not ordered or is_another or reading.is_correcting:
        reading.want(act, adds=is_another)
    elif ordered == 1 < act.count:
        reading.is_correcting = True
        reading.want(act, adds=False)  # "ale, three of them"
    elif act.count != ordered and not (act.count < ordered and (for_somebody or " of " in clause.text)):
        reading.put_in_doubt(Topic.HOW_MANY)
    elif act.count == ordered and is_joined and clause.sentence.count(act.dish) > 1:
        reading.put_in_doubt(Topic.HOW_MANY)  # "ale and ale"


def _in_vessel(wished: str) -> str | None:
    """The dish that a vessel without a name is asked for: "a bowl" is of stew."""
    vessel = re.search(rf"\b{PATTERNS['vessel'].pattern}\b", wished)
    return None if vessel is None else VESSELS.get(vessel[0])


def _is_count(number: str) -> bool:
    return number.isdecimal() and 0 < int(number) <= MAX_COUNT


def _want_everything(number: str | None, sentence: str, reading: Reading) -> None:
    count = number if number is not None and number.isdecimal() else "1"
    is_food = number is not None or PATTERNS["food"].search(sentence) is not None
    if "room" in sentence or not is_food or not _is_count(count):
        reading.put_in_doubt(Topic.UNSURE)
        return
    for dish in ("ale", "wine") if re.search(r"\b(?:each|every) drink", sentence) else DISHES:
        reading.want(Order(dish, int(count)))


def _want_it(wished: str, clause: _Clause, adds: bool, reading: Reading) -> None:
    """Want what was named before: "I'll take it", "make it two"."""
    noun, some = reading.last_named(), PATTERNS["some_more"].match(wished)
    if noun is None and not (reading.named or reading.wanted):
        noun = _in_vessel(wished)
    number = None if some is None else some["number"] if (some["number"] or "").isdecimal() else "1"
    if clause.link == "or":
        reading.put_in_doubt(Topic.HOW_MANY)
    elif noun is None or PATTERNS["maybe"].search(clause.text):
        reading.put_in_doubt(Topic.UNSURE, *reading.named)
    elif number is not None and noun in DISHES and _is_count(number):
        if adds:
            reading.want(Order(noun, int(number)))
        else:
            _so_many(Order(noun, int(number)), clause, reading)
    elif number is not None and number != "1":
        reading.put_in_doubt(Topic.UNSURE, noun)
    elif noun in map(noun_of, reading.wanted):
        pass  # "The attic. I'll take it."
    elif noun == "room":
        if reading.ranked is None:
            reading.wants_room = True
        else:
            reading.want(reading.ranked, adds=adds)
    else:
        reading.want(Order(noun) if noun in DISHES else Rent(noun) if noun in ROOMS else BuyLantern(), adds=adds)
