"""Remote drivers: the promises that each of them keeps, whatever its server speaks."""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import frozen

from footlights.errors import (
    KeyRefused,
    ModelError,
    ModelNotFound,
    ModelServerError,
    ModelUnreachable,
    PromptTooLarge,
    RateLimitError,
)
from footlights.events import WarmState
from footlights.failures import watch_failures
from footlights.models.model import Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from tests.kit.models import anthropic_wire as messages
from tests.kit.models import openai_wire as completions
from tests.kit.models.wire_server import (
    ANSWERED,
    KEY,
    SAID,
    SECRETS,
    Answer,
    Cut,
    Stall,
    ask,
    event,
    let_time_pass_after,
    open_wire_server,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights.models.model import Model
    from tests.kit.models.wire_server import Step

THOUGHT = {"type": "thinking_delta", "thinking": ANSWERED}


@frozen
class Wire:
    """One driver, and parts of answers in the format that it reads."""

    model_at: Callable[..., Model]
    text: Callable[..., Sequence[Step]]
    thought: Sequence[Step]
    call: Sequence[Step]
    end: Sequence[Step]


WIRES = {
    "OPENAI_API_KEY": Wire(
        completions.model_at,
        completions.said,
        [completions.chunk({"reasoning_content": ANSWERED})],
        [*completions.said("Well."), completions.call(0, '{"room": ', name="rent")],
        [completions.END, completions.usage(7, 3), completions.DONE],
    ),
    "ANTHROPIC_API_KEY": Wire(
        messages.model_at,
        lambda *pieces: [messages.START, *messages.text(*pieces)],
        [messages.START, *messages.block(0, "thinking", THOUGHT)[:-1]],
        [messages.START, *messages.call(0, "rent", '{"room": ')[:-1]],
        messages.end(),
    ),
}


@pytest.fixture(params=WIRES)
def key_env(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(request.param, KEY)
    return str(request.param)


@pytest.fixture
def wire(key_env: str) -> Wire:
    return WIRES[key_env]


@pytest.mark.shows("gateway-21", "gateway-93")
@pytest.mark.parametrize("pieces", [("A", " room?"), ("1 ", "<")], ids=["plain", "like the beginning of a thought"])
async def test_the_text_comes_in_pieces_and_the_servers_own_count_comes_last(
    wire: Wire, pieces: tuple[str, ...]
) -> None:
    async with open_wire_server(Answer([*wire.text(*pieces), *wire.end])) as server:
        assert await ask(wire.model_at(server)) == ([*pieces, Usage(3, 7)], None)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, KeyRefused, "refused the key in ${} (HTTP 401)"),
        (403, KeyRefused, "refused the key in ${} (HTTP 403)"),
        (404, ModelNotFound, "has no model "),
        (400, ModelError, "refused the request (HTTP 400)"),
        (500, ModelServerError, "failed (HTTP 500)"),
        (503, ModelServerError, "failed (HTTP 503)"),
        (429, RateLimitError, "limits requests (HTTP 429)"),
        (529, RateLimitError, "limits requests (HTTP 529)"),
        (204, ModelError, "refused the request (HTTP 204)"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_its_kind(
    wire: Wire, key_env: str, status: int, kind: type[ModelError], words: str
) -> None:
    body = event({"type": "error", "error": {"type": "api_error", "message": f"{KEY} said {SAID}"}})
    headers = {"Content-Type": "application/json", "Retry-After": "3", "x-should-retry": "true"}
    async with open_wire_server(Answer((body,) if status != 204 else (Cut(),), status, headers)) as server:
        outputs, error = await ask(wire.model_at(server))
        assert len(server.requests) == 1
    assert (outputs, type(error)) == ([], kind)
    assert words.format(key_env) in str(error)
    assert str(error).startswith("127.0.0.1:")
    assert error is not None
    assert (error.__cause__, error.__context__) == (None, None)
    assert getattr(error, "retry_after", 3.0) == 3.0
    assert not [secret for secret in SECRETS if secret in quoted(error)]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
@pytest.mark.parametrize("is_debug", [True, False])
async def test_a_developer_is_shown_what_the_server_says_and_the_log_has_it_at_debug_without_the_conversation(
    wire: Wire, status: int, is_debug: bool, caplog: pytest.LogCaptureFixture
) -> None:
    message = f"model needs 9 GB,\nnot 4\x1b[2J: {SAID} {KEY} password=hunter2 " + "x" * 600
    body = json.dumps({"error": {"message": message, "code": 7}})
    shown: list[str] = []
    caplog.set_level(logging.DEBUG if is_debug else logging.INFO, "footlights")
    with watch_failures(lambda what, error: shown.append(f"{what}: {error}")):
        async with open_wire_server(Answer((body,), status, {"Content-Type": "application/json"})) as server:
            _, error = await ask(wire.model_at(server))
    (told,) = shown
    assert told.startswith(f"127.0.0.1:{server.port} answered with HTTP {status}, and said: model needs 9 GB, not 4")
    assert SAID in told
    assert told.isprintable()
    assert len(told) < 600
    assert not [secret for secret in (KEY, "hunter2") if secret in told]
    assert "9 GB" not in quoted(error)
    lines = [record.getMessage() for record in caplog.records if record.name == "footlights.models"]
    assert len(lines) == is_debug
    assert all("model needs 9 GB, not 4" in line for line in lines)
    assert not [secret for secret in (*SECRETS, "hunter2") if secret in caplog.text]


async def test_without_a_developer_a_refusal_is_not_read(wire: Wire) -> None:
    async with open_wire_server(Answer((event({"message": SAID}), Stall()), 500)) as server:
        _, error = await ask(wire.model_at(server))
    assert isinstance(error, ModelServerError)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": SAID}}),
        (400, {"error": {"code": "context_length_exceeded", "message": SAID}}),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": f"prompt is too long: {SAID}"}}),
        (413, {"message": f"This model's maximum context length is 4096 tokens: {SAID}"}),
    ],
)
async def test_a_server_that_finds_the_prompt_too_large_is_understood_and_not_quoted(
    wire: Wire, status: int, body: dict[str, object]
) -> None:
    async with open_wire_server(Answer((event(body),), status, {"Content-Type": "application/json"})) as server:
        outputs, error = await ask(wire.model_at(server))
    assert (outputs, type(error)) == ([], PromptTooLarge)
    assert not [secret for secret in SECRETS if secret in quoted(error)]


async def test_a_refusal_without_an_end_is_not_waited_for(wire: Wire, mock_clock: trio.testing.MockClock) -> None:
    async with (
        open_wire_server(Answer((event({"why": "slow"}), Stall()), 400)) as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(let_time_pass_after, server.stalled, mock_clock)
        outputs, error = await ask(wire.model_at(server))
        await server.left.wait()
        nursery.cancel_scope.cancel()
    assert (outputs, type(error)) == ([], ModelError)
    assert "refused the request (HTTP 400)" in str(error)


@pytest.mark.parametrize(("part", "silent"), [([], True), ([], False), ([ANSWERED], False)])
async def test_a_server_that_falls_silent_times_out_and_is_left(
    wire: Wire, part: list[str], silent: bool, mock_clock: trio.testing.MockClock
) -> None:
    answer = Answer([*(wire.text(*part) if part else []), Stall()], silent=silent)
    async with open_wire_server(answer) as server, trio.open_nursery() as nursery:
        nursery.start_soon(let_time_pass_after, server.stalled, mock_clock)
        outputs, error = await ask(wire.model_at(server))
        await server.left.wait()
        nursery.cancel_scope.cancel()
    assert (outputs, type(error)) == (part, TimeoutError)
    assert "was silent for 60 seconds" in str(error)
    assert quoted(error) == repr(error) + "{}"


async def test_a_server_that_is_not_there_is_named(wire: Wire) -> None:
    async with open_wire_server() as server:
        pass
    outputs, error = await ask(wire.model_at(server))
    assert (outputs, type(error)) == ([], ModelUnreachable)
    sentence = f"127.0.0.1:{server.port} cannot be reached (ConnectError)."
    assert quoted(error) == f"ModelUnreachable('{sentence}')" + repr({"sentence": sentence, "retry_after": None})


async def test_a_connection_is_used_again_and_closed_when_the_model_is_unloaded(wire: Wire) -> None:
    reports: list[float] = []
    whole = Answer([*wire.text("A", " room?"), *wire.end])
    async with open_wire_server(whole, whole) as server:
        model = wire.model_at(server)
        states = [model.warm_state]
        await model.load(reports.append)
        states.append(model.warm_state)
        for _ in range(2):
            async with aclosing(model.generate(Prompt(SAID))) as stream:
                assert [item async for item in stream] == ["A", " room?", Usage(3, 7)]
        assert [request.connection for request in server.requests] == [1, 1]
        await model.unload()
        await server.left.wait()
        states.append(model.warm_state)
        await model.unload()
    assert states == [WarmState.WARM, WarmState.HOT, WarmState.WARM]
    assert reports == [1.0]


@pytest.mark.parametrize("where", ["before the head", "before the text", "text", "thought", "call"])
async def test_a_cancel_closes_the_request_wherever_it_comes(wire: Wire, where: str) -> None:
    sent = {"text": wire.text(ANSWERED), "thought": wire.thought, "call": wire.call}.get(where, ())
    async with open_wire_server(Answer([*sent, Stall()], silent=where == "before the head")) as server:
        model = wire.model_at(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, model)
            await server.stalled.wait()
            assert not server.left.is_set()
            nursery.cancel_scope.cancel()
        await server.left.wait()


async def test_closing_the_round_closes_the_request(wire: Wire) -> None:
    async with open_wire_server(Answer([*wire.text(ANSWERED), Stall()])) as server:
        model = wire.model_at(server)
        async with aclosing(model.generate(Prompt(SAID))) as stream:
            assert await anext(stream) == ANSWERED
        await server.left.wait()
        await model.unload()


HALF = "\ud800"


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(SAID + HALF),
        Prompt(SAID, SAID + HALF),
        Prompt(SAID, tools=(ToolOffer("rent", HALF),)),
        Prompt(SAID, rounds=(ToolRound("", (ToolExchange(ToolRequest("rent", {}), SAID + HALF),)),)),
    ],
)
async def test_what_cannot_be_sent_is_an_error_that_does_not_hold_it(wire: Wire, prompt: Prompt) -> None:
    async with open_wire_server() as server:
        outputs, error = await ask(wire.model_at(server), prompt)
        assert server.requests == []
    assert (outputs, type(error)) == ([], ModelError)
    assert "cannot be sent" in str(error)
    assert error is not None
    assert (error.__cause__, error.__context__) == (None, None)
