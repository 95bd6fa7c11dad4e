"""`footlights play --model ...`: the choice of a model, missing models, and a turn with each kind."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import InvalidCommand, RegistrationError
from footlights_actors.models.local.weights import KNOWN, WeightsNotFetched, WeightsUnknown
from footlights_transports.cli import screen
from footlights_transports.cli.models import choice as model_choice
from footlights_transports.cli.models import command as cli_models
from footlights_transports.cli.models.choice import tavern_with
from footlights_transports.cli.play import command, standard_io
from tests.kit.command import footlights
from tests.kit.models import openai_wire as completions
from tests.kit.models.wire_server import Answer, ask, open_wire_server

if TYPE_CHECKING:
    from pathlib import Path

PLAY = (sys.executable, "-m", "footlights_transports", "play")


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(tmp_path))


# -- which model is meant


def test_without_a_word_it_is_the_scripted_innkeeper() -> None:
    cast = tavern_with("innkeeper", None)
    assert (list(cast.models), cast.remote_models) == (["innkeeper", "analyst"], False)


@pytest.mark.parametrize("name", ["openai:qwen3", "anthropic:claude"])
def test_naming_a_remote_model_is_consent_to_use_it(name: str) -> None:
    cast = tavern_with(name, "https://models.example")
    model, _ = cast.models.values()
    assert (model.model_id, model.traits.remote, cast.remote_models) == (name.partition(":")[2], True, True)


def test_a_vendor_has_an_address_of_its_own_or_this_machine() -> None:
    anthropic, _ = tavern_with("anthropic:claude", None).models.values()
    openai, _ = tavern_with("openai:qwen3", None).models.values()
    assert (anthropic.traits.remote, openai.traits.remote) == (True, False)


async def test_a_key_is_sent_only_to_an_address_that_the_user_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    async with open_wire_server(Answer(completions.WHOLE), Answer(completions.WHOLE)) as server:
        address = f"{server.url}/v1"
        monkeypatch.setattr(model_choice, "_LOCAL_HOST_BY_DEFAULT", address)
        for base_url in (None, address):
            model, _ = tavern_with("openai:qwen3", base_url).models.values()
            assert (await ask(model))[1] is None
    assert [request.headers.get("authorization") for request in server.requests] == [None, "Bearer sk-real"]


@pytest.mark.parametrize(
    ("name", "base_url", "error"),
    [
        ("openai:", None, InvalidCommand),
        ("innkeeper", "http://127.0.0.1", InvalidCommand),
        ("openai:x", "not an address", RegistrationError),
        ("no such thing", None, WeightsUnknown),
    ],
)
def test_what_cannot_be_is_refused(name: str, base_url: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        tavern_with(name, base_url)


@pytest.mark.usefixtures("no_weights")
def test_known_weights_that_are_not_here_are_named() -> None:
    with pytest.raises(WeightsNotFetched) as missing:
        tavern_with("smollm2", None)
    assert missing.value.weights is KNOWN["smollm2"]


# -- on the command line


@pytest.mark.usefixtures("no_weights")
def test_without_a_terminal_the_command_to_fetch_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "play", "--model", "smollm2") == 2
    assert "footlights models fetch smollm2" in capsys.readouterr().err


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize("answer", [True, False])
def test_at_a_terminal_a_download_needs_confirmation(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    done: list[Any] = []

    def fetched(name: str) -> None:
        done.append(name)
        monkeypatch.setattr(command, "tavern_with", lambda *_, **__: "the tavern")

    def played(opening: standard_io.Opening, *, as_json: bool) -> int:
        done.append(opening.farewell)
        return 0

    monkeypatch.setattr(screen, "is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer)
    monkeypatch.setattr(cli_models, "fetch_model", fetched)
    monkeypatch.setattr(standard_io, "play_here", played)
    assert footlights(monkeypatch, "play", "--model", "smollm2") == (0 if answer else 2)
    assert done == (["smollm2", "The door closes behind you."] if answer else [])


def test_a_model_that_there_is_not_ends_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert footlights(monkeypatch, "play", "--model", "openai:") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_game_file_that_is_not_played_is_named(tmp_path: Path) -> None:
    (tmp_path / "game.toml").write_text("")
    done = subprocess.run(
        [*PLAY, "--model", "innkeeper"], input="Hello\n", capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "game.toml is not played: --model plays the tavern.\n")


def test_an_unknown_persona_is_refused_with_the_known_ones_before_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert footlights(monkeypatch, "play", "--persona", "dragon") == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "There is no persona 'dragon'; there are: innkeeper, analyst.\n")


# -- and it speaks


async def test_a_model_behind_http_speaks_for_the_innkeeper() -> None:
    async with open_wire_server(Answer(completions.WHOLE)) as server:
        command = [*PLAY, "--model", "openai:bard", "--base-url", f"{server.url}/v1"]
        done = await trio.run_process(command, stdin=b"Hello\n", capture_stdout=True, capture_stderr=True)
        (request,) = server.requests
    assert done.stderr == b""
    assert "Innkeeper: A room?" in done.stdout.decode()
    system, user = request.body["messages"]
    assert "Free rooms: the attic for 2 coins" in system["content"]
    assert user == {"role": "user", "content": "Hello"}
    assert [tool["function"]["name"] for tool in request.body["tools"]][:1] == ["check_rooms"]


@pytest.mark.parametrize(
    ("answer", "key", "line"),
    [
        (401, "", "model_key_missing: {} requires a key, and $OPENAI_API_KEY is not set (HTTP 401)."),
        (401, "sk-xyzzy", "model_key_refused: {} refused the key in $OPENAI_API_KEY (HTTP 401)."),
        (404, "", "model_not_found: {} has no model bard, or no such path (HTTP 404)."),
        (429, "", "model_rate_limited: {} limits requests (HTTP 429)."),
        (503, "", "model_server_error: {} failed (HTTP 503)."),
        (None, "", "model_unreachable: {} cannot be reached (ConnectError)."),
    ],
)
async def test_a_piped_play_says_why_a_model_failed_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, answer: int | None, key: str, line: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_wire_server(Answer(("{}",), answer or 200)))
        if answer is None:
            await stack.aclose()
        command = [*PLAY, "--model", "openai:bard", "--base-url", f"{server.url}/v1"]
        done = await trio.run_process(command, stdin=b"Hello\n", capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 1
    where = f"127.0.0.1:{server.port}"
    assert f"  ✗ interrupted: {line.format(where)}\n" in done.stdout.decode()
    assert line.partition(" ")[2].format(where) in done.stderr.decode()
    assert b"xyzzy" not in done.stdout + done.stderr


def test_the_local_model_speaks_for_the_innkeeper(smollm2: Path) -> None:
    done = subprocess.run([*PLAY, "--model", "smollm2"], input="Hello\n", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, f"{model_choice.TINY}\n")
    assert "is loading" in done.stdout
    assert "✓ committed" in done.stdout
