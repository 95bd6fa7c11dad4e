"""What a turn needs of a model: to become ready, visibly, and to generate, interruptibly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import Factory, frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from footlights.events import JsonValue, WarmState

DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 4_000


@frozen
class ToolOffer:
    """A tool that a model may ask for."""

    name: str
    """What to call it by."""
    description: str
    """What it does, in the words of its author."""
    parameters: Mapping[str, JsonValue] = Factory(lambda: {"type": "object"})
    """What it takes: a JSON Schema of an object."""


@frozen
class ToolRequest:
    """A model asks for a tool, through its structured channel and never in its prose."""

    tool_name: str
    """Which tool it wants."""
    arguments: Mapping[str, JsonValue]
    """For the tool to check: models make mistakes."""
    problem: str | None = None
    """Why its arguments cannot even be looked at, in words for the model; then there are none."""


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
class ToolRound:
    """What a model said before it asked for tools, which ones, and what came back."""

    said: str
    """Its own words, in this round only."""
    exchanges: tuple[ToolExchange, ...]
    """In the order in which it asked."""


@frozen
class Prompt:
    """All that a model is told. There is no earlier chat in it."""

    user: str
    """What the player said."""
    system: str = ""
    """Who it is and what it may know: the persona and the facts that the host gives it."""
    rounds: tuple[ToolRound, ...] = ()
    """What it said and asked for so far in this turn."""
    tools: tuple[ToolOffer, ...] = ()
    """What it may ask for; nothing in chat mode."""
    temperature: float = DEFAULT_TEMPERATURE
    """How freely it picks its words; 0 is not at all."""
    max_tokens: int = DEFAULT_MAX_TOKENS
    """How much it may say in this round. It says no more, and is not asked to be brief."""

    @property
    def exchanges(self) -> tuple[ToolExchange, ...]:
        """The tools that it asked for so far in this turn."""
        return tuple(exchange for each in self.rounds for exchange in each.exchanges)


@frozen
class Usage:
    """What a round cost, as the model itself counts. It comes once, after everything else."""

    output_tokens: int
    """What it said, and thought."""
    input_tokens: int | None = None
    """What it was told, if it says."""


@frozen(kw_only=True)
class ModelTraits:
    """What a stage must know of a model before it uses it."""

    remote: bool = False
    """Whether what it is told leaves this machine. It is told nothing of a session that has not agreed."""
    slots: int | None = None
    """How many rounds it can generate at once; None if it does not matter."""
    memory_bytes: int = 0
    """What it takes while it is loaded."""
    context_tokens: int | None = None
    """How much it can be told and say in one round; None if it does not matter."""


Output: TypeAlias = str | ToolRequest | Usage
"""What a model gives: text as it comes, the tools it wants, and at the end what it cost if it knows."""


class Model(Protocol):
    """What a turn needs of a model. Nothing has to be inherited."""

    @property
    def model_id(self) -> str:
        """Its name in the cast: 1 to 128 visible ASCII characters."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """What it needs and where it runs. They never change."""
        ...

    @property
    def warm_state(self) -> WarmState:
        """How ready it is now."""
        ...

    async def load(self, report: Callable[[float], None]) -> None:
        """Become hot. `report` takes the progress, 0 to 1. Raises `ModelError` when it cannot."""
        ...

    async def unload(self) -> None:
        """Give back what it holds. It is asked only while nobody uses it, and may be loaded again."""
        ...

    def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """One round. Closed as soon as the turn is interrupted: then the work behind it ends too.

        An empty text is a sign of life, from a model that works and has nothing to show: it is not said.
        """
        ...
