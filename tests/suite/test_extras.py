"""Extras: code that lacks a module of one says which to install. Each case is a process without that module."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from footlights.extras import EXTRA_OF
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv[0] = "footlights"
{program}
"""
MAIN = "from footlights_transports.cli.main import main; main()"
SERVER = "h11 wsproto typer rich trio_websocket hypercorn starlette prometheus_client"


def run_without(names: str, program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    source = WITHOUT.format(names=names.split(), program=program)
    return subprocess.run(
        [sys.executable, "-c", source, *arguments], capture_output=True, text=True, timeout=60, cwd=folder, input="Hi\n"
    )


def test_every_dependency_of_an_extra_is_known() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    imported_as = {"phonenumberslite": "phonenumbers", "python_stdnum": "stdnum"}
    named = {
        re.split(r"[\[>=]", each)[0].replace("-", "_"): extra
        for extra in ("server", "remote", "anthropic", "local", "content", "redaction")
        for each in extras[extra]
        if not each.startswith("footlights")
    }
    assert {imported_as.get(name, name): extra for name, extra in named.items()} == EXTRA_OF


@pytest.mark.parametrize("module", SERVER.split())
@pytest.mark.parametrize(
    "command", ["serve", *(pytest.param(command, marks=pytest.mark.long) for command in ("play", "run hello"))]
)
def test_a_command_that_lacks_a_module_names_the_extra(module: str, command: str, tmp_path: Path) -> None:
    done = run_without(module, MAIN, *command.split(), *(["--check"] if command == "serve" else []), folder=tmp_path)
    if done.returncode == 2:
        assert (
            done.stderr == f"This needs {module}: install the extra server (from a checkout: pip install '.[server]')\n"
        )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (SERVER, "", "server"),
        (SERVER, "play", "server"),
        ("starlette", "serve --ws-port 0 --http-port 0", "server"),
        ("trio_websocket", "serve --ws-port 0 --http-port 0", "server"),
        ("rich", "play", "server"),
        ("httpx2 httpcore2", "play --model openai:any", "remote"),
        ("anthropic", "play --model anthropic:any", "anthropic"),
        ("anthropic httpx2 httpcore2", "play --model anthropic:any", "anthropic"),
        ("xllamacpp", "play --model any.gguf", "local"),
        ("cryptography", "content new-key", "content"),
    ],
)
def test_each_extra_is_named(missing: str, arguments: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "any.gguf").write_bytes(b"GGUF")
    done = run_without(missing, MAIN, *arguments.split(), folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"install the extra {extra} (from a checkout: pip install '.[{extra}]')" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "program", "extra"),
    [
        ("wsproto", "from footlights_transports import connect", "server"),
        ("starlette", "from footlights_transports import serve", "server"),
        ("httpx2 httpcore2", "from footlights_actors.models.openai import OpenAIModel", "remote"),
        ("httpx2 httpcore2", "from footlights_actors.models.anthropic import AnthropicModel", "remote"),
        ("anthropic", "from footlights_actors.models.anthropic import AnthropicModel", "anthropic"),
    ],
)
def test_an_import_that_lacks_a_module_names_the_extra(missing: str, program: str, extra: str, tmp_path: Path) -> None:
    done = run_without(missing, program, folder=tmp_path)
    assert done.stderr.splitlines()[-1].endswith(
        f": install the extra {extra} (from a checkout: pip install '.[{extra}]')"
    )


SETTINGS = """
[models.odo]
kind = "{kind}"
{options}
"""


@pytest.mark.parametrize(
    ("missing", "kind", "options", "extra"),
    [
        ("httpx2 httpcore2", "openai", 'name = "any"\nbase_url = "http://127.0.0.1:1/v1"', "remote"),
        ("anthropic", "anthropic", 'name = "any"', "anthropic"),
        ("xllamacpp", "local", 'weights = "any.gguf"', "local"),
        ("httpx2 httpcore2", "my_game:odo", "", "remote"),
    ],
)
def test_settings_that_lack_a_module_name_the_extra(
    missing: str, kind: str, options: str, extra: str, tmp_path: Path
) -> None:
    (tmp_path / "any.gguf").write_bytes(b"GGUF")
    (tmp_path / "my_game.py").write_text("from footlights_actors.models.openai import OpenAIModel")
    (tmp_path / "game.toml").write_text(SETTINGS.format(kind=kind, options=options))
    done = run_without(missing, MAIN, "serve", "--check", "--config", "game.toml", folder=tmp_path)
    assert done.returncode == 1
    assert f"install the extra {extra} (from a checkout: pip install '.[{extra}]')" in done.stderr


def test_a_module_of_nobody_is_an_error_like_any_other(tmp_path: Path) -> None:
    done = run_without("orjson", MAIN, "play", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'orjson'\n")
