"""Packages that import names lazily: type checkers, Python and `__all__` agree on the names."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

LAZY = [
    "footlights",
    "footlights.authority",
    "footlights.laws",
    "footlights.modes",
    "footlights.wire",
    "footlights_actors",
    "footlights_transports",
]

pytestmark = pytest.mark.parametrize("name", LAZY)


def _table(package: ModuleType) -> dict[str, str]:
    """By the name, the module that it comes from, as Python is told."""
    homes: dict[str, str] = vars(package)["_HOMES"]
    return {name: home for home, names in homes.items() for name in names.split()}


def _imports(statements: list[ast.stmt]) -> dict[str, str]:
    """By the name, the module that it comes from."""
    found = [each for each in statements if isinstance(each, ast.ImportFrom)]
    return {alias.name: str(each.module) for each in found for alias in each.names}


def _told_to_checkers(package: ModuleType) -> dict[str, str]:
    source = ast.parse(inspect.getsource(package))
    blocks = [each for each in source.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    return _imports([statement for block in blocks for statement in block.body])


def _imported_at_once(package: ModuleType) -> set[str]:
    return _imports(ast.parse(inspect.getsource(package)).body).keys() & set(package.__all__)


def _own_modules(package: ModuleType) -> set[str]:
    return {each.name for each in iter_modules(package.__path__)}


def test_checkers_and_python_are_told_the_same(name: str) -> None:
    package = import_module(name)
    told = _told_to_checkers(package)
    modules = {each for each, home in told.items() if home == name}
    assert {each: home for each, home in told.items() if each not in modules} == _table(package)
    assert modules <= _own_modules(package)
    assert told.keys() | _imported_at_once(package) == set(package.__all__)
    assert not told.keys() & _imported_at_once(package)


def test_every_name_is_that_of_its_home(name: str) -> None:
    package = import_module(name)
    for each, home in _table(package).items():
        assert getattr(package, each) is getattr(import_module(home), each)
    assert set(package.__all__) <= set(dir(package))


def test_no_name_can_be_taken_by_a_module_of_the_package(name: str) -> None:
    # Python sets a package's attribute to each module of it that is imported, whenever that is.
    package = import_module(name)
    assert not _table(package).keys() & _own_modules(package)


def test_every_public_name_is_there_in_a_new_process_in_any_order(name: str) -> None:
    program = (
        "import importlib, sys; package = importlib.import_module(sys.argv[1]); "
        "assert set(package.__all__) <= set(dir(package)); "
        "first = {n: type(getattr(package, n)) for n in reversed(package.__all__)}; "
        "assert first == {n: type(getattr(package, n)) for n in package.__all__}; "
        "exec(f'from {sys.argv[1]} import *')"
    )
    done = subprocess.run([sys.executable, "-c", program, name], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_not_there_is_refused_as_by_any_module(name: str) -> None:
    package: Any = import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'curtain'"):
        _ = package.curtain
    with pytest.raises(ImportError, match="cannot import name 'curtain'"):
        exec(f"from {name} import curtain")
