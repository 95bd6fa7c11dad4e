"""Conversations with servers that stream one response a turn: OpenAI's interface, AG-UI, server-sent events."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from footlights.errors import ModelError
from footlights_bench.scenario.systems.asked import Moment
from footlights_bench.scenario.systems.http_stream import open_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_bench.scenario.systems.http_stream import HttpAddress


class OpenAiConversation:
    """`POST /chat/completions` of a server with OpenAI's interface. Its address ends with the version, as in `/v1`."""

    def __init__(self, address: HttpAddress, model: str) -> None:
        self._address = address
        self._model = model

    async def ask(self, said: str) -> AsyncGenerator[Moment]:
        asked = {"model": self._model, "stream": True, "messages": [{"role": "user", "content": said}]}
        async with open_events(self._address, "POST", "/chat/completions", asked) as events:
            yield Moment.ACCEPTED
            async for data in events:
                if data == "[DONE]":
                    return
                if _has_text(_object(data)):
                    yield Moment.TEXT


class AgUiConversation:
    """`POST` of a run to an AG-UI endpoint."""

    def __init__(self, address: HttpAddress, thread: str) -> None:
        self._address = address
        self._thread = thread
        self._runs = count(1)

    async def ask(self, said: str) -> AsyncGenerator[Moment]:
        run = f"{self._thread}-{next(self._runs)}"
        message = {"id": f"{run}-input", "role": "user", "content": said}
        asked: dict[str, Any] = {"threadId": self._thread, "runId": run, "messages": [message]}
        asked |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        async with open_events(self._address, "POST", "", asked) as events:
            async for data in events:
                match _object(data).get("type"):
                    case "RUN_STARTED":
                        yield Moment.ACCEPTED
                    case "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK":
                        yield Moment.TEXT
                    case "RUN_FINISHED":
                        return
                    case "RUN_ERROR":
                        raise ModelError("The run ended with RUN_ERROR.")
                    case _:
                        pass


class SseConversation:
    """`POST` of `{"input": ...}`; every server-sent event of the response is a piece of the answer."""

    def __init__(self, address: HttpAddress) -> None:
        self._address = address

    async def ask(self, said: str) -> AsyncGenerator[Moment]:
        async with open_events(self._address, "POST", "", {"input": said}) as events:
            yield Moment.ACCEPTED
            async for _ in events:
                yield Moment.TEXT


def _has_text(chunk: dict[str, Any]) -> bool:
    choices: list[dict[str, dict[str, Any] | None]] = chunk.get("choices") or []
    return any((choice.get("delta") or {}).get("content") for choice in choices)


def _object(data: str) -> dict[str, Any]:
    """Raises `ModelError` for what is no JSON object."""
    try:
        read = json.loads(data)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise ModelError("The server sent data that is no JSON object.")
    return cast("dict[str, Any]", read)
