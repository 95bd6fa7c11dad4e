"""The metadata of the built package: project URLs, and a README whose links lead somewhere on a package index."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The hook on a copy of the project, without hatchling, which is only there while a package is built."""

    class Interface:
        root = str(tmp_path)

    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = Interface  # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return runpy.run_path(str(ROOT / ".ci/metadata.py"))["ReadmeLinks"]()


def test_without_a_repository_the_readme_is_as_it_is(hook: Any) -> None:
    metadata: dict[str, Any] = {}
    hook.update(metadata)
    assert metadata == {
        "readme": {"content-type": "text/markdown", "text": (ROOT / "README.md").read_text(encoding="utf-8")}
    }


def test_with_a_repository_every_link_is_absolute_and_names_a_file(hook: Any, tmp_path: Path) -> None:
    settings = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    url = "https://forge.invalid/footlights"
    (tmp_path / "pyproject.toml").write_text(settings.replace('repository = ""', f'repository = "{url}/"'))
    metadata: dict[str, Any] = {}
    hook.update(metadata)
    links = re.findall(r"\]\(([^)\s]+)\)", metadata["readme"]["text"])
    assert all(link.startswith("https://") for link in links)
    ours = [link for link in (*links, *metadata["urls"].values()) if link.startswith(f"{url}/blob/v0.1.0/")]
    assert len(ours) > 10
    assert all((ROOT / link.removeprefix(f"{url}/blob/v0.1.0/").partition("#")[0]).exists() for link in ours)
    assert metadata["urls"]["Source"] == url
