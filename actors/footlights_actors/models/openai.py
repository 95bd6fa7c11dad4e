"""Driver for the OpenAI chat completions API, which llama.cpp, Ollama, LM Studio, vLLM and OpenAI implement.

    OpenAIModel("qwen3", base_url="http://127.0.0.1:11434/v1")
    OpenAIModel("gpt-5.2", base_url="https://api.openai.com/v1", max_tokens_field="max_completion_tokens")

Only `content` is output, without `reasoning_content`, `reasoning` and text between `<think>` tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from footlights.errors import StreamError
from footlights.models.model import Usage
from footlights.models.sampling import NO_SAMPLING
from footlights_actors.models import chat_format
from footlights_actors.models.chat_chunks import ChatReader
from footlights_actors.models.http_stream import HttpStream, sends_json, server
from footlights_actors.models.remote import (
    DEFAULT_SILENCE_TIMEOUT,
    Interface,
    JsonObject,
    RemoteModel,
    chosen,
    read_object,
    reported,
    traits_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.models.model import Output, Prompt
    from footlights.models.sampling import Sampling

_DONE = "[DONE]"
_STANDARD = ("temperature", "top_p", "frequency_penalty", "stop", "seed")
_TEXTS = ("content", "reasoning_content", "reasoning")


class OpenAIModel(RemoteModel):
    """A model behind a server with OpenAI's chat completions API.

    `name` is the server's name of the model, and by default its `model_id` in the cast. `base_url` includes the `/v1`.
    The key is read from the environment variable `key_env`, and is sent to `base_url`: name another variable for
    another server. Without a key, none is sent.

    `remote` states whether prompts leave this machine. By default they do unless `base_url` is a loopback address; set
    it if a local server forwards prompts.

    `max_tokens_field` and `send_sampling` are for models that need another field, or accept no sampling settings.
    `min_p` and `repeat_penalty` are not part of OpenAI's API, and it refuses them: they are sent if `extra_sampling`,
    which is true by default for a loopback address, and ignored otherwise. llama.cpp, LM Studio and vLLM apply them;
    Ollama ignores them.

    `begins_in_thought` is for models whose prompt opens a thought: then all text up to the closing tag is hidden.

    `context_tokens` is the size of the context window, and `slots` the number of concurrent rounds; by default the
    server enforces both.
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
        send_sampling: bool = True,
        extra_sampling: bool | None = None,
        begins_in_thought: bool = False,
        context_tokens: int | None = None,
        slots: int | None = None,
        silence_timeout: float = DEFAULT_SILENCE_TIMEOUT,
        sampling: Sampling = NO_SAMPLING,
    ) -> None:
        at = server(base_url, key_env)
        extra = send_sampling and (at.loopback if extra_sampling is None else extra_sampling)

        def body(prompt: Prompt) -> JsonObject:
            return {
                "model": name,
                "messages": chat_format.messages(prompt),
                max_tokens_field: prompt.max_tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
                **_sampling(prompt.sampling, standard=send_sampling, extra=extra),
                **({"tools": chat_format.tools(prompt)} if prompt.tools else {}),
            }

        super().__init__(
            Interface(body, lambda: _Answer(begins_in_thought=begins_in_thought)),
            HttpStream(
                at,
                sends_json(f"{at.base_url}/chat/completions", _headers),
                model=name,
                silence_timeout=silence_timeout,
            ),
            model_id=model_id or name,
            traits=traits_of(at, remote=remote, context_tokens=context_tokens, slots=slots, sampling=sampling),
        )


class _Answer:
    """Reads an answer, which is complete at `[DONE]`. Without it, a finish reason suffices."""

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
                raise StreamError(sentence="The model's server withheld the rest of the answer.")
            case [{"delta": {"refusal": str(refusal)}}, *_] if refusal:
                raise StreamError(sentence="The model refused to answer.")
            case [{"delta": {**delta}}, *_]:
                self.pieces += any(delta.get(field) for field in _TEXTS)
            case _:
                pass
        return self._reader.feed(chunk)

    def finish(self, *, stopped: bool) -> Iterator[Output]:
        if stopped:
            self._reader.feed({"choices": [{"finish_reason": "length"}]})
        for output in self._reader.finish():
            yield Usage(self.pieces, cut=True) if stopped and isinstance(output, Usage) else output


def _sampling(sampling: Sampling, *, standard: bool, extra: bool) -> JsonObject:
    sent = chosen(sampling, *_STANDARD) if standard else {}
    if extra:
        sent |= chosen(sampling, "min_p", "repeat_penalty")
        if sampling.repeat_penalty is not None:
            sent["repetition_penalty"] = sampling.repeat_penalty  # the name in vLLM
    return sent


def _headers(key: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
