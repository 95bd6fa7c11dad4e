"""OpenAI's chat completions on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights_actors.models.openai import OpenAIModel
from tests.kit.models.wire_server import event

if TYPE_CHECKING:
    from tests.kit.models.wire_server import WireServer

DONE = event("[DONE]")


def model_at(server: WireServer, **options: Any) -> OpenAIModel:
    return OpenAIModel("bard", base_url=f"{server.url}/v1", **options)


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> str:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "bard"}
    return event({**head, "choices": choices, "usage": None, **more})


def said(*pieces: str) -> list[str]:
    return [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces)]


def call(index: int, arguments: str, **more: Any) -> str:
    name = {"name": more.pop("name")} if "name" in more else {}
    return chunk({"tool_calls": [{"index": index, **more, "function": {**name, "arguments": arguments}}]})


def usage(prompt_tokens: int, completion_tokens: int) -> str:
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return chunk(None, usage={**counts, "total_tokens": prompt_tokens + completion_tokens})


END = chunk({}, "stop")
WHOLE = (*said("A", " room?"), END, usage(7, 3), DONE)
