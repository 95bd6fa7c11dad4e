"""The OpenAI-compatible driver against a real server on loopback that speaks the real wire format, well and badly."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights.errors import (
    ExtraMissing,
    ModelError,
    ModelLoadFailed,
    ModelUnreachable,
    RateLimitError,
    RegistrationError,
    StreamError,
)
from footlights.models.model import ModelTraits, Prompt, ToolExchange, ToolOffer, ToolRequest, ToolRound, Usage
from footlights.models.sampling import Sampling
from footlights_actors.models import http_stream
from footlights_actors.models.openai import OpenAIModel
from tests.kit.models.openai_wire import DONE, END, WHOLE, call, chunk, model_at, said, usage
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
    event,
    open_wire_server,
    quoted,
)

if TYPE_CHECKING:
    from pathlib import Path

    from footlights.models.model import Output


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


async def ask_once(*steps: Step, prompt: Prompt | None = None, **options: Any) -> tuple[list[Output], Any]:
    async with open_wire_server(Answer(steps)) as server:
        return await ask(model_at(server, **options), prompt)


async def test_the_request_says_what_the_prompt_says_and_carries_the_key() -> None:
    room = ToolRequest("rent", {"room": 2})
    prompt = Prompt(
        "A room?",
        "You are an innkeeper.",
        (ToolRound("Well.", (ToolExchange(room, {"paid": True}), ToolExchange(room, None, "taken"))),),
        (ToolOffer("rent", "Rents a room."),),
        sampling=Sampling(temperature=0.2),
        max_tokens=50,
    )
    async with open_wire_server(Answer(WHOLE)) as server:
        await ask(model_at(server), prompt)
        [request] = server.requests
    assert request.target == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    rented = {"type": "function", "function": {"name": "rent", "arguments": '{"room": 2}'}}
    assert request.body == {
        "model": "bard",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.2,
        "max_tokens": 50,
        "messages": [
            {"role": "system", "content": "You are an innkeeper."},
            {"role": "user", "content": "A room?"},
            {
                "role": "assistant",
                "content": "Well.",
                "tool_calls": [{"id": "call_1_1", **rented}, {"id": "call_1_2", **rented}],
            },
            {"role": "tool", "tool_call_id": "call_1_1", "content": '{"paid": true}'},
            {"role": "tool", "tool_call_id": "call_1_2", "content": '{"error": "taken"}'},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "rent", "description": "Rents a room.", "parameters": {"type": "object"}},
            }
        ],
    }


async def test_a_model_may_want_another_field_and_no_temperature() -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        await ask(model_at(server, max_tokens_field="max_completion_tokens", send_sampling=False))
        [request] = server.requests
    assert request.body["max_completion_tokens"] == 4_000
    assert not {"max_tokens", "temperature", "tools"} & set(request.body)


EVERYTHING = Sampling(
    temperature=0.5, top_p=0.9, min_p=0.1, repeat_penalty=1.1, frequency_penalty=0.2, stop=["\n"], seed=7, max_tokens=60
)


@pytest.mark.parametrize("extra", [None, False, True])
async def test_sampling_is_sent_as_the_api_names_it_and_what_it_lacks_only_where_it_may_be(extra: bool | None) -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        await ask(model_at(server, extra_sampling=extra), Prompt(SAID, sampling=EVERYTHING, max_tokens=20))
        [request] = server.requests
    standard = {"temperature": 0.5, "top_p": 0.9, "frequency_penalty": 0.2, "stop": ["\n"], "seed": 7}
    beyond = {"min_p": 0.1, "repeat_penalty": 1.1, "repetition_penalty": 1.1}
    assert standard.items() <= request.body.items()
    assert request.body["max_tokens"] == 20
    assert beyond.items() <= request.body.items() if extra is not False else not beyond.keys() & request.body.keys()


def test_a_model_elsewhere_is_not_sent_what_its_api_may_refuse() -> None:
    model = OpenAIModel("bard", base_url="https://api.openai.com/v1", sampling=EVERYTHING)
    assert model.traits.sampling == EVERYTHING
    body = model._interface.body(Prompt(SAID, sampling=EVERYTHING))  # pyright: ignore[reportPrivateUsage]
    assert not {"min_p", "repeat_penalty", "repetition_penalty"} & body.keys()


@pytest.mark.parametrize("key_env", ["NO_SUCH_KEY", None])
async def test_a_server_that_wants_no_key_works_without_one(key_env: str | None) -> None:
    async with open_wire_server(Answer(WHOLE)) as server:
        outputs, error = await ask(model_at(server, key_env=key_env))
        [request] = server.requests
    assert (outputs[0], error) == ("A", None)
    assert "authorization" not in request.headers


async def test_a_key_that_no_header_can_hold_is_refused_without_being_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n{KEY}")
    outputs, error = await ask_once(*WHOLE)
    assert (outputs, str(error)) == ([], "The value of $OPENAI_API_KEY has characters that no key has.")
    assert KEY not in quoted(error)


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    outputs, error = await ask_once(
        *said("Well."),
        call(0, "", id="call_a", type="function", name="rent"),
        call(0, '{"ro'),
        call(0, 'om": 2}'),
        call(1, '{"tea": true}', id="call_b", type="function", name="brew"),
        chunk({}, "tool_calls"),
        usage(9, 30),
        DONE,
    )
    assert error is None
    assert outputs == ["Well.", ToolRequest("rent", {"room": 2}), ToolRequest("brew", {"tea": True}), Usage(30, 9)]


@pytest.mark.shows("narration-2")
@pytest.mark.parametrize(
    "hidden",
    [
        [chunk({"reasoning_content": ANSWERED}), chunk({"reasoning_content": ANSWERED, "content": None})],
        [chunk({"reasoning": ANSWERED})],
        said("<think>", ANSWERED, "</think>"),
        said("<th", "ink>" + ANSWERED, "</thi", "nk>\n\n"),
    ],
)
async def test_no_thought_is_ever_shown(hidden: list[str]) -> None:
    outputs, error = await ask_once(*hidden, *WHOLE)
    assert (outputs, error) == (["A", " room?", Usage(3, 7)], None)


async def test_a_model_that_works_and_has_nothing_to_show_gives_signs_of_life() -> None:
    steps = (chunk({"reasoning_content": ANSWERED}), *said("<think>hm", "</think>", "A"), call(0, "{}", name="rent"))
    async with open_wire_server(Answer((*steps, END, usage(7, 3), DONE))) as server:
        model = model_at(server)
        async with aclosing(model.generate(Prompt(SAID))) as stream:
            outputs = [item async for item in stream]
        await model.unload()
    assert outputs == ["", "", "", "A", "", ToolRequest("rent", {}), Usage(3, 7)]


async def test_a_model_may_begin_in_a_thought() -> None:
    outputs, _ = await ask_once(*said(ANSWERED, "</think>", "A room?"), END, DONE, begins_in_thought=True)
    assert outputs == ["A room?"]


@pytest.mark.parametrize(
    ("key_env", "words"), [("NO_SUCH_KEY", "$NO_SUCH_KEY is not set"), (None, "none is configured")]
)
async def test_a_missing_key_is_named_as_missing(key_env: str | None, words: str) -> None:
    async with open_wire_server(Answer((), 401)) as server:
        _, error = await ask(model_at(server, key_env=key_env))
    assert words in str(error)


@pytest.mark.shows("gateway-19")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "9" * 400}, 86_400.0),
        ({"Retry-After": "Sat, 21 Nov 2099 07:28:30 GMT", "Date": "Sat, 21 Nov 2026 07:28:00 GMT"}, 86_400.0),
        ({"Retry-After": "Sat, 21 Nov 2026 07:28:30 GMT", "Date": "Sat, 21 Nov 2026 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Sat, 21 Nov 2026 07:28:00 GMT", "Date": "Sat, 21 Nov 2026 07:28:30 GMT"}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 2026 07:28:30 GMT"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
async def test_a_rate_limit_says_when_to_ask_again(headers: dict[str, str], seconds: float | None) -> None:
    async with open_wire_server(Answer((), 429, headers)) as server:
        _, error = await ask(model_at(server))
    assert isinstance(error, RateLimitError)
    assert error.retry_after == seconds


async def test_a_redirect_is_not_followed() -> None:
    async with open_wire_server(Answer(WHOLE)) as elsewhere:
        async with open_wire_server(Answer((), 307, {"Location": f"{elsewhere.url}/v1/chat/completions"})) as server:
            _, error = await ask(model_at(server))
        assert "redirect (HTTP 307)" in str(error)
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Content-Type": "application/json"}, "did not answer with a stream"),
        ({**EVENT_STREAM, "Content-Encoding": "gzip"}, "compressed"),
    ],
)
async def test_an_answer_of_another_kind_is_refused(headers: dict[str, str], words: str) -> None:
    async with open_wire_server(Answer(WHOLE, headers=headers)) as server:
        outputs, error = await ask(model_at(server))
    assert (outputs, type(error)) == ([], ModelError)
    assert words in str(error)


@pytest.mark.shows("gateway-18")
@pytest.mark.parametrize(
    "steps",
    [
        (*said(ANSWERED), Cut()),
        said(ANSWERED),
        (*said(ANSWERED), Raw(b"this is no chunk" + SAID.encode() + b"\r\n"), Cut()),
        (*said(ANSWERED), event("this is no JSON " + SAID)),
        (*said(ANSWERED), event([SAID])),
        (*said(ANSWERED), event({"choices": SAID})),
        (*said(ANSWERED), event({"choices": [SAID]})),
        (*said(ANSWERED), chunk({"content": [SAID]})),
        (*said(ANSWERED), chunk({"refusal": SAID})),
        (*said(ANSWERED), chunk({}, "content_filter"), DONE),
        (*said(ANSWERED), event({"error": {"message": SAID, "code": 500}})),
        (*said(ANSWERED), event({"error": SAID})),
        (*said(ANSWERED), event({"error": {"type": [SAID], "code": {"x": SAID}}})),
        (*said(ANSWERED), event("x" * 1_000_001)),
        (*said(ANSWERED), call(0, '{"room": ', name="rent"), chunk({}, "length"), DONE),
    ],
)
async def test_an_answer_that_breaks_off_gives_its_part_and_then_a_stream_error(steps: tuple[Step, ...]) -> None:
    outputs, error = await ask_once(*steps)
    assert (outputs, type(error)) == ([ANSWERED], StreamError)
    assert not [secret for secret in SECRETS if secret in quoted(error)]


async def test_a_tool_call_that_makes_no_sense_is_a_model_error() -> None:
    _, error = await ask_once(chunk({"tool_calls": [{"index": 0, "function": {"arguments": SAID}}]}))
    assert isinstance(error, ModelError)
    assert SAID not in quoted(error)


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "overloaded_error"])
async def test_a_server_may_want_to_be_asked_later_in_the_middle_of_its_answer(code: str) -> None:
    outputs, error = await ask_once(*said(ANSWERED), event({"error": {"message": SAID, "code": code}}))
    assert (outputs, type(error)) == ([ANSWERED], RateLimitError)


async def test_what_is_not_http_is_no_answer() -> None:
    async with open_wire_server(Answer((Raw(f"{SAID} {ANSWERED}\r\n\r\n".encode()), Cut()), silent=True)) as server:
        outputs, error = await ask(model_at(server))
    assert (outputs, type(error)) == ([], ModelUnreachable)
    assert "did not answer" in str(error)
    assert not [secret for secret in SECRETS if secret in quoted(error)]


async def test_a_server_that_cannot_speak_tls_is_not_spoken_to() -> None:
    heard = bytearray()

    async def hang_up(stream: trio.SocketStream) -> None:
        heard.extend(await stream.receive_some())
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, hang_up, [listener])
        port = listener.socket.getsockname()[1]
        outputs, error = await ask(OpenAIModel("bard", base_url=f"https://127.0.0.1:{port}/v1"))
        nursery.cancel_scope.cancel()
    assert (outputs, type(error)) == ([], ModelUnreachable)
    assert str(error) == f"127.0.0.1:{port} cannot be reached (ConnectError)."
    assert heard
    assert KEY.encode() not in heard


async def test_a_stream_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_stream, "MAX_STREAM_BYTES", 1_000)
    async with open_wire_server(Answer((*said(*("x" * 300 for _ in range(9))), Stall()))) as server:
        outputs, error = await ask(model_at(server))
        await server.left.wait()
    assert (len(outputs), type(error), str(error)) == (1, StreamError, "The model's answer is too long.")


async def test_a_server_that_says_more_than_it_may_is_stopped() -> None:
    async with open_wire_server(Answer((*said(*["a"] * 50), Stall()))) as server:
        outputs, error = await ask(model_at(server), Prompt(SAID, max_tokens=5))
        await server.left.wait()
    assert error is None
    assert outputs == [*["a"] * 13, Usage(14, cut=True)]


@pytest.mark.parametrize("delta", [{"reasoning": "a", "content": ""}, {"reasoning_content": "a"}])
async def test_hidden_text_counts_against_the_limit(delta: dict[str, str]) -> None:
    async with open_wire_server(Answer((*[chunk(delta)] * 50, Stall()))) as server:
        outputs, _ = await ask(model_at(server), Prompt(SAID, max_tokens=5))
    assert outputs == [Usage(14, cut=True)]


async def test_a_reason_to_finish_is_an_end_even_without_the_marker() -> None:
    assert await ask_once(*said("A room?"), chunk({}, "length")) == (["A room?", Usage(0, cut=True)], None)


async def test_a_server_that_goes_on_after_the_end_is_not_listened_to() -> None:
    for rest in (Stall(), Cut(), event("more"), Raw(b"no chunk\r\n")):
        outputs, error = await ask_once(*WHOLE, rest)
        assert (outputs, error) == (["A", " room?", Usage(3, 7)], None)


@pytest.mark.parametrize("count", ["3", -5, True, 2**60])
async def test_counts_that_are_none_are_not_believed(count: Any) -> None:
    outputs, _ = await ask_once(*said("A"), END, chunk(None, usage={"completion_tokens": count}), DONE)
    assert outputs == ["A"]


async def test_no_cookie_goes_from_one_request_to_another() -> None:
    cookie = {**EVENT_STREAM, "Set-Cookie": "who=one; Path=/"}
    async with open_wire_server(Answer(WHOLE, headers=cookie), Answer(WHOLE)) as server:
        model = model_at(server)
        for _ in range(2):
            async with aclosing(model.generate(Prompt(SAID))) as stream:
                assert [item async for item in stream] == ["A", " room?", Usage(3, 7)]
        await model.unload()
        assert ["cookie" in request.headers for request in server.requests] == [False, False]


async def test_no_log_quotes_what_a_server_says_in_its_head(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    words = f"HTTP/1.1 200 {ANSWERED}\r\nContent-Type: text/event-stream\r\nX-Echo: {SAID}\r\n\r\n"
    async with open_wire_server(Answer((Raw((words + "".join(WHOLE)).encode()), Cut()), silent=True)) as server:
        assert await ask(model_at(server)) == (["A", " room?", Usage(3, 7)], None)
    logging.getLogger("httpx2").info("What else it %s.", "says")
    lines = [record.getMessage() for record in caplog.records]
    assert any("chat/completions" in line and " 200 " in line for line in lines)
    assert lines[-1] == "What else it says."
    assert not [line for line in lines if any(secret in line for secret in SECRETS)]


async def test_closing_the_round_with_garbage_unread_closes_the_request() -> None:
    async with open_wire_server(Answer((Raw(b"4\r\n:hm\n\r\nzz\r\n"), *said("A"), Stall()))) as server:
        model = model_at(server)
        _, error = await ask(model)
        await server.left.wait()
    assert isinstance(error, StreamError)


@pytest.mark.parametrize(
    ("base_url", "remote"),
    [
        ("http://127.0.0.1:8080/v1", False),
        ("http://127.1.2.3/v1", False),
        ("http://[::1]:8080/v1/", False),
        ("http://localhost:11434/v1", False),
        ("https://api.openai.com/v1", True),
        ("http://192.168.0.7:8080/v1", True),
        ("http://127.0.0.1.example.com/v1", True),
    ],
)
def test_prompts_stay_on_the_machine_only_if_the_server_is_local(base_url: str, remote: bool) -> None:
    assert OpenAIModel("bard", base_url=base_url).traits.remote is remote
    assert OpenAIModel("bard", base_url=base_url, remote=not remote).traits.remote is not remote


def test_a_model_is_called_as_the_server_calls_it_or_otherwise() -> None:
    assert OpenAIModel("bard", base_url="http://localhost/v1").model_id == "bard"
    assert OpenAIModel("bard", base_url="http://localhost/v1", model_id="innkeeper").model_id == "innkeeper"


@pytest.mark.parametrize(
    "base_url",
    [
        *("", "localhost:8080", "ftp://localhost", "http://", "http://[::1", "http://localhost:many"),
        *(f"http://{KEY}@localhost", f"http://localhost?key={KEY}", f"http://localhost#{KEY}"),
        *(
            "http://exa\nmple/v1",
            "http://example/v1\t",
            "http://exa mple/v1",
            "http://example/\x7f",
            "http://example/\x00",
        ),
        *("http://example/\x85", "http://localhost:99999/v1", "http://999.1.1.1/v1"),
    ],
)
def test_an_address_that_cannot_work_or_holds_a_key_is_refused(base_url: str) -> None:
    with pytest.raises(RegistrationError) as refused:
        OpenAIModel("bard", base_url=base_url)
    assert KEY not in quoted(refused.value)


def test_it_has_as_much_room_as_the_host_says() -> None:
    here = "http://localhost/v1"
    assert OpenAIModel("bard", base_url=here).traits == ModelTraits()
    assert OpenAIModel("bard", base_url=here, context_tokens=2048, slots=1).traits == ModelTraits(
        context_tokens=2048, slots=1
    )
    wrongs: list[dict[str, Any]] = [{"context_tokens": 0}, {"slots": 0}, {"slots": -1, "context_tokens": 5}]
    for wrong in wrongs:
        with pytest.raises(RegistrationError, match="at least 1"):
            OpenAIModel("bard", base_url=here, **wrong)


def test_a_timeout_that_cannot_work_is_refused() -> None:
    with pytest.raises(RegistrationError):
        OpenAIModel("bard", base_url="http://localhost", silence_timeout=0)


async def test_a_proxy_is_used_for_other_machines_and_never_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_wire_server(Answer(WHOLE)) as proxy, open_wire_server(Answer(WHOLE)) as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert (await ask(model_at(server)))[1] is None
        assert proxy.requests == []
        assert (await ask(OpenAIModel("bard", base_url="http://model.example/v1")))[1] is None
        assert [request.target for request in proxy.requests] == ["http://model.example/v1/chat/completions"]


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        (f"socks5://{SAID}:{KEY}@127.0.0.1:9", "pip install socksio"),
        (f"nonsense://{SAID}:{KEY}@127.0.0.1:9", "invalid address"),
        (f"http://{SAID}:{KEY}@127.0.0.1:{ANSWERED}", "invalid address"),
    ],
)
async def test_a_proxy_that_cannot_be_used_is_an_error_that_does_not_quote_its_password(
    proxy: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    outputs, error = await ask(OpenAIModel("bard", base_url="http://model.example/v1"))
    assert outputs == []
    assert isinstance(error, ModelLoadFailed)
    assert isinstance(error, ExtraMissing) is ("socks" in proxy)
    assert why in str(error)
    assert (error.__cause__, error.__context__) == (None, None)
    assert not [secret for secret in SECRETS if secret in quoted(error)]


async def test_certificates_that_are_not_there_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nothing.pem"))
    outputs, error = await ask(OpenAIModel("bard", base_url="https://model.example/v1"))
    assert (outputs, type(error)) == ([], ModelLoadFailed)
    assert "certificates" in str(error)
