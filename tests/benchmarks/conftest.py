"""Fixtures of the benchmark tests: a small heap for collections, and a quick run of a suite."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen

from suites.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path


@frozen
class QuickRun:
    """What a quick run of a suite wrote and printed."""

    figures: Sequence[dict[str, Any]]
    machine: dict[str, Any]
    out: str
    err: str

    @property
    def subjects(self) -> set[str]:
        return {figure["subject"] for figure in self.figures}

    @property
    def aims(self) -> set[tuple[str, str]]:
        """The subjects and names of the figures with an aim."""
        return {(figure["subject"], figure["name"]) for figure in self.figures if figure["aim"] is not None}


@pytest.fixture(autouse=True)
def small_heap() -> Generator[None]:
    """Freeze what the tests have imported: benchmarks collect garbage before they measure."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., QuickRun]:
    """Run `python -m suites NAME --quick --json FILE`; every figure must be printed and written."""

    def run(bench: str, *options: str) -> QuickRun:
        path = tmp_path / f"{bench}.json"
        assert main([bench, "--quick", "--json", str(path), *options]) == 0
        printed = capsys.readouterr()
        written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        assert (written["bench"], written["quick"]) == (bench, True)
        for figure in written["figures"]:
            assert figure["name"] in printed.out
            assert figure["subject"] in printed.out
        return QuickRun(written["figures"], written["machine"], printed.out, printed.err)

    return run
