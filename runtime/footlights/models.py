"""What a turn needs of a model: to become ready, visibly, and to generate, interruptibly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from footlights.events import JsonValue, WarmState


@frozen
class ToolOffer:
    """A tool that a model may ask for."""

    name: str
    """What to call it by."""
    description: str
    """What it does, in the words of its author."""


@frozen
class ToolRequest:
    """A model asks for a tool, through its structured channel and never in its prose."""

    tool_name: str
    """Which tool it wants."""
    arguments: Mapping[str, JsonValue]
    """For the tool to check: models make mistakes."""


@frozen
class ToolExchange:
    """A tool that was asked for in this turn, and what came of it."""

    request: ToolRequest
    """What was asked."""
    value: JsonValue
    """What came back; None if it failed."""
    error: str | None = None
    """Why it failed, in words for the model."""


@frozen
class Prompt:
    """All that a model is told. There is no earlier chat in it."""

    user: str
    """What the player said."""
    exchanges: tuple[ToolExchange, ...] = ()
    """The tools that it asked for so far in this turn."""
    tools: tuple[ToolOffer, ...] = ()
    """What it may ask for; nothing in chat mode."""


class Model(Protocol):
    """What a turn needs of a model. Nothing has to be inherited."""

    @property
    def model_id(self) -> str:
        """Its name in the cast: 1 to 128 visible ASCII characters."""
        ...

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
