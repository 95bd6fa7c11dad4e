"""Packages that import a public name only when it is first asked for.

To import such a package costs next to nothing; whoever uses a part of it pays for that part, once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(
    package: str, homes: Mapping[str, str], *, submodules: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package.

    `homes` has the names that each module gives to the package, with spaces between them; `submodules` are modules
    that are public names themselves. None of the names may be that of another module of the package.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    modules = frozenset(submodules.split())
    namespace = vars(sys.modules[package])

    def get(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home_of[name]), name)
        namespace[name] = value  # from now on it is found without us
        return value

    def names() -> list[str]:
        return sorted({*namespace, *home_of, *modules})

    return get, names
