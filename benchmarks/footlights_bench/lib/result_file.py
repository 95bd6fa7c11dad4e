"""Result file: the JSON that a run wrote, read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from pathlib import Path


class UnreadableResult(FootlightsError):
    """The file was not written by a benchmark."""

    code = "unreadable_result"


def read_json(file: Path) -> dict[str, Any]:
    """Raises `UnreadableResult`."""
    try:
        read: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableResult(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise UnreadableResult(f"{file} is not the result of a benchmark.")
    return cast("dict[str, Any]", read)
