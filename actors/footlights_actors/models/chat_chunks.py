"""Chat reader: turns the chunks of a streamed chat completion into output of a model. Pure.

Text is returned as it arrives, without thoughts. Tool calls and usage are complete only at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import evolve

from footlights.errors import ModelError, StreamError
from footlights.models.model import Usage
from footlights_actors.models.chat_format import ToolCallAssembler, as_count
from footlights_actors.models.reasoning import ThoughtFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.models.model import Output
    from footlights_actors.models.chat_format import JsonObject


_THOUGHTS = ("reasoning_content", "reasoning")


class ChatReader:
    """Reads one completion. A malformed chunk raises `ModelError`, which does not quote it.

    `begins_in_thought`: the prompt has opened a thought, and the text begins inside it.
    """

    def __init__(self, *, begins_in_thought: bool = False) -> None:
        self._thoughts = ThoughtFilter()
        if begins_in_thought:
            self._thoughts.feed("<think>")
        self._calls = ToolCallAssembler()
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, chunk: object) -> str | None:
        """The visible text of this chunk. Empty if the chunk only shows that the model is working, otherwise None.

        A model is working while it reads the prompt, thinks, or writes a tool call.
        """
        if not isinstance(chunk, dict):
            raise ModelError(sentence="The model sent something that is not a chunk.")
        known = cast("JsonObject", chunk)
        self._note_usage(known.get("usage"))
        match known.get("choices"):
            case [choice, *_] if isinstance(choice, dict):
                said = self._choose(cast("JsonObject", choice))
            case _:
                said = None
        return "" if said is None and "prompt_progress" in known else said

    def finish(self) -> Iterator[Output]:
        """The rest of the text, the tool requests, and the usage. Raises `StreamError` if the completion broke off."""
        if self._finish_reason is None:
            raise StreamError(sentence="The model broke off before it was done.")
        if rest := self._thoughts.finish():
            yield rest
        yield from self._calls.finish(cut=self.cut)
        if self.cut:
            yield evolve(self._usage or Usage(0), cut=True)
        elif self._usage is not None:
            yield self._usage

    @property
    def cut(self) -> bool:
        """Whether the completion was cut at its token limit."""
        return self._finish_reason == "length"

    def _choose(self, choice: JsonObject) -> str | None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = reason
        delta = choice.get("delta")
        return self._read(cast("JsonObject", delta)) if isinstance(delta, dict) else None

    def _read(self, delta: JsonObject) -> str | None:
        if calls := delta.get("tool_calls"):
            self._calls.feed(calls)
        content = delta.get("content")
        if isinstance(content, str) and content:
            return self._thoughts.feed(content)
        return "" if calls or any(delta.get(field) for field in _THOUGHTS) else None

    def _note_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            counts = cast("JsonObject", usage)
            output_tokens = as_count(counts.get("completion_tokens"))
            if output_tokens is not None:
                self._usage = Usage(output_tokens, as_count(counts.get("prompt_tokens")))
