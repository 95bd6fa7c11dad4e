"""Weights: where they are kept, and how they are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from footlights.errors import FootlightsError
from footlights_actors.models.local import weights
from footlights_actors.models.local.weights import (
    SMOLLM2,
    WeightsError,
    WeightsNotFetched,
    WeightsUnknown,
    cache_folder,
    find,
)

HOME = Path.home()


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"FOOTLIGHTS_MODELS": "/big/disk", "XDG_CACHE_HOME": "/cache"}, "linux", Path("/big/disk")),
        ({"XDG_CACHE_HOME": "/cache"}, "linux", Path("/cache/footlights/models")),
        ({"XDG_CACHE_HOME": ""}, "linux", HOME / ".cache/footlights/models"),
        ({}, "linux", HOME / ".cache/footlights/models"),
        ({}, "darwin", HOME / "Library/Caches/footlights/models"),
        ({"LOCALAPPDATA": "/local"}, "win32", Path("/local/footlights/models")),
        ({}, "win32", HOME / "AppData/Local/footlights/models"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_such_files(
    environ: dict[str, str], platform: str, expected: Path
) -> None:
    assert cache_folder(environ, platform) == expected


def test_known_weights_are_found_once_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(tmp_path))
    with pytest.raises(WeightsNotFetched, match="footlights models fetch smollm2"):
        find("smollm2")
    file = tmp_path / SMOLLM2.file_name
    file.write_bytes(b"GGUF")
    with pytest.raises(WeightsNotFetched):
        find("smollm2")
    with file.open("r+b") as opened:
        opened.truncate(SMOLLM2.size)
    assert find("smollm2") == file


def test_any_other_file_is_found_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    with pytest.raises(WeightsUnknown, match="smollm2"):
        find(file)
    file.write_bytes(b"GGUF")
    assert find(file) == file == find(str(file))


def test_every_error_has_a_code_of_its_own() -> None:
    errors = [each for each in vars(weights).values() if isinstance(each, type) and issubclass(each, WeightsError)]
    assert len(errors) == 7
    assert all(issubclass(each, FootlightsError) for each in errors)
    assert len({each.code for each in errors}) == 7
