"""Prompt assembly: persona, facts, the player's input and tool results, fitted into the context window.

A prompt holds no earlier chat: the host makes facts from the world and the player who speaks. If a prompt
exceeds the model's context window, parts are omitted in this order, and the turn fails if that is not enough:

1. facts, the last one first, because a host lists the most important first;
2. tool results of this turn, the oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import orjson
from attrs import Factory, evolve, field, frozen

from footlights.bad_return import BadReturn, check_plain, is_unawaited
from footlights.errors import PromptTooLarge, RegistrationError
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRound
from footlights.models.sampling import NO_SAMPLING, Sampling
from footlights.speaker import Speaker

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights.modes import Classifier

_BYTES_PER_TOKEN = 3
"""For plain words. Other text, such as digits and rare characters, may take one token for each byte."""
_WORDS = re.compile(rb"[A-Za-z \n]+")
_TOKENS_PER_PART = 8
_MAX_TRAIT_CHARS = 64
_LIST_OF_FACTS = 'Return a list of Fact("name", "text").'
_OMITTED = "This answer was left out, because it did not fit."


@frozen
class Fact:
    """A fact that a host tells a model. Raises `RegistrationError` if it is not text, or not valid Unicode."""

    name: str
    """Its subject."""
    text: str
    """Its content."""

    def __attrs_post_init__(self) -> None:
        _check_text(self.name, "The name of a fact")
        _check_text(self.text, "The text of a fact")


Facts: TypeAlias = Callable[[Any, Speaker], Iterable[Fact]]
"""Makes facts from a view of the world and the player who speaks, the most important first."""


def no_facts(_: object, _speaker: object) -> tuple[Fact, ...]:
    return ()


def _as_names(models: Iterable[str]) -> tuple[str, ...]:
    if isinstance(models, str):  # it would be read as a list of letters
        raise RegistrationError("The models of a persona are a list of names.")
    return tuple(models)


def _as_traits(traits: object) -> Mapping[str, float]:
    given = cast("Mapping[object, object]", traits) if isinstance(traits, Mapping) else {None: None}
    if not all(_is_name(name) and _is_weight(weight) for name, weight in given.items()):
        raise RegistrationError("The traits of a persona are weights from 0 to 1, by name.")
    return MappingProxyType({str(name): float(cast("float", weight)) for name, weight in given.items()})


def _is_name(name: object) -> bool:
    return type(name) is str and name.isprintable() and 0 < len(name.strip()) <= len(name) <= _MAX_TRAIT_CHARS


def _is_weight(weight: object) -> bool:
    return type(weight) in (int, float) and 0 <= cast("float", weight) <= 1


def _system_of(persona: Persona) -> str:
    listed = ", ".join(f"{name} {weight:g}" for name, weight in persona.traits.items())
    return f"{persona.text}\nYour traits, from 0 to 1: {listed}.".strip() if listed else persona.text


@frozen(kw_only=True)
class Persona:
    """The character that speaks in a turn.

    Raises `RegistrationError` if its text is not valid Unicode, its traits are no weights, its list of models is not
    one, its facts are made by an async function or one with other arguments, or the id of its classifier cannot be
    recorded.
    """

    text: str = ""
    """Its description, as part of the system prompt."""
    traits: Mapping[str, float] = field(factory=dict[str, float], converter=_as_traits, hash=False)
    """How strong each trait of its character is, from 0 to 1, by name: part of the system prompt."""
    models: tuple[str, ...] = field(default=(), converter=_as_names)
    """The ids of its models: the first speaks, and each next one if those before it fail. By default the cast
    chooses."""
    tools: frozenset[str] | None = None
    """The names of the tools that it may use; None for all."""
    facts: Facts = no_facts
    """Its knowledge of the world, and of the player who speaks."""
    sampling: Sampling = NO_SAMPLING
    """Its settings where the turn has none. They take precedence over those of the model."""
    classifier: Classifier | None = None
    """Its own opinion of which requests ask for execution, where a view decides on the mode of a turn."""
    system: str = field(init=False, eq=False, repr=False, default=Factory(_system_of, takes_self=True))
    """Its text and its traits, as a model gets them."""

    def __attrs_post_init__(self) -> None:
        _check_text(self.text, "The text of a persona")
        check_plain("The function that makes the facts of a persona", self.facts, "world", "speaker")
        if len(set(self.models)) < len(self.models):
            raise RegistrationError("The models of a persona name one twice.")
        if self.classifier is not None:
            from footlights.modes.classifier import check_classifier_id  # few personas need it

            check_classifier_id(self.classifier)

    def may_use(self, tool_name: str) -> bool:
        """Whether it may use the tool of this name."""
        return self.tools is None or tool_name in self.tools


def facts_of(persona: Persona, view: object, speaker: Speaker) -> tuple[Fact, ...]:
    """What a persona knows of this view of the world, and of this player.

    Raises `BadReturn`, and what the host's function raises.
    """
    told: object = persona.facts(view, speaker)
    if is_unawaited(told):
        raise BadReturn("The facts are a coroutine. Make them with def, and await nothing.", persona.facts)
    is_list = isinstance(told, Iterable) and not isinstance(told, str | Mapping)  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
    if not is_list:
        raise BadReturn(f"The facts are not a list. {_LIST_OF_FACTS}", persona.facts)
    facts = tuple(cast("Iterable[object]", told))
    if not all(isinstance(fact, Fact) for fact in facts):
        raise BadReturn(f"The facts hold something that is not a Fact. {_LIST_OF_FACTS}", persona.facts)
    return cast("tuple[Fact, ...]", facts)


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise RegistrationError(f"{what} must be a string, and not {type(text).__name__}.")
    with suppress(UnicodeEncodeError):  # it holds the text, so it must not become the context of our error
        text.encode()
        return
    raise RegistrationError(f"{what} holds half of a surrogate pair; it is not valid Unicode.")


def fitted(prompt: Prompt, facts: Iterable[Fact], context_tokens: int | None) -> Prompt:
    """The prompt with as many facts as fit. At least half of the context window is reserved for the prompt.

    Raises `PromptTooLarge`.
    """
    known = list(facts)
    if context_tokens is not None:
        prompt = _omit_until_fitting(prompt, known, context_tokens - min(prompt.max_tokens, context_tokens // 2))
    system = "\n".join([prompt.system, *map(_line, known)]).strip()
    return prompt if system == prompt.system else evolve(prompt, system=system)


def _omit_until_fitting(prompt: Prompt, known: list[Fact], room: int) -> Prompt:
    sizes = [_tokens(_line(fact)) for fact in known]
    size = _size(prompt) + sum(sizes)
    while size > room and known:
        known.pop()
        size -= sizes.pop()
    rounds: list[ToolRound] = []
    for each in prompt.rounds:
        exchanges: list[ToolExchange] = []
        for exchange in each.exchanges:
            shorter = ToolExchange(exchange.request, None, _OMITTED)
            saved = _size_of_exchange(exchange) - _size_of_exchange(shorter)
            omit = size > room and saved > 0
            size -= saved if omit else 0
            exchanges.append(shorter if omit else exchange)
        rounds.append(ToolRound(each.said, tuple(exchanges)))
    if size > room:
        raise PromptTooLarge("The prompt exceeds the model's context window.")
    return evolve(prompt, rounds=tuple(rounds))


def _line(fact: Fact) -> str:
    return f"{fact.name}: {fact.text}"


def _size(prompt: Prompt) -> int:
    said = sum(_tokens(each.said) for each in prompt.rounds)
    return (
        _tokens(prompt.system)
        + _tokens(prompt.user)
        + said
        + sum(map(_size_of_exchange, prompt.exchanges))
        + sum(map(_size_of_offer, prompt.tools))
    )


def _size_of_exchange(exchange: ToolExchange) -> int:
    asked = _tokens(exchange.request.tool_name) + _tokens_of_json(dict(exchange.request.arguments))
    return asked + (_tokens_of_json(exchange.value) if exchange.error is None else _tokens(exchange.error))


def _size_of_offer(offer: ToolOffer) -> int:
    return _tokens(offer.name) + _tokens(offer.description) + _tokens_of_json(dict(offer.parameters))


def _tokens(text: str) -> int:
    return _tokens_of(text.encode(errors="replace"))


def _tokens_of_json(value: JsonValue) -> int:
    return _tokens_of(orjson.dumps(value))


def _tokens_of(data: bytes) -> int:
    """An upper bound of a tokenizer's count."""
    other = len(_WORDS.sub(b"", data))
    return _TOKENS_PER_PART + other + -(-(len(data) - other) // _BYTES_PER_TOKEN)
