"""`footlights play --model auto`: the player's own server, then the script, and the reason."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights import InvalidCommand
from footlights_actors.models import own_servers
from footlights_actors.models.own_servers import (
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    OfferedModel,
    ServerReport,
    ollama_models,
    openai_models,
)
from footlights_transports.cli.models.auto import AutoChoice, choice_of, choose_automatically
from footlights_transports.cli.models.choice import tavern_with
from footlights_transports.cli.play import games, standard_io
from tests.kit.command import footlights
from tests.kit.models import openai_wire as completions
from tests.kit.models.vendor_servers import CHAT, LLAMA_CPP_MODELS, OLLAMA_TAGS, open_vendor_server

if TYPE_CHECKING:
    from footlights import Cast
    from footlights_transports.cli.play.standard_io import Opening

GONE = ServerReport(server=OLLAMA, problem="127.0.0.1:11434 does not answer")
STUDIO_GONE = ServerReport(server=LM_STUDIO, problem="127.0.0.1:1234 does not answer")


def test_the_largest_instruct_model_of_the_first_server_speaks() -> None:
    ollama = ServerReport(server=OLLAMA, models=tuple(ollama_models(OLLAMA_TAGS)))
    llama = ServerReport(server=LLAMA_CPP, models=(OfferedModel(name="giant", parameters=1e12),))
    why = "qwen3:8b of Ollama speaks: the largest instruct model there, with 8.2 billion parameters."
    assert choice_of([ollama, STUDIO_GONE, llama]) == AutoChoice("openai:qwen3:8b", "http://127.0.0.1:11434/v1", why)


def test_the_servers_before_it_are_named_with_the_reason() -> None:
    studio = ServerReport(server=LM_STUDIO, models=(OfferedModel(name="bge", chats=False),))
    llama = ServerReport(server=LLAMA_CPP, models=tuple(openai_models({"data": [{"id": "bard"}]})))
    assert choice_of([GONE, studio, llama]).why == (
        "bard of llama.cpp speaks: the largest instruct model there "
        "(Ollama: 127.0.0.1:11434 does not answer; LM Studio: no instruct model)."
    )


def test_without_a_server_the_script_speaks() -> None:
    choice = choice_of([GONE, STUDIO_GONE])
    assert (choice.model, choice.base_url) == ("innkeeper", None)
    assert choice.why == (
        "The scripted innkeeper speaks: there is no other model here "
        "(Ollama: 127.0.0.1:11434 does not answer; LM Studio: 127.0.0.1:1234 does not answer)."
    )


def test_without_the_extra_the_script_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "footlights_actors.models.own_servers")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    choice = choose_automatically()
    assert (
        choice.model,
        choice.why.endswith("without httpx2: install the extra remote (from a checkout: pip install '.[remote]')"),
    ) == (
        "innkeeper",
        True,
    )


def test_a_server_of_ones_own_is_not_named_with_auto() -> None:
    with pytest.raises(InvalidCommand, match="--base-url"):
        choose_automatically("http://127.0.0.1:8080/v1")


def test_what_was_found_gets_neither_key_nor_consent_and_a_name_that_a_cast_can_have() -> None:
    cast = tavern_with("openai:/models/Qwen3 4B.gguf", "http://127.0.0.1:8080/v1", with_key=False)
    assert list(cast.models) == ["Qwen3-4B.gguf", "analyst"]
    assert not cast.remote_models


async def test_the_command_says_which_and_why_and_the_model_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    taken: list[Cast] = []
    monkeypatch.setattr(games, "open_local_game", lambda cast, **_: taken.append(cast))

    def open_only(opening: Opening, *, as_json: bool) -> int:
        opening.open_game()
        return 0

    monkeypatch.setattr(standard_io, "play_here", open_only)
    lists = {"/v1/models": LLAMA_CPP_MODELS, CHAT: "".join(completions.WHOLE).encode()}
    async with open_vendor_server(lists) as server:
        monkeypatch.setattr(own_servers, "OWN_SERVERS", (evolve(LLAMA_CPP, address=server.address),))
        assert await trio.to_thread.run_sync(footlights, monkeypatch, "play", "--model", "auto") == 0
        from tests.kit.models.wire_server import ask

        outputs, error = await ask(taken[0].models["Qwen3-4B.gguf"])
        paths = [path for path, _ in server.asked]
        assert all("authorization" not in headers for _, headers in server.asked)
    assert capsys.readouterr().err == (
        "/models/Qwen3 4B.gguf of llama.cpp speaks: the largest instruct model there, with 4.0 billion parameters.\n"
    )
    assert (paths, error) == (["/v1/models", CHAT], None)
    assert outputs[:2] == ["A", " room?"]
