"""Keys of sealed content: Fernet keys, from a file or the environment. It needs the extra `content`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, MultiFernet

from footlights.errors import FootlightsError
from footlights.private_files import exposure
from footlights_actors.sealed import CONTENT_KEYS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class ContentKeyError(FootlightsError):
    """There is no key, or none that fits. The message quotes no key."""

    code = "content_key"


def new_key() -> str:
    """A new random key."""
    return Fernet.generate_key().decode()


def keys_from_file(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """One key a line, the newest first: that one encrypts, and all of them decrypt. Raises `ContentKeyError`."""
    file = Path(path)
    try:
        exposed = exposure(file)
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise ContentKeyError(f"The keys of kept content cannot be read from {os.fspath(path)}: {why}.") from None
    if exposed is not None:
        raise ContentKeyError(f"The keys of kept content are in {os.fspath(path)}, {exposed}.")
    return _at_least_one((line.strip() for line in lines if not line.startswith("#")), f"The file {os.fspath(path)}")


def keys_from_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The same from the variable `FOOTLIGHTS_CONTENT_KEYS`, separated by commas. Raises `ContentKeyError`."""
    return _at_least_one(
        map(str.strip, environ.get(CONTENT_KEYS_VARIABLE, "").split(",")), f"The variable {CONTENT_KEYS_VARIABLE}"
    )


def seals_of(keys: Sequence[str]) -> MultiFernet:
    """What seals with the first of these keys, and opens with each of them. Raises `ContentKeyError`."""
    if not keys:
        raise ContentKeyError("Content is kept only encrypted, and there is no key.")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise ContentKeyError("A key of kept content is invalid: a key is 32 bytes in URL-safe base64.") from None


def _at_least_one(found: Iterable[str], where: str) -> tuple[str, ...]:
    keys = tuple(key for key in found if key)
    if not keys:
        raise ContentKeyError(f"{where} has no key, and content is kept only encrypted.")
    return keys
