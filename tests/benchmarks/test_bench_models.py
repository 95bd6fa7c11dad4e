"""The harness for local models works, with an engine that is none. How its numbers are is a benchmark's matter."""

from __future__ import annotations

import json
import runpy
import sys
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_bench.models.direct import has_text
from footlights_bench.models.suite import heartbeat, run_models
from tests.kit.command import footlights
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

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
    """Weights for the fake engine, which is in the place of the real one in this process and in the model's own."""
    module = type(sys)("xllamacpp")
    vars(module).update(runpy.run_path(str(FAKE_ENGINE / "xllamacpp.py")))
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr("footlights_actors.models.local.model.find_spec", lambda name: module)
    monkeypatch.setenv("PYTHONPATH", str(FAKE_ENGINE))
    file = tmp_path / "some.gguf"
    file.write_bytes(b"GGUFload")
    return file


def test_a_quick_run_prints_every_figure_and_writes_it_as_json(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "models.json"
    assert run_models(quick=True, json_path=path, weights=str(weights)) == 0
    printed = capsys.readouterr()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["bench"] == "models"
    assert {figure["subject"] for figure in written["figures"]} == SUBJECTS
    for figure in written["figures"]:
        assert figure["value"] > 0, figure
        assert figure["name"] in printed.out
    aims = [figure["name"] for figure in written["figures"] if figure["aim"] is not None]
    assert aims == ["model_loading seen after begin_turn", *["ours / engine alone"] * 4]


def test_without_a_model_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert footlights(monkeypatch, "bench", "models", "--model", "nothing.gguf") == 2
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
def test_text_is_told_from_progress(chunk: bytes, text: bool) -> None:
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
