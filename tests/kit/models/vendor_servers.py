"""Model servers on loopback with the lists of models that Ollama, LM Studio and llama.cpp really send."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from attrs import Factory, define

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping


def tag(name: str, size: str, family: str = "qwen3", **more: Any) -> dict[str, Any]:
    """A model in Ollama's `/api/tags`."""
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": size,
        "quantization_level": "Q4_K_M",
    }
    stamp = "2026-05-04T17:37:44.706015396-07:00"
    return {"name": name, "model": name, "modified_at": stamp, "size": 5_225_388_164, "digest": "5" * 64} | {
        "details": details,
        **more,
    }


OLLAMA_TAGS = {
    "models": [
        tag("nomic-embed-text:latest", "137M", "nomic-bert"),
        tag("qwen3:8b", "8.2B"),
        tag("llama3:70b-text", "70.6B", "llama"),
        tag(
            "gpt-oss:120b-cloud", "116.8B", "gptoss", remote_model="gpt-oss:120b", remote_host="https://ollama.com:443"
        ),
        tag("llama3.2:latest", "3.2B", "llama"),
    ]
}
_STUDIO = {"object": "model", "publisher": "lmstudio-community", "compatibility_type": "gguf", "quantization": "Q4_K_M"}
LM_STUDIO_MODELS = {
    "object": "list",
    "data": [
        {"id": "qwen2-vl-7b-instruct", "type": "vlm", "arch": "qwen2_vl", "state": "not-loaded", **_STUDIO},
        {"id": "meta-llama-3.1-8b-instruct", "type": "llm", "arch": "llama", "state": "loaded", **_STUDIO},
        {"id": "text-embedding-nomic-embed-text-v1.5", "type": "embeddings", "arch": "nomic-bert", **_STUDIO},
    ],
}
LLAMA_CPP_MODELS = {
    "models": [{"name": "/models/Qwen3 4B.gguf", "model": "/models/Qwen3 4B.gguf", "capabilities": ["completion"]}],
    "object": "list",
    "data": [
        {
            "id": "/models/Qwen3 4B.gguf",
            "object": "model",
            "created": 1_794_996_188,
            "owned_by": "llamacpp",
            "meta": {"vocab_type": 2, "n_vocab": 151_936, "n_ctx_train": 40_960, "n_params": 4_022_468_096},
        }
    ],
}


CHAT = "/v1/chat/completions"


@define
class VendorServer:
    """A server, and what it was asked."""

    port: int
    asked: list[tuple[str, Mapping[str, str]]] = Factory(list[Any])
    has_asked: trio.Event = Factory(trio.Event)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def open_vendor_server(
    lists: Mapping[str, object], status: int = 200, *, silent: bool = False
) -> AsyncGenerator[VendorServer]:
    """Serve documents by path until the block ends. Bytes are sent as they are. A `silent` server only listens."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = VendorServer(listener.socket.getsockname()[1])

    async def serve(stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (more := await stream.receive_some()):
            head += more
        first, *lines = head.decode("latin-1").split("\r\n")
        path = first.split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        server.asked.append((path, headers))
        server.has_asked.set()
        if silent:
            await trio.sleep_forever()
        document = lists.get(path)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        code = 404 if path not in lists else status
        kind = "text/event-stream" if path == CHAT else "application/json"
        fields = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        answer = f"HTTP/1.1 {code} Answer\r\n{fields}\r\n".encode() + body
        try:
            await stream.send_all(answer)
        except trio.BrokenResourceError:
            return  # the client had enough

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
