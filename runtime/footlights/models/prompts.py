"""What a model is told, and nothing else: who it is, what it may know, what was just said, what its tools answered.

There is no earlier chat here, and no way to put any in: facts are made by the host from the world alone. If it
is all too much for the model's context window, things are left out in this order, and the turn fails if that is not
enough:

1. facts, the last one first: a host lists the most important first;
2. what tools answered in this turn, the oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from attrs import evolve, frozen

from footlights.errors import PromptTooLarge, RegistrationError
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRound

if TYPE_CHECKING:
    from footlights.events import JsonValue

_BYTES_PER_TOKEN = 3
"""Of plain words. Anything else may take a token for each byte: digits do, and so do characters that are rare."""
_WORDS = re.compile(rb"[A-Za-z \n]+")
_TOKENS_PER_PART = 8
_LEFT_OUT = "This answer was left out, because it did not fit."


@frozen
class Fact:
    """Something that a host lets a model know. Raises `RegistrationError` if it is not valid Unicode."""

    name: str
    """What it is about."""
    text: str
    """What is so."""

    def __attrs_post_init__(self) -> None:
        _check_unicode(_line(self), "A fact")


Facts: TypeAlias = Callable[[Any], Iterable[Fact]]
"""Makes facts from a view of the world, the most important first. It is given nothing else."""


def no_facts(_: object) -> tuple[Fact, ...]:
    return ()


@frozen(kw_only=True)
class Persona:
    """Who speaks in a turn. Raises `RegistrationError` if its text is not valid Unicode."""

    text: str = ""
    """Who it is and how it speaks, told to the model."""
    model: str | None = None
    """The id of the model that speaks for it; without one the cast chooses."""
    tools: frozenset[str] | None = None
    """The names of the tools that it may use; None is all."""
    facts: Facts = no_facts
    """What it knows of the world."""

    def __attrs_post_init__(self) -> None:
        _check_unicode(self.text, "The text of a persona")

    def may_use(self, tool_name: str) -> bool:
        """Whether it may use the tool of this name, if there is one."""
        return self.tools is None or tool_name in self.tools


def _check_unicode(text: str, what: str) -> None:
    """Nothing else can be sent to a model."""
    with suppress(UnicodeEncodeError):  # which holds the text, and must not become the context of ours
        text.encode()
        return
    raise RegistrationError(f"{what} holds half of a surrogate pair; it is not valid Unicode.")


def fitted(prompt: Prompt, facts: Iterable[Fact], context_tokens: int | None) -> Prompt:
    """The prompt with as many of the facts as there is room for. At least half of the window is for what is told.

    Raises `PromptTooLarge`.
    """
    known = list(facts)
    if context_tokens is not None:
        prompt = _make_fit(prompt, known, context_tokens - min(prompt.max_tokens, context_tokens // 2))
    system = "\n".join([prompt.system, *map(_line, known)]).strip()
    return prompt if system == prompt.system else evolve(prompt, system=system)


def _make_fit(prompt: Prompt, known: list[Fact], room: int) -> Prompt:
    sizes = [_tokens(_line(fact)) for fact in known]
    size = _size(prompt) + sum(sizes)
    while size > room and known:
        known.pop()
        size -= sizes.pop()
    rounds: list[ToolRound] = []
    for each in prompt.rounds:
        exchanges: list[ToolExchange] = []
        for exchange in each.exchanges:
            shorter = ToolExchange(exchange.request, None, _LEFT_OUT)
            saved = _size_of_exchange(exchange) - _size_of_exchange(shorter)
            leave_out = size > room and saved > 0
            size -= saved if leave_out else 0
            exchanges.append(shorter if leave_out else exchange)
        rounds.append(ToolRound(each.said, tuple(exchanges)))
    if size > room:
        raise PromptTooLarge("What the model would have to be told does not fit into its context window.")
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
    """No fewer than a tokenizer would make of it."""
    other = len(_WORDS.sub(b"", data))
    return _TOKENS_PER_PART + other + -(-(len(data) - other) // _BYTES_PER_TOKEN)
