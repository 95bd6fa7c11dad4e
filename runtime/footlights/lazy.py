"""Lazy exports: a package whose public names are imported on first access, so that importing it is cheap."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(
    package: str, homes: Mapping[str, str], *, submodules: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package. Sets its `__all__` unless it has one.

    `homes` maps each module to the names that it exports, separated by spaces; `submodules` lists modules that are
    public names themselves. An exported name must not equal the name of another module of the package.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    modules = frozenset(submodules.split())
    namespace = vars(sys.modules[package])
    namespace.setdefault("__all__", sorted({*home_of, *modules}))

    def get(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value: object = getattr(import_module(home_of[name]), name)
        except ModuleNotFoundError as missing:
            from footlights.extras import name_extra  # not needed otherwise

            name_extra(missing)
            raise
        namespace[name] = value  # later lookups bypass `__getattr__`
        return value

    def names() -> list[str]:
        return sorted({*namespace, *home_of, *modules})

    return get, names
