"""What a turn needs of a model: to become ready, visibly, and to generate, interruptibly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from footlights.events import JsonValue, WarmState


@frozen
class ToolOffer:
    name: str
    description: str


@frozen
class ToolRequest:
    """A model asks for a tool, through its structured channel and never in its prose."""

    tool_name: str
    arguments: Mapping[str, JsonValue]


@frozen
class ToolExchange:
    """A tool that ran in this turn: what was asked, and what came back."""

    request: ToolRequest
    value: JsonValue
    error: str | None = None


@frozen
class Prompt:
    """All that a model is told. There is no earlier chat in it."""

    user: str
    exchanges: tuple[ToolExchange, ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    """What it may ask for; nothing in chat mode."""


class Model(Protocol):
    @property
    def model_id(self) -> str: ...

    @property
    def warm_state(self) -> WarmState:
        """How ready it is now."""
        ...

    async def load(self, report: Callable[[float], None]) -> None:
        """Become hot. `report` takes the progress, 0 to 1. Raises `ModelError` when it cannot."""
        ...

    def generate(self, prompt: Prompt) -> AsyncGenerator[str | ToolRequest, None]:
        """One round: text as it comes, and the tools it wants. Closed as soon as the turn is interrupted."""
        ...
