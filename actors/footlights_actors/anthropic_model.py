"""Models behind Anthropic's Messages.

    AnthropicModel("claude-haiku-5-5")

Only text blocks are ever shown; thinking blocks are not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from footlights.errors import StreamError
from footlights.models import Usage
from footlights_actors.chat_format import ToolCallAssembler, as_count
from footlights_actors.http_stream import HttpStream, server
from footlights_actors.reasoning import ThoughtFilter
from footlights_actors.remote_model import (
    DEFAULT_SILENCE_TIMEOUT,
    Interface,
    JsonObject,
    RemoteModel,
    as_object,
    as_text,
    read_object,
    reported,
    traits_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.models import Output, Prompt, ToolExchange, ToolRound

API_VERSION = "2026-10-21"
API_VERSION_WITH_TEMPERATURE = "2023-06-01"

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
_REFUSAL = "refusal"


class AnthropicModel(RemoteModel):
    """A model behind Anthropic's Messages, or a server that speaks the same.

    `name` is what the server calls it, and its `model_id` in the cast unless that is given. The key comes from the
    environment variable `key_env`, and is sent to whatever `base_url` names.

    The interface has had no temperature since `2026-10-21`: it is sent only with the `api_version` before that.

    `remote` says whether what it is told leaves this machine. It is taken to, unless `base_url` is a loopback
    address; say so yourself if a local server only passes things on.

    `context_tokens` is what it can be told and say in one round, and `slots` how many rounds at once; without them
    the server has to know.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "https://api.anthropic.com",
        model_id: str | None = None,
        key_env: str | None = "ANTHROPIC_API_KEY",
        api_version: str = API_VERSION,
        remote: bool | None = None,
        context_tokens: int | None = None,
        slots: int | None = None,
        silence_timeout: float = DEFAULT_SILENCE_TIMEOUT,
    ) -> None:
        def body(prompt: Prompt) -> JsonObject:
            has_temperature = api_version == API_VERSION_WITH_TEMPERATURE
            return {
                "model": name,
                "messages": messages(prompt),
                "max_tokens": prompt.max_tokens,
                "stream": True,
                **({"system": prompt.system} if prompt.system else {}),
                **({"temperature": prompt.temperature} if has_temperature else {}),
                **({"tools": tools(prompt)} if prompt.tools else {}),
            }

        def headers(key: str | None) -> dict[str, str]:
            return {"anthropic-version": api_version, **({"x-api-key": key} if key else {})}

        at = server(base_url, key_env)
        super().__init__(
            Interface(body, _Answer),
            HttpStream(at, path="/v1/messages", headers=headers, silence_timeout=silence_timeout),
            model_id=model_id or name,
            traits=traits_of(at, remote=remote, context_tokens=context_tokens, slots=slots),
        )


def messages(prompt: Prompt) -> list[JsonObject]:
    """All that a prompt says but its system text: the same prompt always gives the same messages."""
    told: list[JsonObject] = [{"role": "user", "content": prompt.user}]
    for number, tool_round in enumerate(prompt.rounds, 1):
        told += _round(tool_round, number)
    return told


def tools(prompt: Prompt) -> list[JsonObject]:
    """The tools it may ask for."""
    return [
        {"name": offer.name, "description": offer.description, "input_schema": dict(offer.parameters)}
        for offer in prompt.tools
    ]


def _round(tool_round: ToolRound, number: int) -> Iterator[JsonObject]:
    """What it said and asked for, then the answers to all of it. The ids only tie the two together."""
    said: list[JsonObject] = [{"type": "text", "text": tool_round.said}] if tool_round.said.strip() else []
    called = [(f"call_{number}_{place}", each) for place, each in enumerate(tool_round.exchanges, 1)]
    asked: list[JsonObject] = [
        {"type": "tool_use", "id": call_id, "name": each.request.tool_name, "input": dict(each.request.arguments)}
        for call_id, each in called
    ]
    yield {"role": "assistant", "content": said + asked}
    yield {"role": "user", "content": [_result(call_id, exchange) for call_id, exchange in called]}


def _result(call_id: str, exchange: ToolExchange) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    if exchange.error is not None:
        return {**result, "content": exchange.error, "is_error": True}
    return {**result, "content": json.dumps(exchange.value, ensure_ascii=False)}


class _Answer:
    """Whole once `message_stop` has come. Events and blocks of kinds that it does not know are passed over."""

    def __init__(self) -> None:
        self.pieces = 0
        self.is_whole = False
        self._thoughts = ThoughtFilter()
        self._calls = ToolCallAssembler()
        self._reason = ""
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None

    def take(self, data: str) -> str | None:
        event = read_object(data)
        match event.get("type"):
            case "message_start":
                self._count(as_object(event.get("message")).get("usage"))
            case "content_block_start":
                return self._begin_block(event.get("index"), as_object(event.get("content_block")))
            case "content_block_delta":
                return self._delta(event.get("index"), as_object(event.get("delta")))
            case "message_delta":
                self._reason = as_text(as_object(event.get("delta")).get("stop_reason")) or self._reason
                self._count(event.get("usage"))
            case "message_stop":
                self.is_whole = True
            case "error":
                raise reported(event.get("error"))
            case _:
                pass
        return None

    def finish(self, *, stopped: bool) -> Iterator[Output]:
        if not (stopped or self.is_whole):
            raise StreamError("The model's answer has no end.")
        if self._reason == _REFUSAL:
            raise StreamError("The model refused to answer.")
        if rest := self._thoughts.finish():
            yield rest
        yield from self._calls.finish(cut=stopped or self._reason in _CUT)
        if stopped:
            yield Usage(self.pieces, self._input_tokens)
        elif self._output_tokens is not None:
            yield Usage(self._output_tokens, self._input_tokens)

    def _begin_block(self, index: object, block: JsonObject) -> str | None:
        if block.get("type") == "tool_use":
            self._calls.feed([{"index": index, "id": block.get("id"), "function": {"name": block.get("name")}}])
        return self._say(block.get("text")) if block.get("type") == "text" else ""

    def _delta(self, index: object, delta: JsonObject) -> str | None:
        match delta.get("type"):
            case "text_delta":
                return self._say(delta.get("text"))
            case "input_json_delta":
                self._calls.feed([{"index": index, "function": {"arguments": as_text(delta.get("partial_json"))}}])
            case "thinking_delta":
                self.pieces += 1
            case _:
                return None
        return ""

    def _say(self, value: object) -> str | None:
        text = as_text(value)
        self.pieces += bool(text)
        return self._thoughts.feed(text) if text else None

    def _count(self, value: object) -> None:
        """Counts are totals so far; the input is in three parts if some of it was cached."""
        usage = as_object(value or {})
        parts = [as_count(usage.get(f"{kind}input_tokens")) for kind in ("", "cache_creation_", "cache_read_")]
        if parts[0] is not None:
            self._input_tokens = as_count(sum(part or 0 for part in parts))
        output_tokens = as_count(usage.get("output_tokens"))
        if output_tokens is not None:
            self._output_tokens = output_tokens
