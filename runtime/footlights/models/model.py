"""Model: the protocol that drivers implement, and the values that it exchanges with a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import Factory, frozen

from footlights.models.sampling import DEFAULT_SAMPLING, NO_SAMPLING, Sampling

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from footlights.events import JsonValue, WarmState

DEFAULT_MAX_TOKENS = 4_000


@frozen
class ToolOffer:
    """A tool that is offered to a model."""

    name: str
    """The tool's name."""
    description: str
    """The tool's description."""
    parameters: Mapping[str, JsonValue] = Factory(lambda: {"type": "object"})
    """The tool's parameters: a JSON Schema of an object."""


@frozen
class ToolRequest:
    """A model's request to call a tool. It comes through the structured channel, never from the text."""

    tool_name: str
    """The name of the tool."""
    arguments: Mapping[str, JsonValue]
    """The arguments, not yet validated."""
    problem: str | None = None
    """The reason, worded for the model, why the arguments could not be parsed; then `arguments` is empty."""


@frozen
class ToolExchange:
    """A tool call of this turn, with its result."""

    request: ToolRequest
    """The request."""
    value: JsonValue
    """The returned value; None if the call failed."""
    error: str | None = None
    """The reason of a failure, worded for the model."""


@frozen
class ToolRound:
    """One round of a turn: the model's text, the tools that it requested, and their results."""

    said: str
    """The model's text in this round."""
    exchanges: tuple[ToolExchange, ...]
    """In the order of the requests."""


@frozen
class Prompt:
    """The whole input of a model. It contains no earlier chat."""

    user: str
    """The player's input."""
    system: str = ""
    """The persona, and the facts that the host provides."""
    rounds: tuple[ToolRound, ...] = ()
    """The earlier rounds of this turn."""
    tools: tuple[ToolOffer, ...] = ()
    """The offered tools; empty in chat mode."""
    sampling: Sampling = DEFAULT_SAMPLING
    """The settings of the turn, its persona and its model, merged. A driver ignores those that it cannot do."""
    max_tokens: int = DEFAULT_MAX_TOKENS
    """Maximum output tokens of this round. The output is cut there; the model is not asked to be brief."""

    @property
    def exchanges(self) -> tuple[ToolExchange, ...]:
        """The tool calls of this turn so far."""
        return tuple(exchange for each in self.rounds for exchange in each.exchanges)


@frozen
class Usage:
    """Token counts of a round, as the model reports them. Comes once, as the last output."""

    output_tokens: int
    """Generated tokens, including reasoning."""
    input_tokens: int | None = None
    """Tokens of the prompt, if the model reports them."""
    cut: bool = False
    """Whether the answer was cut at its limit of tokens."""


@frozen(kw_only=True)
class ModelTraits:
    """Properties of a model that the stage needs before it uses the model."""

    remote: bool = False
    """Whether prompts leave this machine. Text of a session without consent is never sent to a remote model."""
    slots: int | None = None
    """Rounds that it can generate at the same time; None for no limit."""
    memory_bytes: int = 0
    """Memory that it takes while it is loaded."""
    context_tokens: int | None = None
    """Size of its context window, prompt and output together; None for no limit."""
    sampling: Sampling = NO_SAMPLING
    """Its settings where neither the turn nor its persona has one."""


Output: TypeAlias = str | ToolRequest | Usage
"""Output of a model: text as it arrives, tool requests, and at the end the usage if the model reports it."""


class Model(Protocol):
    """Interface of a model driver. A structural protocol: implementations need not inherit from it."""

    @property
    def model_id(self) -> str:
        """Its name in the cast: 1 to 128 visible ASCII characters."""
        ...

    @property
    def traits(self) -> ModelTraits:
        """Its constant properties."""
        ...

    @property
    def warm_state(self) -> WarmState:
        """Its current readiness."""
        ...

    async def load(self, report: Callable[[float], None]) -> None:
        """Become hot. `report` takes the progress, 0 to 1. Raises `ModelError` on failure."""
        ...

    async def unload(self) -> None:
        """Free its resources. Called only while no turn uses it; it may be loaded again later."""
        ...

    def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Generate one round. The generator is closed when the turn is interrupted, and must then stop its work.

        An empty string is a keepalive of a model that works without output; it is not part of the text.
        """
        ...
