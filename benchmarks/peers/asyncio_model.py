"""The model of the peers that run on asyncio: an async generator, as the clients of real models are."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING

from peers.kit import TOKEN, TOKENS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peers.kit import Manner


class Model:
    """`silent_at` is when its last turn was closed, by its end or by a cancel."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self.silent_at = 0.0

    async def speak(self) -> AsyncGenerator[str, None]:
        waits = self._manner in {"yielding", "endless"}
        said = 0
        try:
            while said < TOKENS or self._manner == "endless":
                yield TOKEN
                said += 1
                if waits:
                    await asyncio.sleep(0)
            if self._manner == "stalled":
                await asyncio.Event().wait()
        finally:
            self.silent_at = perf_counter()
