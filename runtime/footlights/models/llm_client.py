"""LLM client: a model as a chat client sees it, with a system and a user text in, and text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from footlights.models.model import DEFAULT_MAX_TOKENS
from footlights.models.sampling import DEFAULT_TEMPERATURE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@frozen
class LLMResponse:
    """A complete answer."""

    text: str
    """The whole text."""
    tokens_used: int
    """Output tokens, including reasoning, as the model counts; the number of pieces if it does not count."""
    model_id: str
    """The id of the model."""


class LLMClient(Protocol):
    """Interface of a model for a chat. A structural protocol: implementations need not inherit from it."""

    async def generate(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> LLMResponse:
        """The complete answer. Raises the same exceptions as `generate_stream`."""
        ...

    def generate_stream(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> AsyncIterator[str]:
        """The answer as it arrives: `async for piece in client.generate_stream(...)`.

        The joined pieces are the text that `generate` returns.

        Raises `StreamError` when the stream breaks off; `RateLimitError`, with a `retry_after` if the model gives one;
        and the built-in `TimeoutError` when the answer takes too long.
        """
        ...
