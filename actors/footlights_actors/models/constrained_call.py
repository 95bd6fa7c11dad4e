"""A tool call that a model cannot get wrong: its whole answer is held to a JSON Schema while it is written.

For models that were never taught to call tools. What they may answer is the schema of one call, so there is nothing
to find in prose: the answer is the call. Pure.
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
    """What a call to one of the prompt's tools looks like."""
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
    """The prompt with its tools described in words, for a model that would not see them otherwise."""
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
    """The call that the answer is. Raises `StreamError` if it was `cut` off, `ModelError` if it is no call at all."""
    try:
        call = json.loads(answer)
    except (ValueError, RecursionError):  # not as a cause: it holds the whole answer
        call = None
    match call:
        case {"name": str(name), "arguments": dict()}:
            return ToolRequest(name, cast("Mapping[str, JsonValue]", call["arguments"]))
        case _ if cut:
            raise StreamError("The model was cut off in the middle of a tool call.")
        case _:
            raise ModelError("The model's answer is not the tool call that it had to be.")
