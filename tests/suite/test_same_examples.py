"""The default examples: the same in every run, whatever ran before and however slow the machine is."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).parents[1]


def examples() -> list[int]:
    seen: list[int] = []

    @given(st.integers())
    @settings(max_examples=100)
    def gather(number: int) -> None:
        seen.append(number)

    gather()
    return seen


def test_the_modules_that_are_loaded_do_not_change_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = examples()
    source = tmp_path / "local_module.py"
    source.write_text("\n".join(f"number_{each} = {each}" for each in range(10_000, 11_000)))
    module = ModuleType("local_module")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert examples() == before


def test_neither_a_database_nor_the_speed_of_the_machine_decides() -> None:
    assert settings.default is not None
    assert settings.default.derandomize
    assert settings.default.database is None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_strategies_construct_what_they_need_and_filter_nothing() -> None:
    filters = {"assume", "filter", "reject"}
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in [*TESTS.rglob("*.py"), *(TESTS.parent / "runtime/footlights/testing").rglob("*.py")]
        if "hypothesis" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in filters
    ]
    assert found == []
