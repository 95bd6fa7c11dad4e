"""Reads a streamed chat completion: chunks go in, what a turn may use of them comes out.

Text is given as it comes, without thoughts, wherever a model puts them. Tool calls and the cost are whole only at
the end. Pure: it knows neither where the chunks come from nor when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from footlights.errors import ModelError, StreamError
from footlights.models import Usage
from footlights_actors.chat_format import ToolCallAssembler
from footlights_actors.reasoning import ThoughtFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.models import Output
    from footlights_actors.chat_format import JsonObject


class ChatReader:
    """One completion. A chunk that makes no sense raises `ModelError` and is not quoted."""

    def __init__(self) -> None:
        self._thoughts = ThoughtFilter()
        self._calls = ToolCallAssembler()
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, chunk: object) -> str:
        """What this chunk lets the model say; often nothing."""
        if not isinstance(chunk, dict):
            raise ModelError("The model sent something that is no chunk.")
        known = cast("JsonObject", chunk)
        self._note_usage(known.get("usage"))
        match known.get("choices"):
            case [choice, *_] if isinstance(choice, dict):
                return self._choose(cast("JsonObject", choice))
            case _:
                return ""

    def finish(self) -> Iterator[Output]:
        """The rest of the text, the tools it asks for, and what it cost. Raises `StreamError` if the end is missing."""
        if self._finish_reason is None:
            raise StreamError("The model broke off before it was done.")
        if rest := self._thoughts.finish():
            yield rest
        yield from self._calls.finish(cut=self.cut)
        if self._usage is not None:
            yield self._usage

    @property
    def cut(self) -> bool:
        """Whether it had more to say than it may."""
        return self._finish_reason == "length"

    def _choose(self, choice: JsonObject) -> str:
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        said = cast("JsonObject", delta)
        if calls := said.get("tool_calls"):
            self._calls.feed(calls)
        content = said.get("content")
        return self._thoughts.feed(content) if isinstance(content, str) else ""

    def _note_usage(self, usage: Any) -> None:
        match usage:
            case {"completion_tokens": int(output_tokens), "prompt_tokens": int(input_tokens)}:
                self._usage = Usage(output_tokens, input_tokens)
            case {"completion_tokens": int(output_tokens)}:
                self._usage = Usage(output_tokens)
            case _:
                pass
