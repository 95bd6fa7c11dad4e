"""Local model: any GGUF file, run by llama.cpp in a process of its own.

    model = LocalModel(find("smollm2"))

Text never leaves the machine. An interrupted turn stops the generation, even while the prompt is being read, and frees
its slot. The extra `local` installs the engine.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import trio
from attrs import asdict

from footlights.errors import ModelError, PromptTooLarge, RegistrationError, StreamError
from footlights.events import WarmState
from footlights.extras import advice
from footlights.models.model import ModelTraits, Usage
from footlights.models.sampling import NO_SAMPLING, Sampling
from footlights_actors.models import chat_format
from footlights_actors.models.chat_chunks import ChatReader
from footlights_actors.models.local.constrained_call import call_schema, read_call, with_tools_told
from footlights_actors.models.local.engine import EngineSettings, LocalEngine, start_engine
from footlights_actors.models.local.sentences import SentenceLimit
from footlights_actors.models.local.weights import KNOWN, find

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping

    from footlights.models.model import Output, Prompt
    from footlights_actors.models.chat_format import JsonObject
    from footlights_actors.models.local.engine import Line

ToolChoice: TypeAlias = Literal["auto", "required"]
"""`auto`: the model requests tools by its chat template, if that supports tools. `required`: the first round is one
tool call, constrained to its JSON Schema, and text follows in the next round. That works with every model."""

BATCH_TOKENS = 32
"""Tokens of a prompt that are read at once. A cancel takes effect between two batches."""
_BESIDE_WEIGHTS = 160 * 1024 * 1024
"""Approximate memory of a small model's process besides its weights."""
_GGUF = b"GGUF"
_NOT_IN_A_NAME = re.compile(r"[^!-~]")
_MAX_NAME = 128
_CANDIDATES = 500
"""Tokens whose probabilities are asked for."""
_WITH_REPEAT_PENALTY = {
    "repeat_last_n": 64,
    "dry_multiplier": 0.8,
    "dry_base": 1.75,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 256,
}
"""A repeat penalty is for models that repeat themselves. They repeat single words and whole phrases, and DRY, the
engine's penalty for repeated sequences, is needed against the latter."""


class LocalModel:
    """A GGUF file as a model with `slots` concurrent rounds, each with a context window of `context_tokens`.

    More `threads` help only while as many cores are idle. `memory_bytes` defaults to about the size of the file.
    `begins_in_thought` is for models whose prompt opens a thought: then all text up to the closing tag is hidden.
    `sentences` ends a round after that many sentences. All sampling settings are applied; a repeat penalty counts the
    last 64 tokens, and comes with the engine's penalty for repeated sequences (DRY).
    Raises `RegistrationError` if the file or the engine is missing or a number is invalid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model_id: str | None = None,
        slots: int = 2,
        context_tokens: int = 2048,
        threads: int = 1,
        tool_choice: ToolChoice = "auto",
        begins_in_thought: bool = False,
        memory_bytes: int | None = None,
        sampling: Sampling = NO_SAMPLING,
        sentences: int | None = None,
    ) -> None:
        file = Path(path)
        if min(slots, threads) < 1 or context_tokens < BATCH_TOKENS:
            raise RegistrationError(f"slots and threads must be at least 1, and context_tokens {BATCH_TOKENS}.")
        if sentences is not None and sentences < 1:
            raise RegistrationError("sentences must be at least 1.")
        if find_spec("xllamacpp") is None:
            raise RegistrationError(f"A local model needs its engine: {advice('local')}")
        size = _checked_size(file)
        self._model_id = model_id or _NOT_IN_A_NAME.sub("-", file.stem)[:_MAX_NAME]
        self._settings = EngineSettings(
            path=str(file), slots=slots, context_tokens=context_tokens, threads=threads, batch_tokens=BATCH_TOKENS
        )
        self._traits = ModelTraits(
            slots=slots,
            memory_bytes=memory_bytes or size + _BESIDE_WEIGHTS,
            context_tokens=context_tokens,
            sampling=sampling,
        )
        self._tool_choice = tool_choice
        self._begins_in_thought = begins_in_thought
        self._sentences = sentences
        self._engine: LocalEngine | None = None
        self._was_loaded = False
        self._loading = trio.Lock()
        self._listeners: list[Callable[[float], None]] = []

    @property
    def model_id(self) -> str:
        """Its name in the cast; by default the name of its file, with `-` for invalid characters."""
        return self._model_id

    @property
    def traits(self) -> ModelTraits:
        """Not remote, with the given slots and context window."""
        return self._traits

    @property
    def warm_state(self) -> WarmState:
        """Hot while its process runs. If the process has died, the next turn loads it again."""
        if self._engine is not None and self._engine.is_alive:
            return WarmState.HOT
        return WarmState.WARM if self._was_loaded else WarmState.COLD

    @property
    def process_id(self) -> int | None:
        """The id of its process, if it is loaded."""
        return None if self._engine is None else self._engine.pid

    async def load(self, report: Callable[[float], None]) -> None:
        """Start its process and load the weights there. Concurrent callers share one load, and all get its progress.

        If the caller that began it is cancelled, the process ends and the next one starts again.
        """
        self._listeners.append(report)
        try:
            async with self._loading:
                await self._become_hot()
        finally:
            self._listeners.remove(report)

    async def unload(self) -> None:
        """End its process, which frees its memory."""
        async with self._loading:
            await self._drop_engine()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        """Generate one round in the first free slot. Raises `ModelError`, or `StreamError` if the process dies."""
        engine = self._engine
        if engine is None:
            raise ModelError(sentence="The local model is not loaded.")
        calls_first = self._tool_choice == "required" and bool(prompt.tools) and not prompt.rounds
        # Output that is constrained to a schema contains no thought.
        reader = ChatReader(begins_in_thought=self._begins_in_thought and not calls_first)
        withheld: list[str] = []
        limit = None if self._sentences is None or calls_first else SentenceLimit(self._sentences)
        pieces = 0
        async with engine.round(chat_request(prompt, calls_first=calls_first)) as line:
            while (chunk := await _next_chunk(line)) is not None:
                text = reader.feed(chunk)
                if text is not None and calls_first:
                    withheld.append(text)
                    text = ""
                if text and limit is not None:
                    text = limit.feed(text)
                    pieces += 1
                if text is not None:
                    yield text
                if limit is not None and limit.is_reached:
                    break
        if limit is not None and limit.is_reached:
            yield Usage(pieces)
            return
        rest = list(reader.finish())
        if calls_first:
            rest = _as_call(withheld, rest, cut=reader.cut)
        for item in rest:
            yield item

    async def log_probs(self, text: str, labels: Collection[str]) -> dict[str, float]:
        """The log-probability of each label as the next word of the text. Raises `ModelError` as `generate` does.

        That of a label of several tokens is the probability of its beginning, if that has at least three letters. A
        label that is not among the likeliest tokens has the probability of the least likely of them.
        """
        engine = self._engine
        if engine is None:
            raise ModelError("The local model is not loaded.")
        found: dict[str, float] = {}
        async with engine.round(label_request(text)) as line:
            while (chunk := await _next_chunk(line)) is not None:
                found = found or _candidates(chunk)
        if not found:
            raise StreamError("The local model gave no probabilities.")
        return {label: _log_prob(label, found) for label in labels}

    async def _become_hot(self) -> None:
        if self.warm_state is not WarmState.HOT:
            await self._drop_engine()
            self._engine = await start_engine(self._settings, self._report)
            self._was_loaded = True

    async def _drop_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    def _report(self, progress: float) -> None:
        for listener in list(self._listeners):
            listener(progress)


def known_model(weights: str | os.PathLike[str], *, sampling: Sampling = NO_SAMPLING, **options: Any) -> LocalModel:
    """A local model of known weights, with the settings that suit them, or of any GGUF file.

    `sampling` takes precedence over theirs. Raises `WeightsNotFetched`, `WeightsUnknown` or `RegistrationError`.
    """
    file, known = find(weights), KNOWN.get(str(weights))
    if known is not None:
        sampling = sampling.over(known.sampling)
        options = {"sentences": known.sentences, **options}
    return LocalModel(file, sampling=sampling, **options)


def _checked_size(file: Path) -> int:
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_GGUF))
        size = file.stat().st_size
    except OSError as error:
        raise RegistrationError(
            f"The weights cannot be read: {file}. To get known ones: footlights models fetch smollm2"
        ) from error
    if magic != _GGUF:
        raise RegistrationError(f"This is not a GGUF file: {file}")
    return size


def chat_request(prompt: Prompt, *, calls_first: bool = False) -> bytes:
    """The request to the engine for this prompt."""
    request: JsonObject = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": prompt.max_tokens,
        **_sampling(prompt.sampling),
        "cache_prompt": True,  # reads a persona once, not in every turn
        "return_progress": True,  # a chunk for each batch, so that a cancel is noticed while the prompt is read
    }
    if calls_first:
        request["json_schema"] = call_schema(prompt)
        prompt = with_tools_told(prompt)
    request["messages"] = chat_format.messages(prompt)
    if prompt.tools:
        request["tools"] = chat_format.tools(prompt)
    return json.dumps(request).encode()


def label_request(text: str) -> bytes:
    """The request to the engine for the probabilities of the next token of a text."""
    request: JsonObject = {
        "prompt": text,
        "n_predict": 1,
        "n_probs": _CANDIDATES,
        "temperature": 0,
        "stream": True,
        "cache_prompt": True,
        "return_progress": True,
    }
    return json.dumps(request).encode()


def _candidates(chunk: Any) -> dict[str, float]:
    """The likeliest tokens of a chunk, if it has any."""
    match chunk:
        case {"choices": [{"logprobs": {"content": [{"top_logprobs": list()}, *_]}}, *_]}:
            likeliest: list[JsonObject] = chunk["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            return {each["token"]: each["logprob"] for each in likeliest}
        case _:
            return {}


def _log_prob(label: str, candidates: Mapping[str, float]) -> float:
    beginnings = (f" {label[:size]}" for size in range(min(3, len(label)), len(label) + 1))
    known = [candidates[each] for each in beginnings if each in candidates]
    return max(known, default=min(candidates.values()))


def _sampling(sampling: Sampling) -> JsonObject:
    sent: JsonObject = {
        name: value for name, value in asdict(sampling).items() if value is not None and name != "max_tokens"
    }
    return sent if sampling.repeat_penalty is None else {**sent, **_WITH_REPEAT_PENALTY}


def _as_call(withheld: list[str], rest: list[Output], *, cut: bool) -> list[Output]:
    """The output of a constrained round as one tool call."""
    answer = "".join([*withheld, *(item for item in rest if isinstance(item, str))])
    return [read_call(answer, cut=cut), *(item for item in rest if isinstance(item, Usage))]


async def _next_chunk(line: Line) -> object:
    """The next chunk; None at the end of the round."""
    received = await line.receive()
    if not received:
        return None
    chunk = json.loads(received)
    match chunk:
        case {"error": {"type": "exceed_context_size_error"}}:
            raise PromptTooLarge("The prompt is longer than the local model's context.")
        case {"error": _}:
            raise ModelError(sentence="The local model refused the request.")
        case _:
            return chunk
