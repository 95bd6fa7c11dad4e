"""The OpenAI-compatible driver against a real server with a real model: llama.cpp's own, in another process."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import httpx2
import pytest
from attrs import evolve

from footlights import TurnParams, open_stage
from footlights.errors import KeyMissing, KeyRefused, PromptTooLarge
from footlights.events import TokenDelta, TurnFinal
from footlights.models.budget import BudgetTier
from footlights.models.model import Prompt, Usage
from footlights.models.sampling import Sampling
from footlights.testing import only, payloads, take_turn
from footlights_actors import standard_cast
from footlights_actors.models.client_adapters import ModelClient
from footlights_actors.models.openai import OpenAIModel
from footlights_actors.models.own_servers import get_json, openai_models
from tests.kit.models.real_server import open_real_server
from tests.kit.models.wire_server import ask, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-xyzzy-real"
SYSTEM = "You are a friendly innkeeper."
GREEDY = Sampling(temperature=0.0)
LONG = Prompt(
    "Tell me the long story of this inn, from its beginning.",
    SYSTEM,
    sampling=GREEDY,
    max_tokens=1_500,
)


@pytest.fixture(scope="module")
def base_url(smollm2: Path) -> Iterator[str]:
    with open_real_server(smollm2, KEY) as address:
        yield f"{address}/v1"


@pytest.fixture
def model(base_url: str, monkeypatch: pytest.MonkeyPatch) -> OpenAIModel:
    monkeypatch.setenv("INN_KEY", KEY)
    return OpenAIModel("smollm2", base_url=base_url, key_env="INN_KEY")


async def test_a_real_server_answers_and_counts_for_itself(model: OpenAIModel) -> None:
    outputs, error = await ask(model, Prompt("Say hello.", SYSTEM, sampling=GREEDY, max_tokens=12))
    assert error is None
    *pieces, usage = outputs
    assert len([piece for piece in pieces if isinstance(piece, str)]) == len(pieces) > 2
    assert isinstance(usage, Usage)
    assert 0 < usage.output_tokens <= 12
    assert usage.input_tokens is not None
    assert usage.input_tokens > 10


async def test_the_joined_stream_is_the_whole_answer(model: OpenAIModel) -> None:
    client = ModelClient(model)
    pieces = [piece async for piece in client.generate_stream(SYSTEM, "A room, please.", 0.0, 16)]
    answer = await client.generate(SYSTEM, "A room, please.", 0.0, 16)
    assert "".join(pieces) == answer.text
    assert len(pieces) > 2
    assert answer.tokens_used == 16
    await model.unload()


async def test_closing_the_round_stops_the_work_in_the_other_process(model: OpenAIModel, base_url: str) -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, trust_env=False) as witness:

        async def tokens_at_work() -> int | None:
            """How many tokens the server has made in this round; None if it does nothing."""
            [slot] = (await witness.get(base_url.removesuffix("/v1") + "/slots")).json()
            return int(slot["next_token"][0]["n_decoded"]) if slot["is_processing"] else None

        async with aclosing(model.generate(LONG)) as stream:
            for _ in range(5):
                assert isinstance(await anext(stream), str)
            made = await tokens_at_work()
            assert made is not None
        while (more := await tokens_at_work()) is not None:  # it looks whether we are still there only now and then
            assert more < made + 200
    outputs, error = await ask(model, Prompt("Say hello.", SYSTEM, max_tokens=4))
    assert (len(outputs) > 1, error) == (True, None)


async def test_a_turn_plays_and_a_canceled_turn_leaves_the_server_free(model: OpenAIModel) -> None:
    brief = TurnParams(tier=BudgetTier.WHISPER, sampling=GREEDY)
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn(LONG.user)
            async for event in stream.until_commit(turn_id):
                if isinstance(event.payload, TokenDelta):
                    session.cancel(turn_id)
        events = await take_turn(session, "Say hello.", brief)
    assert only(events, TurnFinal).text == "".join(delta.delta for delta in payloads(events, TokenDelta)) != ""


@pytest.mark.parametrize(("key", "words"), [("sk-xyzzy-wrong", "refused the key in $INN_KEY"), ("", "is not set")])
async def test_a_real_server_refuses_a_wrong_key(
    model: OpenAIModel, monkeypatch: pytest.MonkeyPatch, key: str, words: str
) -> None:
    monkeypatch.setenv("INN_KEY", key)
    outputs, error = await ask(model)
    assert (outputs, type(error)) == ([], KeyRefused if key else KeyMissing)
    assert words in str(error)
    assert "xyzzy" not in quoted(error)


async def test_a_real_server_refuses_what_does_not_fit_and_says_so_without_quoting(model: OpenAIModel) -> None:
    outputs, error = await ask(model, Prompt("xyzzy " * 4_000))
    assert (outputs, type(error)) == ([], PromptTooLarge)
    assert "HTTP 4" in str(error)
    assert "xyzzy" not in quoted(error)


async def test_a_real_server_lists_its_model_and_how_large_it_is(base_url: str) -> None:
    document = await get_json(f"{base_url}/models", {"Authorization": f"Bearer {KEY}"})
    [model] = openai_models(document)
    assert (model.parameters, model.chats, model.remote) == (134_515_008, True, False)


@pytest.mark.parametrize("length", [3, 40])
async def test_a_real_server_says_that_it_cut_the_answer(model: OpenAIModel, length: int) -> None:
    prompt = Prompt("Say hello.", SYSTEM, sampling=Sampling(temperature=0, stop=["!"], min_p=0.1, repeat_penalty=1.1))
    outputs, error = await ask(model, evolve(prompt, max_tokens=length))
    assert error is None
    assert isinstance(outputs[-1], Usage)
    assert outputs[-1].cut is (length == 3)
    assert "!" not in "".join(item for item in outputs if isinstance(item, str))
