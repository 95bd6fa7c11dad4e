"""Model servers of one's own machine: what they offer, what is chosen, and a sentence for each that does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights.testing import cancel_everywhere
from footlights_actors.models.own_servers import (
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OWN_SERVERS,
    OfferedModel,
    ServerReport,
    best,
    find_models,
    lm_studio_models,
    ollama_models,
    openai_models,
)
from tests.kit.models.vendor_servers import (
    LLAMA_CPP_MODELS,
    LM_STUDIO_MODELS,
    OLLAMA_TAGS,
    open_vendor_server,
    tag,
)

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights_actors.models.own_servers import OwnServer
    from tests.kit.models.vendor_servers import VendorServer


def at(server: VendorServer, kind: OwnServer) -> OwnServer:
    return evolve(kind, address=server.address)


async def asked(kind: OwnServer, lists: dict[str, object], status: int = 200) -> ServerReport:
    async with open_vendor_server(lists, status) as server:
        [report] = await find_models([at(server, kind)])
    return evolve(report, problem=report.problem and report.problem.replace(server.address, "It"))


async def test_all_three_are_asked_in_their_own_words_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:9")
    async with (
        open_vendor_server({"/api/tags": OLLAMA_TAGS}) as ollama,
        open_vendor_server({"/api/v0/models": LM_STUDIO_MODELS}) as studio,
        open_vendor_server({"/v1/models": LLAMA_CPP_MODELS}) as llama,
    ):
        reports = await find_models([at(ollama, OLLAMA), at(studio, LM_STUDIO), at(llama, LLAMA_CPP)])
        assert all("authorization" not in headers for each in (ollama, studio, llama) for _, headers in each.asked)
    assert [len(report.models) for report in reports] == [5, 3, 1]
    assert [report.problem for report in reports] == [None] * 3
    found = best(reports)
    assert found is not None
    assert (found[0].name, found[1].name) == ("Ollama", "qwen3:8b")
    found = best(reports[1:])
    assert found is not None
    assert (found[0].name, found[1].name) == ("LM Studio", "meta-llama-3.1-8b-instruct")
    found = best(reports[2:])
    assert found is not None
    assert found[1] == OfferedModel(name="/models/Qwen3 4B.gguf", parameters=4_022_468_096)


def test_only_loopback_addresses_are_ever_asked() -> None:
    assert [server.address for server in OWN_SERVERS] == ["127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080"]
    assert [server.base_url for server in OWN_SERVERS] == [f"http://{each.address}/v1" for each in OWN_SERVERS]


def test_what_is_forwarded_embeds_or_is_a_base_model_is_never_chosen() -> None:
    report = ServerReport(server=OLLAMA, models=tuple(ollama_models(OLLAMA_TAGS)))
    assert [each.name for each in report.models if each.remote] == ["gpt-oss:120b-cloud"]
    assert [each.name for each in report.models if not each.chats] == ["nomic-embed-text:latest", "llama3:70b-text"]
    assert best([evolve(report, models=tuple(each for each in report.models if each.remote or not each.chats))]) is None


@pytest.mark.parametrize(
    ("name", "parameters", "chats"),
    [
        ("qwen3-30b-a3b", 30e9, True),
        ("mixtral-8x7b-instruct-v0.1", 56e9, True),
        ("smollm2-135m-instruct", 135e6, True),
        ("gemma-3-1b-it-qat", 1e9, True),
        ("gemma-3-1b-pt", 1e9, False),
        ("qwen2.5-0.5b-base", 0.5e9, False),
        ("bge-m3", 0, False),
        ("jina-reranker-v2", 0, False),
        ("phi4", 0, True),
    ],
)
def test_a_name_says_how_large_a_model_is_and_what_for(name: str, parameters: float, chats: bool) -> None:
    [model] = openai_models({"data": [{"id": name}]})
    assert (model.parameters, model.chats) == (parameters, chats)
    [model] = lm_studio_models({"data": [{"id": name, "type": "llm"}]})
    assert (model.parameters, model.chats) == (parameters, chats)


async def test_an_older_lm_studio_lists_its_models_as_openai_does() -> None:
    report = await asked(LM_STUDIO, {"/v1/models": {"data": [{"id": "qwen3-4b", "object": "model"}]}})
    assert [each.name for each in report.models] == ["qwen3-4b"]


NO_VENDOR: list[object] = [
    {},
    [],
    {"models": {}},
    {"models": [5]},
    {"models": [{"name": 5}]},
    {"models": [{"name": ""}]},
    {"models": [{"name": "\x1b[31m"}]},
    {"models": [{"name": "x" * 201}]},
    {"models": [tag("a", "1B") | {"details": "x"}]},
]


@pytest.mark.parametrize("document", NO_VENDOR)
async def test_something_else_on_the_port_is_no_model_server(document: object) -> None:
    report = await asked(OLLAMA, {"/api/tags": document})
    assert (report.models, report.problem) == ((), "It answers, but not as Ollama does")


@pytest.mark.parametrize(
    ("lists", "status", "problem"),
    [
        ({}, 200, "It answers, but not as Ollama does"),
        ({"/api/tags": OLLAMA_TAGS}, 500, "It answers with HTTP 500"),
        ({"/api/tags": b"<html>"}, 200, "It answers with something else"),
        ({"/api/tags": b" " * 4_000_001}, 200, "It answers with too much"),
    ],
)
async def test_each_trouble_has_a_sentence(lists: dict[str, object], status: int, problem: str) -> None:
    assert (await asked(OLLAMA, lists, status)).problem == problem


async def test_nobody_there_is_said_in_a_line() -> None:
    async with open_vendor_server({}) as server:
        pass
    [report] = await find_models([at(server, LLAMA_CPP)])
    assert report.problem == f"{server.address} does not answer"


async def test_a_server_that_only_listens_delays_nobody_for_long(mock_clock: MockClock) -> None:
    async with (
        open_vendor_server({}, silent=True) as silent,
        open_vendor_server({"/v1/models": LLAMA_CPP_MODELS}) as llama,
        trio.open_nursery() as nursery,
    ):
        found: list[ServerReport] = []

        async def find() -> None:
            found.extend(await find_models([at(silent, OLLAMA), at(llama, LLAMA_CPP)]))

        nursery.start_soon(find)
        await silent.has_asked.wait()
        await llama.has_asked.wait()
        while not found:
            await trio.testing.wait_all_tasks_blocked(0.005)
            mock_clock.jump(0.6)
    assert found[0].problem == f"{silent.address} took longer than 1 s to answer"
    assert [each.name for each in found[1].models] == ["/models/Qwen3 4B.gguf"]


def test_asking_can_be_cancelled_everywhere() -> None:
    async def scenario() -> None:
        async with open_vendor_server({"/api/tags": OLLAMA_TAGS}) as server:
            await find_models([at(server, OLLAMA)], timeout=600)

    cancel_everywhere(scenario, orders=1)


@pytest.mark.parametrize("size", ["9" * 3_000_000, "9" * 5_000 + "x7b", "1x" * 1_000_000, "7.6B" + "9" * 3_000_000])
async def test_a_size_without_end_neither_freezes_nor_fails(size: str) -> None:
    models = {"models": [{"name": "bard", "details": {"parameter_size": size}}]}
    report = await asked(OLLAMA, {"/api/tags": models})
    assert [model.name for model in report.models] == ["bard"]
