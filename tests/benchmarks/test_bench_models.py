"""Models suite with a fake engine. Tests check no performance."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from suites.__main__ import main
from suites.models.direct import has_text
from suites.models.suite import heartbeat
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock

    from tests.benchmarks.conftest import QuickRun

FAKE_ENGINE = ROOT / "tests/kit/models/fake_engine"

SUBJECTS = {
    "cold start",
    "first token, new prompt",
    "first token, prompt known to the engine",
    "cancel while it speaks, until its slot is free",
    "cancel while it reads, until its slot is free",
    "how late the loop is",
}


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights for the fake engine, which replaces the real one in this process and in that of the model."""
    module = type(sys)("xllamacpp")
    vars(module).update(runpy.run_path(str(FAKE_ENGINE / "xllamacpp.py")))
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr("footlights_actors.models.local.model.find_spec", lambda name: module)
    monkeypatch.setenv("PYTHONPATH", str(FAKE_ENGINE))
    file = tmp_path / "some.gguf"
    file.write_bytes(b"GGUFload")
    return file


def test_a_quick_run_prints_and_writes_every_figure(weights: Path, quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("models", "--model", str(weights))
    assert run.subjects == SUBJECTS
    assert all(figure["value"] > 0 for figure in run.figures)
    aims = [figure["name"] for figure in run.figures if figure["aim"] is not None]
    assert aims == ["model_loading seen after begin_turn", *["ours / engine alone"] * 4]


def test_a_missing_model_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--model", "nothing.gguf"]) == 2
    assert "No file and no known weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        (b'{"choices": [{"delta": {"content": "word"}}]}', True),
        (b'{"choices": [{"delta": {"content": null}}]}', False),
        (b'{"choices": [{"delta": {"content": ""}}]}', False),
        (b'{"choices": []}', False),
    ],
)
def test_chunks_with_text_are_distinguished_from_progress(chunk: bytes, text: bool) -> None:
    assert has_text(chunk) is text


async def test_a_beat_that_is_overdue_at_the_end_is_counted(mock_clock: MockClock) -> None:
    async def stall() -> None:
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1)

    for _ in range(20):  # the order in which tasks wake is trio's choice
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stall)
            async with heartbeat() as late:
                pass
        assert late[0] > 0.9
