"""Adapters between `Model` and `LLMClient`, in both directions.

client = ModelClient(model)                         # any Model as a chat client
model = ClientModel(client, model_id="narrator")    # any LLMClient in a cast
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

import trio
from attrs import define

from footlights.errors import ModelError, RateLimitError, StreamError
from footlights.events import WarmState
from footlights.failures import is_failure
from footlights.models.llm_client import LLMResponse
from footlights.models.model import DEFAULT_MAX_TOKENS, ModelTraits, Prompt, ToolRequest, Usage
from footlights.models.sampling import DEFAULT_TEMPERATURE, Sampling

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from footlights.models.llm_client import LLMClient
    from footlights.models.model import Model, Output

_T = TypeVar("_T")

DEFAULT_STREAM_TIMEOUT = 30.0


_END = object()


class ModelClient:
    """Any model as an `LLMClient`. It loads the model on first use, and offers it no tools. The caller unloads it.

    The model has its own sampling settings beside the temperature. With a seed among them, `generate` and
    `generate_stream` give the same text, if the model can repeat itself.
    An answer that is not complete after `stream_timeout` seconds ends with a `TimeoutError`. An answer with more than
    `max_tokens` pieces is cut there.
    """

    def __init__(self, model: Model, stream_timeout: float = DEFAULT_STREAM_TIMEOUT) -> None:
        self._model = model
        self._stream_timeout = stream_timeout

    async def generate(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> LLMResponse:
        """The complete answer."""
        tally = _Tally()
        async with aclosing(self._stream(self._prompt(system, user, temperature, max_tokens), tally)) as stream:
            text = "".join([piece async for piece in stream])
        return LLMResponse(text, tally.tokens_used, self._model.model_id)

    async def generate_stream(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> AsyncGenerator[str, None]:
        """The answer as it arrives. Closing the generator stops the model."""
        prompt = self._prompt(system, user, temperature, max_tokens)
        async with aclosing(self._stream(prompt, _Tally())) as stream:
            async for piece in stream:
                yield piece

    def _prompt(self, system: str, user: str, temperature: float, max_tokens: int) -> Prompt:
        sampling = Sampling(temperature=temperature).over(self._model.traits.sampling)
        return Prompt(user, system, sampling=sampling, max_tokens=max_tokens)

    async def _stream(self, prompt: Prompt, tally: _Tally) -> AsyncGenerator[str, None]:
        # No cancel scope stays open over a yield: the consumer may run the next step in another scope.
        deadline = trio.current_time() + self._stream_timeout
        if self._model.warm_state is not WarmState.HOT:
            await self._in_time(lambda: self._model.load(_ignore_progress), deadline)
        async with aclosing(self._model.generate(prompt)) as output:
            while (item := await self._in_time(lambda: anext(output, _END), deadline)) is not _END:
                match item:
                    case "":
                        pass  # a keepalive
                    case str():
                        if tally.pieces == prompt.max_tokens:  # a piece is at least one token
                            return
                        tally.pieces += 1
                        yield item
                    case Usage():
                        tally.counted = item.output_tokens or None  # 0 if it does not count
                    case ToolRequest():
                        raise StreamError(sentence="The model asked for a tool, and none was offered.")
                    case _:  # a model may violate the protocol
                        raise StreamError(sentence="The model's output is not text.")

    async def _in_time(self, step: Callable[[], Awaitable[_T]], deadline: float) -> _T:
        try:
            with trio.move_on_at(deadline):
                await trio.lowlevel.checkpoint()  # so that the deadline also applies to a model that never waits
                return await step()
        except (StreamError, RateLimitError, TimeoutError):
            raise
        except ModelError as error:
            raise StreamError(str(error)) from error
        except BaseException as error:  # a boundary: every failure of a model becomes the cause of a StreamError
            if not is_failure(error):
                raise
            raise StreamError(sentence="The model failed.") from error
        raise TimeoutError(f"The answer was not complete after {self._stream_timeout:g} seconds.")


class ClientModel:
    """Any `LLMClient` as a model that is always hot. It is never offered tools.

    Of the sampling settings the client gets the temperature and `max_tokens`; it has no others, and they are ignored.
    """

    def __init__(self, client: LLMClient, *, model_id: str, traits: ModelTraits | None = None) -> None:
        self._client = client
        self._model_id = model_id
        self._traits = traits or ModelTraits()

    @property
    def model_id(self) -> str:
        """Its name in the cast."""
        return self._model_id

    @property
    def traits(self) -> ModelTraits:
        """The traits given by the host. A client that sends prompts to another machine must be `remote`."""
        return self._traits

    @property
    def warm_state(self) -> WarmState:
        """Always hot."""
        return WarmState.HOT

    async def load(self, report: Callable[[float], None]) -> None:
        """Does nothing."""
        await trio.lowlevel.checkpoint()
        report(1.0)

    async def unload(self) -> None:
        """Does nothing."""
        await trio.lowlevel.checkpoint()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Generate one answer. A client stream with `aclose` is closed with it."""
        given = prompt.sampling.temperature
        temperature = DEFAULT_TEMPERATURE if given is None else given
        stream = self._client.generate_stream(prompt.system, prompt.user, temperature, prompt.max_tokens)
        try:
            async for piece in stream:
                yield piece
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()


@define
class _Tally:
    pieces: int = 0
    counted: int | None = None

    @property
    def tokens_used(self) -> int:
        return self.pieces if self.counted is None else self.counted


def _ignore_progress(progress: float) -> None:
    del progress
