"""Remote model: the common part of the drivers for model servers, which sends, reads, bounds and ends one round.

A driver defines the request for a prompt, and a reader for the answer. Readers are pure: they turn the data of events
into text.
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
    from footlights.models.sampling import Sampling
    from footlights_actors.models.http_stream import HttpStream, Server

JsonObject: TypeAlias = "dict[str, Any]"

DEFAULT_SILENCE_TIMEOUT = 60.0

_SEAMS = 8
"""Allowance for tokens that arrive in several pieces, where a thought ends or a tool call begins."""
_RETRY_LATER = frozenset({"rate_limit_error", "rate_limit_exceeded", "overloaded_error"})


class Answer(Protocol):
    """Reads one answer."""

    @property
    def pieces(self) -> int:
        """The number of pieces of text so far, including hidden text. Nearly every piece is at least a token."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete."""
        ...

    def take(self, data: str) -> str | None:
        """Read the data of the next event, and return its visible text. Raises `StreamError` if it is malformed.

        Empty if the event only shows that the model is working, None for any other event without visible text.
        """
        ...

    def finish(self, *, stopped: bool) -> Iterator[Output]:
        """The remaining output. `stopped`: the driver cut the answer. Raises `StreamError` if it is incomplete."""
        ...


@frozen
class Interface:
    """The driver's part of a remote model."""

    body: Callable[[Prompt], Mapping[str, object]]
    """Makes the request for a prompt."""
    answer: Callable[[], Answer]
    """Makes a reader for one answer."""


def traits_of(
    at: Server, *, remote: bool | None, context_tokens: int | None, slots: int | None, sampling: Sampling
) -> ModelTraits:
    """The traits of a model on this server. Raises `RegistrationError` for invalid numbers."""
    if min(each for each in (context_tokens, slots, 1) if each is not None) < 1:
        raise RegistrationError("context_tokens and slots must be at least 1, if they are given.")
    is_remote = not at.loopback if remote is None else remote
    return ModelTraits(remote=is_remote, context_tokens=context_tokens, slots=slots, sampling=sampling)


def chosen(sampling: Sampling, *names: str) -> JsonObject:
    """The settings of these names that are set."""
    return {name: value for name in names if (value := getattr(sampling, name)) is not None}


class RemoteModel:
    """A model behind a server. Loading it prepares the HTTP client, and sends nothing."""

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
        """Whether it is remote, and its limits if the host gave them."""
        return self._traits

    @property
    def warm_state(self) -> WarmState:
        """Hot once the HTTP client is ready; the state of the server is unknown."""
        return WarmState.HOT if self._http.is_open else WarmState.WARM

    async def load(self, report: Callable[[float], None]) -> None:
        """Prepare the HTTP client."""
        await self._http.open()
        report(1.0)

    async def unload(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Generate one round. Closing the generator closes the request. Output beyond `max_tokens` is cut."""
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
    """The error for data that is not part of an answer."""
    return StreamError(sentence="The model's server sent something that is not part of an answer.")


def reported(error: object) -> StreamError | RateLimitError:
    """The exception for an error inside an answer. The server's message is not quoted."""
    names = cast("JsonObject", error) if isinstance(error, dict) else {}
    if any(name in _RETRY_LATER for name in (names.get("type"), names.get("code")) if isinstance(name, str)):
        return RateLimitError(sentence="The model's server is overloaded or limits requests. Retry later.")
    return StreamError(sentence="The model's server reported an error in its answer.")
