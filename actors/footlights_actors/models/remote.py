"""What the drivers of model servers share: how one round is asked for, read, bounded and ended.

A driver says what a prompt looks like on the wire and how an answer is read. The reading is pure: the data of
events goes in, text comes out.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import orjson
from attrs import frozen

from footlights.errors import RateLimitError, RegistrationError, StreamError
from footlights.events import WarmState
from footlights.models.model import ModelTraits
from footlights_actors.models.http_stream import read_rest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from footlights.models.model import Output, Prompt
    from footlights_actors.models.http_stream import HttpStream, Server

JsonObject: TypeAlias = "dict[str, Any]"

DEFAULT_SILENCE_TIMEOUT = 60.0

_SEAMS = 8
"""A token may come in more than one piece where a thought ends or a tool call begins."""
_ASK_LATER = frozenset({"rate_limit_error", "rate_limit_exceeded", "overloaded_error"})


class Answer(Protocol):
    """Reads one answer."""

    @property
    def pieces(self) -> int:
        """How many pieces of text came, also of hidden text. No piece is less than a token, but for a few."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether its end has come."""
        ...

    def take(self, data: str) -> str | None:
        """The data of the next event: the text in it that may be shown. Raises `StreamError` if it makes no sense.

        Empty if it only shows that the model is at work, None if not even that.
        """
        ...

    def finish(self, *, stopped: bool) -> Iterator[Output]:
        """What is left to give. `stopped`: we broke it off. Raises `StreamError` if its end has not come."""
        ...


@frozen
class Interface:
    """The two halves of a driver."""

    body: Callable[[Prompt], Mapping[str, object]]
    """What a prompt looks like on the wire."""
    answer: Callable[[], Answer]
    """Makes a reader."""


def traits_of(at: Server, *, remote: bool | None, context_tokens: int | None, slots: int | None) -> ModelTraits:
    """What a host says of a model there. Raises `RegistrationError` if it cannot be so."""
    if min(each for each in (context_tokens, slots, 1) if each is not None) < 1:
        raise RegistrationError("context_tokens and slots must be at least 1, if they are given.")
    is_remote = not at.loopback if remote is None else remote
    return ModelTraits(remote=is_remote, context_tokens=context_tokens, slots=slots)


class RemoteModel:
    """A model behind a server. Loading it opens nothing but the means to connect."""

    def __init__(self, interface: Interface, http: HttpStream, *, model_id: str, traits: ModelTraits) -> None:
        self._interface = interface
        self._http = http
        self._model_id = model_id
        self._traits = traits

    @property
    def model_id(self) -> str:
        """Its name in the cast."""
        return self._model_id

    @property
    def traits(self) -> ModelTraits:
        """Where it runs, and what it can take, if the host said so."""
        return self._traits

    @property
    def warm_state(self) -> WarmState:
        """Hot once the means to connect are there; whether the server is ready, only it knows."""
        return WarmState.HOT if self._http.is_open else WarmState.WARM

    async def load(self, report: Callable[[float], None]) -> None:
        """Get ready to connect."""
        await self._http.open()
        report(1.0)

    async def unload(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """One round. Closing it closes the request. A server that says more than it may is stopped."""
        answer = self._interface.answer()
        stopped = False
        async with aclosing(self._http.post(self._interface.body(prompt))) as events:
            async for data in events:
                text = answer.take(data)
                stopped = answer.pieces > prompt.max_tokens + _SEAMS
                if stopped:
                    break
                if text is not None:
                    yield text
                if answer.is_whole:
                    await read_rest(events)
                    break
        for output in answer.finish(stopped=stopped):
            yield output


def read_object(data: str) -> JsonObject:
    """The data of an event, which must be a JSON object."""
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    return as_object(value)


def as_object(value: object) -> JsonObject:
    """A part of the answer, which must be a JSON object."""
    if not isinstance(value, dict):
        raise nonsense()
    return cast("JsonObject", value)


def as_text(value: object) -> str:
    """A part of the answer, which must be text if it is there."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise nonsense()
    return value


def nonsense() -> StreamError:
    """What came is not part of an answer."""
    return StreamError("The model's server sent something that is not part of an answer.")


def reported(error: object) -> StreamError | RateLimitError:
    """An error that the server reports inside its answer. What it says about it is not repeated."""
    names = cast("JsonObject", error) if isinstance(error, dict) else {}
    if any(name in _ASK_LATER for name in (names.get("type"), names.get("code")) if isinstance(name, str)):
        return RateLimitError("The model's server wants to be asked later.")
    return StreamError("The model's server reported an error in its answer.")
