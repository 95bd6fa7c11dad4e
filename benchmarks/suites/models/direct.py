"""Direct engine: the peer of the local model, loaded into this process and called without Footlights."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import evolve

from footlights_actors.models.local import worker as local_worker
from footlights_actors.models.local.model import BATCH_TOKENS, chat_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights import Prompt

SLOTS = 2
CONTEXT_TOKENS = 2048


class DirectEngine:
    """The engine in a thread of this process, with the same settings and requests as ours."""

    def __init__(self, path: Path) -> None:
        self._settings: dict[str, Any] = {
            "path": os.fspath(path),
            "slots": SLOTS,
            "context_tokens": CONTEXT_TOKENS,
            "threads": 1,
            "batch_tokens": BATCH_TOKENS,
        }
        self._server: local_worker.ChatServer | None = None
        self.prompt: Prompt | None = None
        """The prompt of our turns, so that the engine gets the same one."""

    async def load(self) -> None:
        engine = import_module("xllamacpp")
        self._server = await trio.to_thread.run_sync(local_worker.load, engine, self._settings)

    def drop(self) -> None:
        self._server = None

    async def first_token(self, said: str) -> float:
        request = self._request(said)

        def work() -> float:
            first = 0.0

            def hear(chunk: bytes) -> bool:
                nonlocal first
                if has_text(chunk):
                    first = perf_counter()
                return first > 0

            began = perf_counter()
            self._handle(request, hear)
            return first - began

        return await trio.to_thread.run_sync(work)

    async def cancel(self, said: str, *, speaking: bool, after: float) -> float:
        request = self._request(said)
        began, asked = trio.Event(), threading.Event()
        token = trio.lowlevel.current_trio_token()
        ended_at = 0.0

        def hear(chunk: bytes) -> bool:
            if has_text(chunk) or not speaking:
                token.run_sync_soon(began.set, idempotent=True)
            return asked.is_set()

        def work() -> None:
            nonlocal ended_at
            self._handle(request, hear)
            ended_at = perf_counter()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, work)
            await began.wait()
            await trio.sleep(after)
            asked_at = perf_counter()
            asked.set()
        return ended_at - asked_at

    async def speak(self, said: str, until: trio.Event) -> None:
        """Generate until the event is set."""
        request, asked = self._request(said), threading.Event()

        def hear(_chunk: bytes) -> bool:
            return asked.is_set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, self._handle, request, hear)
            await until.wait()
            asked.set()

    def _request(self, said: str) -> bytes:
        assert self.prompt is not None
        return chat_request(evolve(self.prompt, user=said))

    def _handle(self, request: bytes, hear: Callable[[bytes], bool]) -> None:
        assert self._server is not None
        self._server.handle_chat_completions(request, hear)


def has_text(chunk: bytes) -> bool:
    match orjson.loads(chunk):
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return bool(text)
        case _:
            return False
