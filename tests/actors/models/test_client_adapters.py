"""The laws of a chat client, for any model; and any chat client as a model."""

from __future__ import annotations

from contextlib import aclosing
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from footlights import open_stage
from footlights.errors import ModelError, RateLimitError, StreamError
from footlights.events import TokenDelta, WarmState
from footlights.models.llm_client import LLMResponse
from footlights.models.model import ModelTraits, Prompt, Usage
from footlights.models.sampling import Sampling
from footlights.testing import payloads, take_turn
from footlights_actors import Call, Fail, Pause, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.models.client_adapters import ClientModel, ModelClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator

    from trio.testing import MockClock

    from footlights.models.llm_client import LLMClient
    from footlights.models.model import Output
    from footlights_actors import Line


def client_of(*lines: Line, stream_timeout: float = 30.0) -> ModelClient:
    return ModelClient(ScriptedModel(lambda _: lines), stream_timeout)


async def heard(client: LLMClient) -> tuple[list[str], Exception | None]:
    pieces: list[str] = []
    try:
        async for piece in client.generate_stream("", "A room?"):
            pieces.append(piece)  # noqa: PERF401 - what came before an error counts
    except (ModelError, TimeoutError) as error:
        return pieces, error
    return pieces, None


class CountingModel(ScriptedModel):
    """Says what it cost."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        async with aclosing(super().generate(prompt)) as output:
            async for item in output:
                yield item
        yield Usage(42)


@pytest.mark.shows("gateway-5", "gateway-16")
@given(texts=st.lists(st.text(max_size=20), max_size=5))
def test_the_joined_stream_is_the_whole_answer(texts: list[str]) -> None:
    async def check() -> None:
        client = client_of(*map(Say, texts))
        pieces, error = await heard(client)
        assert error is None
        assert "".join(pieces) == (await client.generate("", "A room?")).text == "".join(texts)

    trio.run(check)


@pytest.mark.shows("gateway-15", "gateway-17")
async def test_pieces_come_when_they_are_said(quiet_clock: MockClock) -> None:
    client = client_of(Say("A"), Pause(1.0), Say(" room?"))
    began = trio.current_time()
    times = [(piece, trio.current_time() - began) async for piece in client.generate_stream("", "")]
    assert times == [("A", 0.0), (" room?", 1.0)]


@pytest.mark.shows("gateway-14", "gateway-15")
async def test_the_defaults_are_those_of_a_prompt_and_all_that_is_said_reaches_the_model() -> None:
    prompts: list[Prompt] = []

    def script(prompt: Prompt) -> list[Line]:
        prompts.append(prompt)
        return [Say("Yes.")]

    client = ModelClient(ScriptedModel(script))
    await client.generate("You are an innkeeper.", "A room?")
    assert await heard(client) == (["Yes."], None)
    await client.generate("", "A room?", 0.1, 7)
    assert prompts == [
        Prompt("A room?", "You are an innkeeper.", sampling=Sampling(temperature=0.7), max_tokens=4_000),
        Prompt("A room?", "", sampling=Sampling(temperature=0.7), max_tokens=4_000),
        Prompt("A room?", "", sampling=Sampling(temperature=0.1), max_tokens=7),
    ]


@pytest.mark.shows("gateway-94")
async def test_tokens_are_counted_by_the_model_or_else_by_piece() -> None:
    assert await client_of(Say("A room?")).generate("", "") == LLMResponse("A room?", 2, "scripted")
    counting = CountingModel(lambda _: [Say("A room?")], model_id="bard")
    assert await ModelClient(counting).generate("", "") == LLMResponse("A room?", 42, "bard")


async def test_a_cold_model_is_loaded_when_it_is_first_asked(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Yes.")], warm_state=WarmState.COLD, load_seconds=2.0)
    client = ModelClient(model)
    assert (await client.generate("", "")).text == "Yes."
    loaded_at = trio.current_time()
    assert model.warm_state is WarmState.HOT
    assert loaded_at == pytest.approx(2.0)
    assert (await client.generate("", "")).text == "Yes."
    assert trio.current_time() == loaded_at


@pytest.mark.shows("gateway-19")
@pytest.mark.parametrize(
    "error", [StreamError("It broke off."), RateLimitError("Later.", 7.0), TimeoutError("Silent.")]
)
async def test_errors_of_a_chat_client_pass_through_after_the_part_that_came(error: Exception) -> None:
    client = client_of(Say("A"), Fail(error))
    assert await heard(client) == (["A"], error)
    with pytest.raises(type(error)) as raised:
        await client.generate("", "")
    assert raised.value is error


@pytest.mark.parametrize(
    ("cause", "words"), [(ModelError("No such model."), "No such model."), (KeyError("xyzzy"), "The model failed.")]
)
async def test_whatever_else_a_model_raises_is_a_stream_error(cause: Exception, words: str) -> None:
    loading = ModelClient(ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_error=cause))
    for client, part in ((client_of(Say("A"), Fail(cause)), ["A"]), (loading, [])):
        pieces, error = await heard(client)
        assert (pieces, type(error), str(error)) == (part, StreamError, words)
        assert error is not None
        assert error.__cause__ is cause


@pytest.mark.parametrize("failure", ["exits", "leaves a scope open"])
async def test_what_is_no_exception_of_a_model_is_a_stream_error_too(failure: str) -> None:
    class Rude(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            if failure == "exits":
                raise SystemExit
            trio.CancelScope().__enter__()
            yield "A"

    with pytest.raises(StreamError):
        await ModelClient(Rude(lambda _: [])).generate("", "")


class Giving(ScriptedModel):
    """Gives these things without a pause, and says when it was closed."""

    def __init__(self, things: Iterable[Any]) -> None:
        super().__init__(lambda _: [])
        self._things = things
        self.closed = False

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        try:
            for each in self._things:
                yield each
        finally:
            self.closed = True


async def test_an_answer_has_no_more_pieces_than_it_may_have_tokens() -> None:
    model = Giving(repeat("a"))
    assert await ModelClient(model).generate("", "", max_tokens=3) == LLMResponse("aaa", 3, "scripted")
    assert model.closed
    exact = await ModelClient(Giving(["a", "b", "c", Usage(9)])).generate("", "", max_tokens=3)
    assert exact == LLMResponse("abc", 9, "scripted")


@pytest.mark.parametrize("sign", ["a", ""])
async def test_a_model_that_never_waits_has_its_deadline_too(sign: str, mock_clock: MockClock) -> None:
    def without_end() -> Iterator[str]:
        yield from repeat(sign, 10)
        mock_clock.jump(31.0)
        yield from repeat(sign, 1_000)
        raise AssertionError("it was not stopped")

    model = Giving(without_end())
    pieces, error = await heard(ModelClient(model))
    assert (pieces, type(error)) == ([sign] * 11 if sign else [], TimeoutError)
    assert model.closed


async def test_signs_of_life_are_not_said() -> None:
    client = ModelClient(Giving(["", "A", "", "", " room?", ""]))
    assert await heard(client) == (["A", " room?"], None)
    assert (await ModelClient(Giving(["", "A", ""])).generate("", "", max_tokens=1)).tokens_used == 1


@pytest.mark.parametrize("thing", [None, 3, b"A"])
async def test_what_is_no_text_is_a_stream_error(thing: object) -> None:
    pieces, error = await heard(ModelClient(Giving(["A", thing, "B"])))
    assert (pieces, type(error), str(error)) == (["A"], StreamError, "The model's output is not text.")


async def test_a_tool_that_was_not_offered_is_a_stream_error() -> None:
    pieces, error = await heard(client_of(Say("A"), Call("rent")))
    assert (pieces, type(error), str(error)) == (
        ["A"],
        StreamError,
        "The model asked for a tool, and none was offered.",
    )


@pytest.mark.shows("gateway-20")
async def test_an_answer_that_takes_too_long_in_all_is_a_timeout(quiet_clock: MockClock) -> None:
    client = client_of(Say("A"), Pause(3.0), Say("B"), Pause(3.0), Say("C"), stream_timeout=5.0)
    pieces, error = await heard(client)
    assert (pieces, type(error)) == (["A", "B"], TimeoutError)
    assert trio.current_time() == 5.0
    with pytest.raises(TimeoutError):
        await client.generate("", "")
    assert trio.current_time() == 10.0


async def test_loading_takes_from_the_same_time(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=9.0)
    assert (await heard(ModelClient(model, 5.0)))[0] == []
    assert trio.current_time() == 5.0


async def test_closing_the_stream_stops_the_work_behind_it() -> None:
    ended = trio.Event()

    class Watched(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            try:
                async with aclosing(super().generate(prompt)) as output:
                    async for item in output:
                        yield item
            finally:
                ended.set()

    async with aclosing(ModelClient(Watched(lambda _: [Say("A"), Stall()])).generate_stream("", "")) as stream:
        assert await anext(stream) == "A"
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_cancel_scope_of_the_consumer_is_its_own(quiet_clock: MockClock) -> None:
    """A cancel scope left open over a yield would break this."""
    client = client_of(Say("A"), Pause(2.0), Say("B"), stream_timeout=50.0)
    async with aclosing(client.generate_stream("", "")) as stream:
        with trio.move_on_after(1.0) as scope:
            assert await anext(stream) == "A"
            await trio.sleep(10.0)
        assert scope.cancelled_caught
        assert await anext(stream) == "B"


class Parrot:
    """A chat client that is no generator, so it cannot be closed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, float, int]] = []

    async def generate(self, system: str, user: str, temperature: float = 0.7, max_tokens: int = 4000) -> LLMResponse:
        return LLMResponse(user, 1, "parrot")

    def generate_stream(
        self, system: str, user: str, temperature: float = 0.7, max_tokens: int = 4000
    ) -> AsyncIterator[str]:
        self.asked.append((system, user, temperature, max_tokens))
        return _Words(user.split())


class _Words:
    def __init__(self, words: list[str]) -> None:
        self._words = words

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        await trio.lowlevel.checkpoint()
        if not self._words:
            raise StopAsyncIteration
        return self._words.pop(0)


async def test_any_chat_client_plays_in_a_turn() -> None:
    parrot = Parrot()
    model = ClientModel(parrot, model_id="parrot")
    async with open_stage(standard_cast(model)) as stage:
        events = await take_turn(stage.start(), "A room ?")
    assert "".join(delta.delta for delta in payloads(events, TokenDelta)) == "Aroom?"
    [(_, user, temperature, _)] = parrot.asked
    assert (user, temperature) == ("A room ?", 0.7)


async def test_a_client_that_can_be_closed_is_closed_and_is_what_the_host_says_it_is() -> None:
    reports: list[float] = []
    model = ClientModel(client_of(Say("A"), Stall()), model_id="far", traits=ModelTraits(remote=True))
    assert (model.model_id, model.traits.remote, model.warm_state) == ("far", True, WarmState.HOT)
    await model.load(reports.append)
    async with aclosing(model.generate(Prompt("A room?"))) as output:
        assert await anext(output) == "A"
    await model.unload()
    assert reports == [1.0]
    assert ClientModel(Parrot(), model_id="parrot").traits == ModelTraits()


async def test_there_and_back_again_is_the_same() -> None:
    client = ModelClient(ClientModel(client_of(Say("A room?")), model_id="bard"))
    assert await client.generate("", "") == LLMResponse("A room?", 2, "bard")
