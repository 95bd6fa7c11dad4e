"""Driver for Anthropic's Messages API, through Anthropic's SDK.

    AnthropicModel("claude-haiku-5-5")

Only text blocks are output; thinking blocks are not. The SDK sends without retries and telemetry, and its log messages
that quote requests or answers are suppressed. Of the environment it gets only the key: `ANTHROPIC_CUSTOM_HEADERS` is
not sent. Its event reader is not used, because it leaves generators to the garbage collector when an answer breaks off
or reports an error.
"""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, cast

from footlights.extras import name_extra

# First, because the extra of this SDK also installs what the other modules need.
try:
    import anthropic
    from anthropic.resources.messages import AsyncMessages
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
except ModuleNotFoundError as missing:
    name_extra(missing)
    raise

from footlights.errors import StreamError
from footlights.models.model import Usage
from footlights.models.sampling import NO_SAMPLING
from footlights_actors.models.chat_format import ToolCallAssembler, as_count
from footlights_actors.models.http_stream import HttpStream, server
from footlights_actors.models.reasoning import ThoughtFilter
from footlights_actors.models.remote import (
    DEFAULT_SILENCE_TIMEOUT,
    Interface,
    JsonObject,
    RemoteModel,
    as_object,
    as_text,
    chosen,
    read_object,
    reported,
    traits_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    import httpx2
    from anthropic.types import MessageParam, TextBlockParam, ToolParam, ToolResultBlockParam, ToolUseBlockParam

    from footlights.models.model import Output, Prompt, ToolExchange, ToolRound
    from footlights.models.sampling import Sampling
    from footlights_actors.models.http_stream import Request, Send, Sender, Server

API_VERSION = "2026-10-21"
API_VERSION_WITH_TEMPERATURE = "2023-06-01"

_READ_BLOCKS = frozenset({"text", "thinking", "tool_use"})
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
_REFUSAL = "refusal"
_SAFE_MESSAGE = "Sending HTTP Request: %s %s"
"""The only log message of the SDK that quotes neither a request nor an answer."""


def _quotes_nothing(record: logging.LogRecord) -> bool:
    return record.msg == _SAFE_MESSAGE


def _filter_logs() -> None:
    """Filter every logger of the SDK, because loggers do not inherit filters."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "anthropic":
            logging.getLogger(name).addFilter(_quotes_nothing)


class AnthropicModel(RemoteModel):
    """A model behind Anthropic's Messages API, or behind a compatible server.

    `name` is the server's name of the model, and by default its `model_id` in the cast. The key is read from the
    environment variable `key_env`, and is sent to `base_url`.

    Of the sampling settings `stop` and `max_tokens` are sent. The API has no temperature and no `top_p` since
    `2026-10-21`: they are sent only with the earlier `api_version`. The others are ignored.

    `remote` states whether prompts leave this machine. By default they do unless `base_url` is a loopback address; set
    it if a local server forwards prompts.

    `context_tokens` is the size of the context window, and `slots` the number of concurrent rounds; by default the
    server enforces both.
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
        sampling: Sampling = NO_SAMPLING,
    ) -> None:
        def request(prompt: Prompt) -> _Request:
            asked: _Request = {
                "model": name,
                "messages": messages(prompt),
                "max_tokens": prompt.max_tokens,
                "stream": True,
            }
            if prompt.system:
                asked["system"] = prompt.system
            if prompt.tools:
                asked["tools"] = tools(prompt)
            if prompt.sampling.stop:
                asked["stop_sequences"] = prompt.sampling.stop
            if api_version == API_VERSION_WITH_TEMPERATURE:
                asked["extra_body"] = chosen(prompt.sampling, "temperature", "top_p")
            return asked

        at = server(base_url, key_env)
        super().__init__(
            Interface(request, _Answer),
            HttpStream(at, _sender(at, api_version), model=name, silence_timeout=silence_timeout),
            model_id=model_id or name,
            traits=traits_of(at, remote=remote, context_tokens=context_tokens, slots=slots, sampling=sampling),
        )


class _Request(MessageCreateParamsStreaming, total=False):
    extra_body: dict[str, object]
    """Fields that the SDK does not declare."""


class _Sdk(anthropic.AsyncAnthropic):
    def drop_custom_headers(self) -> None:
        """Drop `ANTHROPIC_CUSTOM_HEADERS`, which may hold keys or cookies for another server."""
        self._custom_headers = {}


def _sender(at: Server, api_version: str) -> Sender:
    def sender(client: httpx2.AsyncClient) -> Send:
        _filter_logs()
        sdk = _Sdk(
            api_key="",  # each request sets its own; with None the SDK would search the environment
            base_url=at.base_url,
            max_retries=0,
            open_telemetry={"traces": False, "propagation": False},
            http_client=client,
        )
        sdk.drop_custom_headers()
        import_module("anyio._backends._trio")  # otherwise the first request imports it and blocks the event loop
        # `sdk.messages` is the same, but its first access imports for half a second.
        answering = AsyncMessages(sdk).with_streaming_response

        @asynccontextmanager
        async def send(key: str | None, request: Request) -> AsyncGenerator[httpx2.Response, None]:
            asked = cast("_Request", request)
            headers = {"anthropic-version": api_version, "Authorization": f"Bearer {key}" if key else anthropic.omit}
            try:
                async with answering.create(**asked, extra_headers=headers) as answer:
                    yield answer.http_response
                    return
            except anthropic.APIConnectionError as error:  # it holds the request
                failure = error.__cause__ or error
            raise failure

        return send

    return sender


def messages(prompt: Prompt) -> list[MessageParam]:
    """The prompt without its system text as messages: the same prompt always gives the same messages."""
    told: list[MessageParam] = [{"role": "user", "content": prompt.user}]
    for number, tool_round in enumerate(prompt.rounds, 1):
        told += _round(tool_round, number)
    return told


def tools(prompt: Prompt) -> list[ToolParam]:
    """The offered tools."""
    return [
        {"name": offer.name, "description": offer.description, "input_schema": dict(offer.parameters)}
        for offer in prompt.tools
    ]


def _round(tool_round: ToolRound, number: int) -> Iterator[MessageParam]:
    """The model's output of a round, then the tool results. The ids only connect the two."""
    said: list[TextBlockParam] = [{"type": "text", "text": tool_round.said}] if tool_round.said.strip() else []
    called = [(f"call_{number}_{place}", each) for place, each in enumerate(tool_round.exchanges, 1)]
    asked: list[ToolUseBlockParam] = [
        {"type": "tool_use", "id": call_id, "name": each.request.tool_name, "input": dict(each.request.arguments)}
        for call_id, each in called
    ]
    yield {"role": "assistant", "content": [*said, *asked]}
    yield {"role": "user", "content": [_result(call_id, exchange) for call_id, exchange in called]}


def _result(call_id: str, exchange: ToolExchange) -> ToolResultBlockParam:
    if exchange.error is not None:
        return {"type": "tool_result", "tool_use_id": call_id, "content": exchange.error, "is_error": True}
    told = json.dumps(exchange.value, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": call_id, "content": told}


def _index_of(event: JsonObject) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


class _Answer:
    """Reads an answer, which is complete at `message_stop`. Unknown events and blocks are ignored.

    Calls of the server's own tools are such blocks: the server runs them itself.
    """

    def __init__(self) -> None:
        self.pieces = 0
        self.is_whole = False
        self._thoughts = ThoughtFilter()
        self._calls = ToolCallAssembler()
        self._blocks = 0
        self._ignored: set[int | None] = set()
        self._reason = ""
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None

    def take(self, data: str) -> str | None:
        event = read_object(data)
        match event.get("type"):
            case "message_start":
                self._count(as_object(event.get("message")).get("usage"))
            case "content_block_start":
                return self._begin_block(_index_of(event), as_object(event.get("content_block")))
            case "content_block_delta":
                return self._delta(_index_of(event), as_object(event.get("delta")))
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
            raise StreamError(sentence="The model's answer has no end.")
        if self._reason == _REFUSAL:
            raise StreamError(sentence="The model refused to answer.")
        if rest := self._thoughts.finish():
            yield rest
        cut = stopped or self._reason in _CUT
        yield from self._calls.finish(cut=cut)
        counted = self.pieces if stopped else self._output_tokens
        if counted is not None or cut:
            yield Usage(counted or 0, self._input_tokens, cut)

    def _begin_block(self, index: int | None, block: JsonObject) -> str | None:
        kind = as_text(block.get("type"))
        if kind in _READ_BLOCKS:
            self._ignored.discard(index)
        else:
            self._ignored.add(index)
        if kind == "tool_use":
            self._blocks += 1  # each block is one call, even if the server repeats an id
            given = block.get("input")
            call = {
                "name": block.get("name"),
                "arguments": None if given == {} else given,
            }  # {}: the input follows in pieces
            self._calls.feed([{"index": index, "id": f"block {self._blocks}", "function": call}])
        return self._say(block.get("text")) if kind == "text" else ""

    def _delta(self, index: int | None, delta: JsonObject) -> str | None:
        if index in self._ignored:
            return ""
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
        """Take over the counts, which are totals so far; the input has three parts if some of it was cached."""
        usage = as_object(value or {})
        parts = [as_count(usage.get(f"{kind}input_tokens")) for kind in ("", "cache_creation_", "cache_read_")]
        if parts[0] is not None:
            self._input_tokens = as_count(sum(part or 0 for part in parts))
        output_tokens = as_count(usage.get("output_tokens"))
        if output_tokens is not None:
            self._output_tokens = output_tokens
