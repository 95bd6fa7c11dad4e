"""Anthropic's Messages on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from footlights_actors.models.anthropic import AnthropicModel
from tests.kit.models import wire_server

if TYPE_CHECKING:
    from tests.kit.models.wire_server import WireServer


def model_at(server: WireServer, **options: Any) -> AnthropicModel:
    return AnthropicModel("bard", base_url=server.url, **options)


def event(kind: str, **more: Any) -> str:
    return wire_server.event({"type": kind, **more}, kind)


def block(index: int, kind: str, *deltas: dict[str, Any], **start: Any) -> list[str]:
    return [
        event("content_block_start", index=index, content_block={"type": kind, **start}),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(*pieces: str, index: int = 0) -> list[str]:
    return block(index, "text", *({"type": "text_delta", "text": piece} for piece in pieces), text="")


def call(index: int, name: str, *pieces: str) -> list[str]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, "tool_use", *deltas, id=f"toolu_{index}", name=name, input={})


def end(reason: str = "end_turn", output_tokens: int = 3) -> list[str]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [event("message_delta", delta=delta, usage={"output_tokens": output_tokens}), event("message_stop")]


START = event(
    "message_start",
    message={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "bard",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1},
    },
)
PING = event("ping")
WHOLE = (START, PING, *text("A", " room?"), *end())
