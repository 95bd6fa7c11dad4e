"""Cue model: a model that says a script word by word and waits for cues.

`"Good ~evening friend"` is said as `Good`, then nothing until the cue `evening` is given, then ` evening friend`. Cues
may be given from any thread, before or after somebody waits for them: no test has to sleep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import ModelTraits, WarmState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from footlights.models.model import Output, Prompt


class CuedModel:
    model_id = "cued"
    traits = ModelTraits()
    warm_state = WarmState.HOT

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._waiting: dict[str, trio.Event] = {}
        self._token: trio.lowlevel.TrioToken | None = None

    def cue(self, name: str) -> None:
        self._given.add(name)
        if self._token is not None:
            self._token.run_sync_soon(self._look)

    async def load(self, report: Callable[[float], None]) -> None:
        raise AssertionError("it is hot")

    async def unload(self) -> None:
        await trio.lowlevel.checkpoint()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        space = ""
        for word in prompt.user.split():
            if word.startswith("~"):
                await self._wait_for(word[1:])
            yield space + word.removeprefix("~")
            space = " "

    async def _wait_for(self, name: str) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._waiting.setdefault(name, trio.Event())
        self._look()
        await self._waiting[name].wait()

    def _look(self) -> None:
        for name in self._given & self._waiting.keys():
            self._waiting[name].set()
