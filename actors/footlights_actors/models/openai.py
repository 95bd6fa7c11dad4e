"""Models behind OpenAI's chat completions, which many servers speak: llama.cpp, Ollama, LM Studio, vLLM and OpenAI.

    OpenAIModel("qwen3", base_url="http://127.0.0.1:11434/v1")
    OpenAIModel("gpt-5.2", base_url="https://api.openai.com/v1", max_tokens_field="max_completion_tokens")

Only `content` is ever shown: what servers send as `reasoning_content` or `reasoning`, and what a model writes
between `<think>` tags, is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from footlights.errors import StreamError
from footlights.models.model import Usage
from footlights_actors.models import chat_format
from footlights_actors.models.chat_chunks import ChatReader
from footlights_actors.models.http_stream import HttpStream, sends_json, server
from footlights_actors.models.remote import (
    DEFAULT_SILENCE_TIMEOUT,
    Interface,
    JsonObject,
    RemoteModel,
    read_object,
    reported,
    traits_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.models.model import Output, Prompt

_DONE = "[DONE]"
_TEXTS = ("content", "reasoning_content", "reasoning")


class OpenAIModel(RemoteModel):
    """A model behind a server that speaks OpenAI's chat completions.

    `name` is what the server calls it, and its `model_id` in the cast unless that is given. `base_url` goes up to
    the `/v1`. The key comes from the environment variable `key_env`, and is sent to whatever `base_url` names: name
    another variable for another server. Servers that want no key work without one.

    `remote` says whether what it is told leaves this machine. It is taken to, unless `base_url` is a loopback
    address; say so yourself if a local server only passes things on.

    `max_tokens_field` and `send_temperature` are for models that want another field or no temperature.
    `begins_in_thought` is for those whose prompt opens the thought: then all is hidden up to the closing tag.

    `context_tokens` is what it can be told and say in one round, and `slots` how many rounds at once; without them
    the server has to know.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str,
        model_id: str | None = None,
        key_env: str | None = "OPENAI_API_KEY",
        remote: bool | None = None,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        send_temperature: bool = True,
        begins_in_thought: bool = False,
        context_tokens: int | None = None,
        slots: int | None = None,
        silence_timeout: float = DEFAULT_SILENCE_TIMEOUT,
    ) -> None:
        def body(prompt: Prompt) -> JsonObject:
            return {
                "model": name,
                "messages": chat_format.messages(prompt),
                max_tokens_field: prompt.max_tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
                **({"temperature": prompt.temperature} if send_temperature else {}),
                **({"tools": chat_format.tools(prompt)} if prompt.tools else {}),
            }

        at = server(base_url, key_env)
        super().__init__(
            Interface(body, lambda: _Answer(begins_in_thought=begins_in_thought)),
            HttpStream(at, sends_json(f"{at.base_url}/chat/completions", _headers), silence_timeout=silence_timeout),
            model_id=model_id or name,
            traits=traits_of(at, remote=remote, context_tokens=context_tokens, slots=slots),
        )


class _Answer:
    """Whole once `[DONE]` has come. A server that never says it is believed if it gave a reason to finish."""

    def __init__(self, *, begins_in_thought: bool) -> None:
        self.pieces = 0
        self.is_whole = False
        self._reader = ChatReader(begins_in_thought=begins_in_thought)

    def take(self, data: str) -> str | None:
        if data == _DONE:
            self.is_whole = True
            return None
        chunk = read_object(data)
        if chunk.get("error") is not None:
            raise reported(chunk["error"])
        match chunk.get("choices"):
            case [{"finish_reason": "content_filter"}, *_]:
                raise StreamError("The model's server withheld the rest of the answer.")
            case [{"delta": {"refusal": str(refusal)}}, *_] if refusal:
                raise StreamError("The model refused to answer.")
            case [{"delta": {**delta}}, *_]:
                self.pieces += any(delta.get(field) for field in _TEXTS)
            case _:
                pass
        return self._reader.feed(chunk)

    def finish(self, *, stopped: bool) -> Iterator[Output]:
        if stopped:
            self._reader.feed({"choices": [{"finish_reason": "length"}]})
        yield from self._reader.finish()
        if stopped:
            yield Usage(self.pieces)


def _headers(key: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
