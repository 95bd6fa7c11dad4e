"""Chat format: prompts and tool calls in the JSON of chat completions, which most model servers share. Pure.

Tool calls are read only from the structured channel, never from text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import define

from footlights.errors import ModelError, StreamError
from footlights.models.model import ToolRequest
from footlights.wire.values import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.events import JsonValue
    from footlights.models.model import Prompt, ToolExchange, ToolRound

JsonObject: TypeAlias = "dict[str, Any]"

MAX_CALLS = 64
"""In one round. Far more than a turn accepts; protects the memory from a broken server."""
MAX_ARGUMENT_CHARS = 256_000
"""Of all calls of one round."""

_NO_OBJECT = "The arguments are not a JSON object."


def messages(prompt: Prompt) -> list[JsonObject]:
    """The prompt as chat messages: the same prompt always gives the same messages."""
    told: list[JsonObject] = []
    if prompt.system:
        told.append({"role": "system", "content": prompt.system})
    told.append({"role": "user", "content": prompt.user})
    for number, tool_round in enumerate(prompt.rounds, 1):
        told += _round(tool_round, number)
    return told


def tools(prompt: Prompt) -> list[JsonObject]:
    """The offered tools."""
    return [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": dict(offer.parameters),
            },
        }
        for offer in prompt.tools
    ]


def as_count(value: object) -> int | None:
    """A number of tokens that a model reported, or None if it is not a valid one."""
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INTEGER
    return cast("int", value) if is_one else None


class ToolCallAssembler:
    """Joins the streamed fragments of tool calls.

    Servers differ in the fields of a fragment. The index decides to which call it belongs; without one, a fragment with
    a name begins a call and any other continues the last. A second id at the same index is a new call.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._latest_at: dict[int, _Call] = {}
        self._argument_chars = 0

    def feed(self, fragments: object) -> None:
        """Take the `tool_calls` of one chunk. Raises `ModelError` if they are malformed or too many."""
        if not isinstance(fragments, list):
            raise ModelError(sentence="The model's tool calls are not a list.")
        for fragment in cast("list[object]", fragments):
            call = _as_object(fragment)
            self._add(call, _as_object(call.get("function")))

    def finish(self, *, cut: bool = False) -> tuple[ToolRequest, ...]:
        """The complete requests, in the order in which they began.

        Arguments that are not a JSON object become a `problem`, so that no tool runs with other arguments than the
        model meant. If the model was `cut` off, they may be incomplete: `StreamError`.
        """
        return tuple(_request(call, cut=cut) for call in self._calls)

    def _add(self, fragment: JsonObject, function: JsonObject) -> None:
        call = self._call_of(fragment.get("index"), fragment.get("id"), function.get("name"))
        arguments = _as_json(function.get("arguments"))
        self._argument_chars += len(arguments)
        if self._argument_chars > MAX_ARGUMENT_CHARS:
            raise ModelError(sentence="The model's tool calls are too long.")
        call.arguments.append(arguments)

    def _call_of(self, index: object, call_id: object, name: object) -> _Call:
        if isinstance(index, int):
            known = self._latest_at.get(index)
        else:
            known = self._calls[-1] if self._calls and not name else None
        if known is not None and not (call_id and known.call_id and call_id != known.call_id):
            return known
        if not isinstance(name, str) or not name:
            raise ModelError(sentence="The model's tool call has no name.")
        if len(self._calls) == MAX_CALLS:
            raise ModelError(sentence="The model asked for too many tools at once.")
        call = _Call(name, call_id if isinstance(call_id, str) else "", [])
        self._calls.append(call)
        if isinstance(index, int):
            self._latest_at[index] = call
        return call


@define
class _Call:
    name: str
    call_id: str
    arguments: list[str]


def _as_object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise ModelError(sentence="The model's tool call has no function.")
    return cast("JsonObject", value)


def _as_json(arguments: object) -> str:
    """The arguments as JSON text. Some servers send the object itself instead."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    try:
        return json.dumps(arguments)
    except RecursionError:
        raise ModelError(sentence="The model's tool calls are nested too deeply.") from None


def _request(call: _Call, *, cut: bool) -> ToolRequest:
    text = "".join(call.arguments)
    arguments = _json_object(text)
    if arguments is not None:
        return ToolRequest(call.name, arguments)
    if cut:
        raise StreamError(sentence="The model was cut off in the middle of a tool call.")
    return ToolRequest(call.name, {}, _NO_OBJECT if text else None)


def _json_object(text: str) -> Mapping[str, JsonValue] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, dict) else None


def _round(tool_round: ToolRound, number: int) -> Iterator[JsonObject]:
    """The model's output of a round, then the result of each call. The ids only connect the two."""
    called = [(f"call_{number}_{place}", each) for place, each in enumerate(tool_round.exchanges, 1)]
    yield {
        "role": "assistant",
        "content": tool_round.said or None,
        "tool_calls": [_call(call_id, exchange.request) for call_id, exchange in called],
    }
    for call_id, exchange in called:
        yield {"role": "tool", "tool_call_id": call_id, "content": _answer(exchange)}


def _call(call_id: str, request: ToolRequest) -> JsonObject:
    arguments = json.dumps(dict(request.arguments), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": request.tool_name, "arguments": arguments}}


def _answer(exchange: ToolExchange) -> str:
    answer = exchange.value if exchange.error is None else {"error": exchange.error}
    return json.dumps(answer, ensure_ascii=False)
