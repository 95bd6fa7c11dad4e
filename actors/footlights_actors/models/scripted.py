"""Scripted model: deterministic, free of cost, and able to fail on cue.

    model = ScriptedModel(lambda prompt: [Say("Good evening."), Pause(0.5), Say(" A room?")], pace=0.03)

A script is a function from the prompt to lines. The same prompt gives the same tokens at the same times. Sampling
settings are ignored, except `max_tokens`, which the turn applies to every model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import Factory, frozen

from footlights.bad_return import BadReturn, check_plain, is_unawaited
from footlights.errors import RegistrationError
from footlights.events import WarmState
from footlights.models.model import ModelTraits, ToolRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from footlights.events import JsonValue
    from footlights.models.model import Output, Prompt

_LINES = "Return a list of Say(...), Call(...) and the like."
_TOKEN = re.compile(r"\s*\S+|\s+")


@frozen
class Say:
    """Output text, word by word."""

    text: str


@frozen
class Flood:
    """Output the same token repeatedly, without pauses, ignoring the model's pace."""

    token: str
    times: int


@frozen
class Pause:
    """Output nothing for this many seconds."""

    seconds: float


@frozen
class Call:
    """Request a tool."""

    tool_name: str
    arguments: Mapping[str, JsonValue] = Factory(dict[str, "JsonValue"])


@frozen
class Fail:
    """Raise this error."""

    error: Exception


@frozen
class Stall:
    """Output nothing more, and never end."""


Line: TypeAlias = Say | Flood | Pause | Call | Fail | Stall
"""One step of a script."""
Script: TypeAlias = "Callable[[Prompt], Iterable[Line]]"
"""The lines for this prompt. Called again after each round of tools."""


class ScriptedModel:
    """A model that follows a script, with `pace` seconds before each word.

    Unless it is hot, it takes `load_seconds` to load and reports its progress in `load_steps`; a `load_error` is raised
    at the end.
    """

    def __init__(
        self,
        script: Script,
        *,
        model_id: str = "scripted",
        pace: float = 0.0,
        warm_state: WarmState = WarmState.HOT,
        load_seconds: float = 0.0,
        load_steps: int = 10,
        load_error: Exception | None = None,
        traits: ModelTraits | None = None,
    ) -> None:
        if pace < 0 or load_seconds < 0 or load_steps < 1:
            raise RegistrationError("pace and load_seconds must be at least 0, and load_steps at least 1.")
        check_plain("The script", script, "prompt")
        self._script = script
        self._model_id = model_id
        self._pace = pace
        self._warm_state = warm_state
        self._load_seconds = load_seconds
        self._load_steps = load_steps
        self._load_error = load_error
        self._traits = traits or ModelTraits()
        self._loading = trio.Lock()
        self._listeners: list[Callable[[float], None]] = []

    @property
    def model_id(self) -> str:
        """Its name in the cast."""
        return self._model_id

    @property
    def traits(self) -> ModelTraits:
        """The traits given by the test or demo."""
        return self._traits

    @property
    def warm_state(self) -> WarmState:
        """Its current readiness."""
        return self._warm_state

    async def load(self, report: Callable[[float], None]) -> None:
        """Load in simulated time. Concurrent callers share one load, and all get its progress.

        If the caller that began it is cancelled, the next one starts again.
        """
        self._listeners.append(report)
        try:
            async with self._loading:
                if self._warm_state is not WarmState.HOT:
                    await self._load()
        finally:
            self._listeners.remove(report)

    async def _load(self) -> None:
        for step in range(self._load_steps):
            await trio.sleep(self._load_seconds / self._load_steps)
            for listener in list(self._listeners):
                listener((step + 1) / self._load_steps)
        if self._load_error is not None:
            raise self._load_error.with_traceback(None)
        self._warm_state = WarmState.HOT

    async def unload(self) -> None:
        """Become warm: the next turn loads it again."""
        await trio.lowlevel.checkpoint()
        self.cool(WarmState.WARM)

    def cool(self, warm_state: WarmState = WarmState.COLD) -> None:
        """Become cold or warm: the next turn loads it again."""
        self._warm_state = warm_state

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Follow the script."""
        lines = self._script(prompt)
        if not hasattr(lines, "__iter__"):  # a script need not be typed
            raise _without_lines(lines, self._script)
        for line in lines:
            match line:
                case Say(text):
                    for token in _TOKEN.findall(text):
                        if self._pace:
                            await trio.sleep(self._pace)
                        yield token
                case Flood(token, times):
                    for _ in range(times):
                        yield token
                case Pause(seconds):
                    await trio.sleep(seconds)
                case Call(tool_name, arguments):
                    yield ToolRequest(tool_name, arguments)
                case Fail(error):
                    try:
                        # The same error may be raised in many turns, and must not collect their tracebacks.
                        raise error.with_traceback(None)
                    finally:
                        del error, line  # breaks the reference cycle of traceback and frame
                case Stall():
                    await trio.sleep_forever()
                case _:
                    raise BadReturn(f"The script returned something that is not a line. {_LINES}", self._script)


def _without_lines(returned: object, script: Script) -> BadReturn:
    if is_unawaited(returned):
        return BadReturn("The script returned a coroutine. Write it with def, and await nothing.", script)
    return BadReturn(f"The script returned no lines. {_LINES}", script)
