"""A model as a chat client sees it: a system text and a user text in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from footlights.models.model import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@frozen
class LLMResponse:
    """A whole answer."""

    text: str
    """All that it said."""
    tokens_used: int
    """What it said and thought, as the model counts; the pieces it came in, if the model does not count."""
    model_id: str
    """Who said it."""


class LLMClient(Protocol):
    """What a chat needs of a model. Nothing has to be inherited."""

    async def generate(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> LLMResponse:
        """The whole answer at once. Raises what `generate_stream` raises."""
        ...

    def generate_stream(
        self,
        system: str,
        user: str,
        temperature: float = DEFAULT_TEMPERATURE,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> AsyncIterator[str]:
        """The answer in pieces, as they come: `async for piece in client.generate_stream(...)`.

        Joined, the pieces are the text that `generate` gives, and they come in the order in which they were said.

        Raises `StreamError` when it breaks off, after the pieces that came; `RateLimitError`, with a `retry_after`
        if the model says one; and the built-in `TimeoutError` when the answer takes too long.
        """
        ...
