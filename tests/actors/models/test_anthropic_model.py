"""The Anthropic driver against a real server on loopback that speaks the documented events, well and badly."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights.errors import RateLimitError, RegistrationError, StreamError
from footlights.models.model import ModelTraits, Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.models.sampling import Sampling
from footlights_actors.models.anthropic import AnthropicModel
from tests.kit.models.anthropic_wire import PING, START, WHOLE, block, call, end, event, model_at, text
from tests.kit.models.wire_server import (
    ANSWERED,
    EVENT_STREAM,
    KEY,
    SAID,
    SECRETS,
    Answer,
    Cut,
    Raw,
    Stall,
    Step,
    ask,
    open_wire_server,
    quoted,
)
from tests.kit.models.wire_server import event as wire_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.models.model import Output


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


async def ask_once(*steps: Step, prompt: Prompt | None = None, **options: Any) -> tuple[list[Output], Any]:
    async with open_wire_server(Answer(steps)) as server:
        return await ask(model_at(server, **options), prompt)


async def test_the_request_says_what_the_prompt_says_and_carries_the_key() -> None:
    room = ToolRequest("rent", {"room": 2})
    exchanges = (ToolExchange(room, {"paid": True}), ToolExchange(room, None, "taken"))
    prompt = Prompt(
        "A room?",
        "You are an innkeeper.",
        (ToolRound("Well.", exchanges), ToolRound(" \n", exchanges[:1])),
        (ToolOffer("rent", "Rents a room."),),
        sampling=Sampling(temperature=0.2),
        max_tokens=50,
    )
    async with open_wire_server(Answer(WHOLE)) as server:
        await ask(model_at(server), prompt)
        [request] = server.requests
    assert request.target == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["x-stainless-read-timeout"] == "60.0"
    rented = {"type": "tool_use", "name": "rent", "input": {"room": 2}}
    paid = {"type": "tool_result", "content": '{"paid": true}'}
    taken = {"type": "tool_result", "tool_use_id": "call_1_2", "content": "taken", "is_error": True}
    assert request.body == {
        "model": "bard",
        "stream": True,
        "max_tokens": 50,
        "system": "You are an innkeeper.",
        "messages": [
            {"role": "user", "content": "A room?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Well."},
                    {"id": "call_1_1", **rented},
                    {"id": "call_1_2", **rented},
                ],
            },
            {"role": "user", "content": [{"tool_use_id": "call_1_1", **paid}, taken]},
            {"role": "assistant", "content": [{"id": "call_2_1", **rented}]},
            {"role": "user", "content": [{"tool_use_id": "call_2_1", **paid}]},
        ],
        "tools": [{"name": "rent", "description": "Rents a room.", "input_schema": {"type": "object"}}],
    }


async def test_a_gateway_may_serve_it_under_a_path() -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        assert (await ask(AnthropicModel("bard", base_url=f"{server.url}/gate/")))[1] is None
        assert server.requests[0].target == "/gate/v1/messages"


async def test_the_version_before_had_a_temperature() -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        prompt = Prompt("A room?", sampling=Sampling(temperature=0.2, top_p=0.9, min_p=0.1, stop=["."]))
        await ask(model_at(server, api_version="2023-06-01", key_env=None), prompt)
        [request] = server.requests
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.body["temperature"] == 0.2
    assert request.body["top_p"] == 0.9
    assert request.body["stop_sequences"] == ["."]
    assert "min_p" not in request.body
    assert not {"system", "tools"} & set(request.body)
    assert not {"authorization", "x-api-key"} & set(request.headers)


@pytest.mark.parametrize("key_env", [None, "INN_KEY"])
async def test_no_key_but_the_one_that_is_named_is_sent_and_only_to_its_server(
    key_env: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}\nX-API-Key: {KEY}\nCookie: {KEY}")
    async with open_wire_server(Answer(WHOLE), Answer(WHOLE)) as server:
        model = model_at(server, key_env=key_env)
        assert (await ask(model))[1] is None
        monkeypatch.setenv("INN_KEY", "sk-inn")
        assert (await ask(model))[1] is None
        sent = [request.headers.get("authorization") for request in server.requests]
        assert KEY not in str([request.headers for request in server.requests])
    assert sent == [None, "Bearer sk-inn" if key_env else None]


HEADERS_THAT_BREAK_A_REQUEST = [
    "Content-Length: 5",
    "Host: elsewhere",
    "Accept-Encoding: gzip",
    "anthropic-version: 1",
    f"Bad Name {KEY}: v",
    f"X-A: caf\u00e9 {KEY}\x01",
]


@pytest.mark.parametrize("headers", HEADERS_THAT_BREAK_A_REQUEST)
async def test_headers_of_the_environment_cannot_break_a_request(headers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", headers)
    async with open_wire_server(Answer(WHOLE)) as server:
        assert (await ask(model_at(server)))[1] is None
        [request] = server.requests
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["anthropic-version"] == "2026-10-21"


async def test_no_profile_of_the_sdk_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")
    async with open_wire_server(Answer(WHOLE)) as server:
        assert (await ask(model_at(server)))[1] is None
        assert "authorization" not in server.requests[0].headers


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    outputs, error = await ask_once(
        START,
        *text("Well."),
        *call(1, "rent", "", '{"ro', 'om": 2}'),
        *call(2, "look"),
        *end("tool_use", 30),
    )
    assert error is None
    assert outputs == ["Well.", ToolRequest("rent", {"room": 2}), ToolRequest("look", {}), Usage(30, 7)]


async def test_arguments_may_come_whole_with_the_beginning_of_their_block() -> None:
    whole = block(0, "tool_use", id="a", name="rent", input={"room": 2})
    assert await ask_once(START, *whole, *end("tool_use")) == ([ToolRequest("rent", {"room": 2}), Usage(3, 7)], None)


async def test_every_block_is_a_call_of_its_own() -> None:
    steps = [START, *call(0, "rent", '{"room": 1}'), *call(0, "rent", '{"room": 2}'), *end("tool_use")]
    assert (await ask_once(*steps))[0][:2] == [ToolRequest("rent", {"room": 1}), ToolRequest("rent", {"room": 2})]


@pytest.mark.parametrize("start", [{"input": []}, {"input": [2]}, {"input": "2"}, {"input": 0}])
async def test_arguments_that_are_no_object_are_a_problem(start: dict[str, Any]) -> None:
    outputs, _ = await ask_once(START, *block(0, "tool_use", id="a", name="rent", **start), *end("tool_use"))
    assert outputs == [ToolRequest("rent", {}, "The arguments are not a JSON object."), Usage(3, 7)]


@pytest.mark.parametrize("index", [0, None, [0]])
async def test_what_the_server_does_with_tools_of_its_own_is_passed_over(index: Any) -> None:
    searched = {"type": "input_json_delta", "partial_json": '{"query": "rooms"}'}
    found = {"type": "text_delta", "text": ANSWERED}
    outputs, error = await ask_once(
        START,
        *block(index, "server_tool_use", searched, id="a", name="web_search", input={}),
        *block(index, "web_search_tool_result", found, tool_use_id="a", content=[]),
        *text("A room?", index=index),
        *call(index, "rent", '{"room": 2}'),
        *end(),
    )
    assert (outputs, error) == (["A room?", ToolRequest("rent", {"room": 2}), Usage(3, 7)], None)


@pytest.mark.shows("narration-2")
async def test_no_thought_is_ever_shown() -> None:
    thought = {"type": "thinking_delta", "thinking": ANSWERED}
    outputs, error = await ask_once(
        START,
        *block(0, "thinking", thought, {"type": "signature_delta", "signature": ANSWERED}, thinking=ANSWERED),
        *block(1, "redacted_thinking", data=ANSWERED),
        *text("<thi", "nk>" + ANSWERED, "</think>", "A room?", index=2),
        *end(),
    )
    assert (outputs, error) == (["A room?", Usage(3, 7)], None)


async def test_a_model_that_works_and_has_nothing_to_show_gives_signs_of_life() -> None:
    thought = {"type": "thinking_delta", "thinking": ANSWERED}
    steps = [
        *(START, PING),
        *block(0, "thinking", thought, thought),
        *text("", "<think>hm</think>", "A room?", index=1),
        *call(2, "look", "{", "}"),
        *end(),
    ]
    async with open_wire_server(Answer(steps)) as server:
        model = model_at(server)
        async with aclosing(model.generate(Prompt(SAID))) as stream:
            outputs = [item async for item in stream]
        await model.unload()
    assert outputs == ["", "", "", "", "A room?", "", "", "", ToolRequest("look", {}), Usage(3, 7)]


@pytest.mark.parametrize("count", [-5, True, 2**53, "3"])
async def test_impossible_counts_are_none(count: Any) -> None:
    usage = {"input_tokens": count, "output_tokens": count}
    steps = [event("message_start", message={"usage": usage}), *text("A"), *end(output_tokens=count)]
    assert await ask_once(*steps) == (["A"], None)


async def test_an_impossible_sum_is_none() -> None:
    usage = {"input_tokens": 2**53 - 1, "cache_read_input_tokens": 1}
    steps = [event("message_start", message={"usage": usage}), *text("A"), *end()]
    assert await ask_once(*steps) == (["A", Usage(3)], None)


def test_it_has_as_much_room_as_the_host_says() -> None:
    assert AnthropicModel("claude").traits == ModelTraits(remote=True)
    assert AnthropicModel("claude", context_tokens=200_000, slots=4).traits == ModelTraits(
        remote=True, context_tokens=200_000, slots=4
    )
    with pytest.raises(RegistrationError, match="at least 1"):
        AnthropicModel("claude", context_tokens=0)


async def test_text_may_come_with_the_beginning_of_its_block_and_unknown_things_are_passed_over() -> None:
    outputs, error = await ask_once(
        START,
        event("a_new_event", index=0),
        *block(0, "a_new_block", {"type": "a_new_delta", "text": ANSWERED}, text=ANSWERED),
        *block(1, "text", text="A room?"),
        event("message_delta", delta={"stop_reason": "end_turn"}),
        event("message_stop"),
    )
    assert (outputs, error) == (["A room?", Usage(1, 7)], None)


async def test_an_answer_without_counts_has_no_usage() -> None:
    assert await ask_once(*text("A"), event("message_stop")) == (["A"], None)


@pytest.mark.shows("gateway-18")
@pytest.mark.parametrize(
    "steps",
    [
        (*text(ANSWERED), Cut()),
        text(ANSWERED),
        (*text(ANSWERED), *end()[:1]),
        (*text(ANSWERED), wire_event("this is no JSON " + SAID)),
        (*text(ANSWERED), event("content_block_delta", index=0, delta=SAID)),
        (*text(ANSWERED), event("content_block_delta", index=0, delta={"type": "text_delta", "text": [SAID]})),
        (*text(ANSWERED), event("message_start", message=SAID)),
        (*text(ANSWERED), event("message_delta", delta={}, usage=SAID)),
        (*text(ANSWERED), event("error", error={"type": "api_error", "message": SAID})),
        (*text(ANSWERED), event("error", error={"type": [SAID], "code": {"x": SAID}})),
        (*text(ANSWERED), event("content_block_start", index=1, content_block={"type": [SAID]})),
        (*text(ANSWERED), *end("refusal")),
        (*text(ANSWERED), *call(1, "rent", '{"room": '), *end("max_tokens")),
        (*text(ANSWERED), *call(1, "rent", '{"room": '), *end("model_context_window_exceeded")),
    ],
)
async def test_an_answer_that_breaks_off_gives_its_part_and_then_a_stream_error(steps: list[Step]) -> None:
    outputs, error = await ask_once(START, *steps)
    assert (outputs, type(error)) == ([ANSWERED], StreamError)
    assert not [secret for secret in SECRETS if secret in quoted(error)]


async def test_an_overloaded_server_wants_to_be_asked_later() -> None:
    error = event("error", error={"type": "overloaded_error", "message": SAID})
    outputs, raised = await ask_once(START, *text(ANSWERED), error)
    assert (outputs, type(raised)) == ([ANSWERED], RateLimitError)
    assert raised.retry_after is None


@pytest.mark.parametrize("delta", [{"type": "text_delta", "text": "a"}, {"type": "thinking_delta", "thinking": "a"}])
async def test_a_server_that_says_more_than_it_may_is_stopped(delta: dict[str, str]) -> None:
    async with open_wire_server(Answer((START, *block(0, "text", *[delta] * 50), Stall()))) as server:
        outputs, error = await ask(model_at(server), Prompt(SAID, max_tokens=5))
        await server.left.wait()
    assert error is None
    assert outputs == [*["a"] * (13 if "text" in delta else 0), Usage(14, 7, cut=True)]


IN_A_PROCESS_THAT_HAS_JUST_BEGUN = """
import sys, threading

import trio

from footlights.models.model import Prompt
from footlights_actors.models.anthropic import AnthropicModel

late = []


class Finder:
    def find_spec(self, name, path=None, target=None):
        is_ours_to_avoid = name.partition(".")[0] not in sys.stdlib_module_names
        if is_ours_to_avoid and threading.current_thread() is threading.main_thread():
            late.append(name)


async def main():
    model = AnthropicModel("bard", base_url=sys.argv[1])
    sys.meta_path.insert(0, Finder())
    await model.load(lambda progress: None)
    async for said in model.generate(Prompt("hi")):
        pass
    await model.unload()
    print(late)


trio.run(main)
"""


async def test_nothing_is_imported_where_it_would_hold_up_the_other_turns() -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        done = await trio.run_process(
            [sys.executable, "-c", IN_A_PROCESS_THAT_HAS_JUST_BEGUN, server.url], capture_stdout=True
        )
    assert done.stdout.decode().strip() == "[]"


def test_prompts_leave_the_machine_unless_the_server_is_local() -> None:
    assert AnthropicModel("bard").traits.remote
    assert AnthropicModel("bard", remote=False).traits.remote is False
    assert AnthropicModel("bard", base_url="http://127.0.0.1:8080").traits.remote is False
    assert AnthropicModel("bard", model_id="innkeeper").model_id == "innkeeper"


# -- what is logged


class Heard(logging.Handler):
    """Keeps every record of every logger, whatever its level."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def text(self) -> str:
        return "\n".join(f"{self.format(each)} {each.args}" for each in self.records)


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    levels = [(each, each.level) for each in (logging.root, *loggers)]
    for each, _ in levels:
        each.setLevel(logging.DEBUG)
        each.addHandler(handler)
    yield handler
    for each, level in levels:
        each.setLevel(level)
        each.removeHandler(handler)


ECHO = f"{KEY} {SAID} {ANSWERED}"
ECHOES = {"X-Echo": ECHO, "request-id": ECHO, "anthropic-workspace-id": ECHO}
TALES: dict[str, Answer] = {
    "refused": Answer((ECHO,), 401, {"Content-Type": "application/json", **ECHOES}),
    "later": Answer((ECHO,), 429, {"Retry-After": ECHO, **ECHOES}),
    "failed": Answer((ECHO,), 500, ECHOES),
    "moved": Answer((ECHO,), 302, {"Location": f"/{SAID}", **ECHOES}),
    "said": Answer((START, *text(ANSWERED), *call(1, "rent", f'{{"room": "{SAID}"}}'), *end()), headers=EVENT_STREAM),
    "thought": Answer((START, *block(0, "thinking", {"type": "thinking_delta", "thinking": ANSWERED}), *end())),
    "error": Answer((START, *text(ANSWERED), event("error", error={"type": "api_error", "message": ECHO}))),
    "no JSON": Answer((START, wire_event(ECHO, "message_delta"))),
    "no event": Answer((ECHO,)),
    "no chunk": Answer((START, Raw(f"{ECHO}\r\n".encode()))),
    "no HTTP": Answer((Raw(f"{ECHO}\r\n\r\n".encode()), Cut()), silent=True),
    "a head of words": Answer((Raw(f"HTTP/1.1 200 {ECHO}\r\nX: {ECHO}\r\n\r\n".encode()), Cut()), silent=True),
    "cut": Answer((START, *text(ANSWERED), Cut())),
    "gone": Answer((Cut(),), silent=True),
}


@pytest.mark.parametrize("tale", TALES)
async def test_no_logger_at_any_level_says_the_key_or_what_was_said(tale: str, heard: Heard) -> None:
    room = ToolExchange(ToolRequest("rent", {"room": SAID}), {"paid": SAID})
    prompt = Prompt(SAID, SAID, (ToolRound(ANSWERED, (room,)),), (ToolOffer("rent", SAID),))
    async with open_wire_server(TALES[tale]) as server:
        await ask(model_at(server), prompt)
        assert len(server.requests) == 1
    said = {record.name.partition(".")[0] for record in heard.records}
    assert said >= {"anthropic", "httpcore2"}
    assert not [secret for secret in SECRETS if secret in heard.text()]


async def test_a_request_leaves_no_logger_of_the_sdk_that_is_not_filtered() -> None:
    assert await ask_once(*WHOLE) == (["A", " room?", Usage(3, 7)], None)
    loggers = [name for name in logging.root.manager.loggerDict if name.startswith("anthropic")]
    assert {"anthropic", "anthropic._base_client", "anthropic._response"} <= set(loggers)
    assert [name for name in loggers if not logging.getLogger(name).filters] == []


ASKED_TO_TELL_ALL = {
    "ANTHROPIC_LOG": "debug",
    "ANTHROPIC_OPEN_TELEMETRY": "true",
    "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
}
IN_A_PROCESS_THAT_TELLS_ALL = """
import sys

import trio
from opentelemetry import trace

from footlights.models.model import Prompt
from footlights_actors.models.anthropic import AnthropicModel


class Spy(trace.NoOpTracerProvider):
    def get_tracer(self, *args, **options):
        print("traced", file=sys.stderr)
        return super().get_tracer(*args, **options)


async def main():
    model = AnthropicModel("bard", base_url=sys.argv[1])
    async for said in model.generate(Prompt(sys.argv[2])):
        print(said)
    await model.unload()


trace.set_tracer_provider(Spy())
trio.run(main)
"""


async def test_debug_logging_of_the_sdk_shows_no_secret() -> None:
    async with open_wire_server(Answer((START, *text(ANSWERED), *end()))) as server:
        done = await trio.run_process(
            [sys.executable, "-c", IN_A_PROCESS_THAT_TELLS_ALL, server.url, SAID],
            env={**os.environ, **ASKED_TO_TELL_ALL},
            capture_stdout=True,
            capture_stderr=True,
        )
        [request] = server.requests
    assert done.stdout.decode().split() == [ANSWERED, *str(Usage(3, 7)).split()]
    told = done.stderr.decode()
    assert f"DEBUG] Sending HTTP Request: POST {server.url}/v1/messages" in told
    assert not [secret for secret in (*SECRETS, "traced") if secret in told]
    assert "traceparent" not in request.headers


async def test_the_sdk_is_not_imported_before_a_model_needs_it() -> None:
    asked = "import sys, footlights_actors, footlights_transports.cli.commands; print('anthropic' in sys.modules)"
    done = await trio.run_process([sys.executable, "-c", asked], capture_stdout=True)
    assert done.stdout.split() == [b"False"]
