"""Script of the innkeeper: a table of topics, of which the first that matches the input is used.

A topic may open with text and a tool; its `closing` then turns the tool's result into a sentence. The same input in the
same world always gives the same answer. The innkeeper never repeats the player's text and promises nothing, because
only a commit decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from footlights_actors.models.scripted import Call, Line, Say

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights.models.model import Prompt, ToolExchange

Opening: TypeAlias = Callable[[str], Iterable[Line]]
Closing: TypeAlias = Callable[[Mapping[str, "JsonValue"]], str]

_ROOM_WORDS = {"attic": "attic", "gable": "gable", "garden": "garden", "chamber": "chamber", "great": "chamber"}
_DISH_WORDS = {"ale": "ale", "beer": "ale", "wine": "wine", "stew": "stew", "supper": "stew", "bread": "bread"}
_OFFER = re.compile(r"\bfor (?:only )?(\d{1,4}) ?(?:coins?|silver|copper)\b")


def innkeeper(prompt: Prompt) -> Iterable[Line]:
    """The script: see `footlights_actors.ScriptedModel`."""
    words = prompt.user.casefold()
    topic = next(topic for topic in _TOPICS if re.search(topic.pattern, words))
    if prompt.exchanges:
        return [Say(" " + _close(topic, prompt.exchanges[-1]))]
    lines = list(topic.opening(words))
    if not prompt.tools and any(isinstance(line, Call) for line in lines):
        return [Say("We are only talking, friend, so the book stays shut. Ask me again when you mean it.")]
    return lines


def _close(topic: Topic, exchange: ToolExchange) -> str:
    if exchange.error is not None:
        return f"Ah. {exchange.error} I am sorry, friend. Shall I tell you what else there is?"
    assert topic.closing is not None, "a topic that calls a tool says how it ends"
    return topic.closing(cast("Mapping[str, JsonValue]", exchange.value))


def _one_of(*answers: str) -> Opening:
    """Select an answer by a checksum of the input, so that the choice varies and is deterministic."""

    def opening(words: str) -> Iterable[Line]:
        return [Say(answers[sum(map(ord, words)) % len(answers)])]

    return opening


def _after(saying: str, tool_name: str) -> Opening:
    return lambda _: [Say(saying), Call(tool_name)]


def _named(vocabulary: Mapping[str, str], words: str) -> str | None:
    return next((key for word, key in vocabulary.items() if re.search(rf"\b{word}s?\b", words)), None)


def _rent(words: str) -> Iterable[Line]:
    arguments: dict[str, JsonValue] = {"room": _named(_ROOM_WORDS, words)}
    offer = _OFFER.search(words)
    if offer is not None:
        arguments["price"] = int(offer[1])
    return [Say("Let me open the book."), Call("rent_room", arguments)]


def _rented(result: Mapping[str, JsonValue]) -> str:
    return (
        f"I have written you down for {result['room']}, at {result['price']} a night. "
        "The key is yours as soon as the ink is dry, if the sum is right and your purse can bear it."
    )


def _order(words: str) -> Iterable[Line]:
    return [Say("Coming."), Call("serve_order", {"dish": _named(_DISH_WORDS, words)})]


def _served(result: Mapping[str, JsonValue]) -> str:
    return f"One {result['dish']}, there you are. That makes {result['price']}, out of your purse and into my till."


def _rooms(result: Mapping[str, JsonValue]) -> str:
    free = cast("list[str]", result["free"])
    if not free:
        return "Not a bed left, I fear. There is straw in the stable, and the horse does not mind company."
    return f"I can offer you {_listed(free)}. Say which one you take, and I will write it down."


def _company(result: Mapping[str, JsonValue]) -> str:
    taken = cast("list[str]", result["taken"])
    return f"Upstairs there is {_listed(taken)}. Down here only you, me, and the cat, who owns the place."


def _offered(result: Mapping[str, JsonValue]) -> str:
    return (
        f"It has hung there since my grandmother's day. For {result['price']} coins I could bear to see it go, "
        "but I will have your word on it first."
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


@frozen
class Topic:
    pattern: str
    opening: Opening
    closing: Closing | None = None


# Specific topics come before general ones: renting names rooms too, and an order may begin with a greeting.
_TOPICS = (
    Topic(
        r"\b(good ?bye|bye|farewell|good night|leaving)\b",
        _one_of(
            "Safe roads, friend. The lantern stays lit till the last guest is in.",
            "Mind the step on your way out. It has been meaning to be mended since my grandmother's day.",
        ),
    ),
    Topic(
        r"\b(rent|take|book|hire|i'?ll have)\b.*\b(room|attic|gable|garden|chamber|bed|cheapest)\b"
        r"|^\W*(the )?(attic|gable|garden|great chamber|chamber)( room)?(,? please)?\W*$",
        _rent,
        _rented,
    ),
    Topic(
        r"\b(buy|sell|sale)\b.*\blantern\b|\blantern\b.*\b(buy|sell|sale)\b",
        _after("The lantern? Over the door?", "sell_lantern"),
        _offered,
    ),
    Topic(
        r"\b(price|prices|cost|costs|how much|charge|expensive|cheap)\b",
        _one_of(
            "An ale or a heel of bread is 1 coin, stew 2, wine 3. The attic is 2, the gable room 3, the garden room 5, "
            "and the great chamber 12, because a bishop once slept in it."
        ),
    ),
    Topic(r"\b(ale|beer|wine|stew|supper|bread)s?\b", _order, _served),
    Topic(r"\b(rooms?|beds?|sleep|stay|lodgings?)\b", _after("Let me look at the book.", "check_rooms"), _rooms),
    Topic(
        r"\b(rumou?rs?|news|gossip|tales?|story|stories|heard)\b",
        _after("Lean closer.", "recall_rumour"),
        lambda result: f"{result['rumour']} But you did not hear it from me.",
    ),
    Topic(
        r"\b(your name|are you|yourself)\b",
        _one_of(
            "Odo, like my father and his. I keep the fire, the book and most secrets.",
            "Me? On my feet since dawn, and in a better temper than my knees.",
        ),
    ),
    Topic(
        r"\b(who|guests?|company|anyone|anybody|people)\b",
        _after("Tonight? Let me see who signed.", "check_rooms"),
        _company,
    ),
    Topic(
        r"\b(food|eat|hungry|menu|drinks?|thirsty|kitchen)\b",
        _one_of(
            "There is stew, and it has been stew since morning. Bread to go with it, and ale or wine to wash it down.",
            "The kitchen has stew and bread. The cellar has ale and wine. What will it be?",
        ),
    ),
    Topic(
        r"\b(hello|hi|hey|greetings|good (morning|day|evening)|well met)\b",
        _one_of(
            "Welcome to the Mended Lantern. Shake the rain off, sit by the fire, and tell me what you need.",
            "Come in, come in, and shut the door before the wind asks for a room as well. What can I do for you?",
            "Well met, traveller. There is a fire, there is stew, and there may be a bed. What will it be?",
        ),
    ),
    Topic(
        r"\b(thanks?|thank you|cheers)\b",
        _one_of("You are welcome. The cat expects to be thanked too.", "No thanks needed. It is what the door is for."),
    ),
    Topic(
        r"\b(weather|rain|storm|roads?|winter|cold)\b",
        _one_of(
            "It will rain until it stops. The north road is mud, the south road is mud with robbers.",
            "When the smoke lies low like this, there is snow behind it. Another reason to stay the night.",
        ),
    ),
    Topic(
        "",
        _one_of(
            "That is beyond an innkeeper. Rooms, stew, ale and rumours: ask me about those and I am a wise man.",
            "Hm. I had a guest who spoke like that, and he paid in advance. Is it a room you want, or supper?",
            "You would have to ask the cat. I can tell you about rooms and prices, or a rumour if you sit down.",
        ),
    ),
)
