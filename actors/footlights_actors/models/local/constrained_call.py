"""Constrained tool call: the model's whole answer is constrained to the JSON Schema of a call. Pure.

For models that were not trained to call tools. The answer is the call, so nothing has to be found in text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from attrs import evolve

from footlights.errors import ModelError, StreamError
from footlights.models.model import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue
    from footlights.models.model import Prompt
    from footlights_actors.models.chat_format import JsonObject


def call_schema(prompt: Prompt) -> JsonObject:
    """The JSON Schema of a call of one of the prompt's tools."""
    calls: list[JsonObject] = [
        {
            "type": "object",
            "properties": {"name": {"const": offer.name}, "arguments": dict(offer.parameters)},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for offer in prompt.tools
    ]
    return {"anyOf": calls}


def with_tools_told(prompt: Prompt) -> Prompt:
    """The prompt with its tools described in the system text, for a model that would not see them otherwise."""
    tools = [
        json.dumps(
            {"name": offer.name, "description": offer.description, "arguments": dict(offer.parameters)},
            ensure_ascii=False,
        )
        for offer in prompt.tools
    ]
    told = "\n".join(["Answer with the name and the arguments of one of these tools:", *tools])
    return evolve(prompt, system=f"{prompt.system}\n\n{told}".lstrip(), tools=())


def read_call(answer: str, *, cut: bool) -> ToolRequest:
    """The call in the answer. Raises `StreamError` if it was `cut` off, `ModelError` if it is not a call."""
    try:
        call = json.loads(answer)
    except (ValueError, RecursionError):  # not kept as a cause, because it holds the whole answer
        call = None
    match call:
        case {"name": str(name), "arguments": dict()}:
            return ToolRequest(name, cast("Mapping[str, JsonValue]", call["arguments"]))
        case _ if cut:
            raise StreamError(sentence="The model was cut off in the middle of a tool call.")
        case _:
            raise ModelError(sentence="The model's answer is not the required tool call.")
