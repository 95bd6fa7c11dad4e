"""Small innkeeper: a tiny local model that talks, beside the script that acts.

- A line that the script's patterns understand is the script's: it calls its tools at once.
- For any other line the model chooses a tool by labels, or talks. What it chose and what spends is only offered.
- What a tool answered is worded by the script, never by the model, which gets it wrong.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from attrs import evolve

from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.innkeeper import innkeeper
from footlights_actors.demo.tavern.label_choice import LABELS, call_for, choose, text_for
from footlights_actors.demo.tavern.offers import OFFERED, offering
from footlights_actors.models.scripted import Call, Say, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from footlights.cast import Cast
    from footlights.events import WarmState
    from footlights.models.model import ModelTraits, Output, Prompt, ToolExchange
    from footlights_actors.models.local.model import LocalModel
    from footlights_actors.models.scripted import Line

LINES = {
    "check_rooms": "Which rooms are free?",
    "recall_rumour": "Have you heard any rumours?",
    "sell_lantern": "I want to buy the lantern.",
}
"""For each tool that a label may choose and that is not only offered, a line for which the script calls it."""


class SmallInnkeeper:
    """The innkeeper of the tavern with a tiny model, as one model. `pace` is that of the script's words."""

    def __init__(self, model: LocalModel, *, pace: float = 0.0) -> None:
        self._model = model
        self._pace = pace

    @property
    def model_id(self) -> str:
        """That of the local model."""
        return self._model.model_id

    @property
    def traits(self) -> ModelTraits:
        """Those of the local model."""
        return self._model.traits

    @property
    def warm_state(self) -> WarmState:
        """That of the local model."""
        return self._model.warm_state

    async def load(self, report: Callable[[float], None]) -> None:
        """Load the local model, and let it read the examples of the labels once."""
        await self._model.load(report)
        await self._model.log_probs(text_for(""), LABELS)

    async def unload(self) -> None:
        """Unload the local model."""
        await self._model.unload()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Generate one round: the script's lines, a tool that the model chose, or its talk."""
        lines = await self._lines(prompt)
        speaker = self._model if lines is None else ScriptedModel(lambda _: lines, pace=self._pace)
        async with aclosing(speaker.generate(evolve(prompt, tools=()))) as output:
            async for item in output:
                yield item

    async def _lines(self, prompt: Prompt) -> Sequence[Line] | None:
        """What is scripted of this round; None if the model talks."""
        if not prompt.tools:
            return None
        first = list(innkeeper(evolve(prompt, rounds=())))
        is_scripted = any(isinstance(line, Call) for line in first)
        if prompt.exchanges:
            return list(innkeeper(prompt)) if is_scripted else _worded(prompt)
        if is_scripted:
            return first
        label = choose(prompt.user, await self._model.log_probs(text_for(prompt.user), LABELS))
        return None if label is None else [_call(label, prompt.user)]


def small_tavern_cast(model: LocalModel, *, pace: float = 0.03, tool_seconds: float = 0.4) -> Cast:
    """The tavern whose innkeeper is this tiny model. What the model chooses and spends waits for the player's word."""
    cast = tavern_cast(model=SmallInnkeeper(model, pace=pace), pace=pace, tool_seconds=tool_seconds)
    offers = {name: offering(cast.tools[tool]) for tool, name in OFFERED.items()}
    keeper = cast.personas["innkeeper"]
    permitted = (keeper.tools or frozenset()) | offers.keys()
    return evolve(
        cast,
        tools={**cast.tools, **offers},
        personas={**cast.personas, "innkeeper": evolve(keeper, tools=permitted)},
    )


def _call(label: str, line: str) -> Call:
    tool_name, arguments = call_for(label, line)
    return Call(OFFERED.get(tool_name, tool_name), arguments)


def _worded(prompt: Prompt) -> list[Line]:
    """The script's words for the result of a tool that the model chose."""
    exchange = prompt.exchanges[-1]
    if exchange.error is not None:
        return [Say(f"Ah. {exchange.error}")]
    if exchange.request.tool_name in OFFERED.values():
        return [Say(_offer(exchange))]
    return list(innkeeper(evolve(prompt, user=LINES[exchange.request.tool_name])))


def _offer(exchange: ToolExchange) -> str:
    match exchange.value:
        case {"room": str(what), "price": int(price)} | {"dish": str(what), "price": int(price)}:
            return f"If I hear you right, that is {what}, for {price}. I will have your word on it first."
        case _:
            return "If I hear you right, it can be had. I will have your word on it first."
